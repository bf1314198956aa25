"""The live page: a local server that reads journals while races write them."""
