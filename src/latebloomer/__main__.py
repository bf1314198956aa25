"""`python -m latebloomer` is the command `latebloomer`."""

from latebloomer.cli import app

app()
