"""Races of real learners: run them, resume them, and keep the best learner."""
