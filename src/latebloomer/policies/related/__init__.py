"""Policies from related work, for comparisons in research."""
