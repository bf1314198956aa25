"""Policies from related work, kept as comparators for research."""
