"""Learners' states: when they are saved, where they lie, how they come back."""
