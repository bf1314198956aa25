"""The events of a race on disk."""
