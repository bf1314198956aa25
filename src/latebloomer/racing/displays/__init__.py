"""Displays of a race while it runs."""
