"""What is shown while a race runs."""
