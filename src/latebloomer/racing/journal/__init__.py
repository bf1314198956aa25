"""The journal: the events of a race on disk."""
