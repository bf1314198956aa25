"""Checkpoints: when the states of learners are saved, where they are, and how to restore them."""
