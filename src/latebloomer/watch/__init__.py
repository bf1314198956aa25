"""The live page: a local server that reads journals while they are written."""
