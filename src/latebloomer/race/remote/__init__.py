"""Races on Ray: one actor per learner, the decisions and the journal here."""

from latebloomer.race.remote.runner import RayRunner

__all__ = ["RayRunner"]
