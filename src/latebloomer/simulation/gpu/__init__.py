"""Runs on a GPU."""
