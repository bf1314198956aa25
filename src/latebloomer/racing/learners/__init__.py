"""What can race: learners as users pass them."""
