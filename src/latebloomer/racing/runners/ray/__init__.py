"""Races on Ray: one actor per learner, the decisions and the journal here."""

from latebloomer.racing.runners.ray.ray_runner import RayRunner

__all__ = ["RayRunner"]
