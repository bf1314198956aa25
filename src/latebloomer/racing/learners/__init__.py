"""Learners, in all forms in which users can pass them."""
