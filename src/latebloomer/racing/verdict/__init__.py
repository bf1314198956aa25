"""What a race ends in, and how that is found."""
