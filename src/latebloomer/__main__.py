"""`python -m latebloomer` is the command `latebloomer`."""

from latebloomer.cli import app

if __name__ == "__main__":
    app()
