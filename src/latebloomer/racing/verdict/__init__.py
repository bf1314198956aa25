"""The verdict of a race, and how it is computed."""
