"""Plays policies: `session.py` by ask and tell."""
