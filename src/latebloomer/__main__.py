"""Run the command `latebloomer` as `python -m latebloomer`."""

from latebloomer.cli import app

if __name__ == "__main__":
    app()
