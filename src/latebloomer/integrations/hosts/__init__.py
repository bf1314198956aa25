"""Races inside Optuna, Ray Tune and Syne Tune."""
