"""Checks that a learner or a runner does what a race needs."""
