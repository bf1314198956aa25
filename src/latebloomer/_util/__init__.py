"""Small helpers that are not about bandits: text, files, memory and tables."""
