"""What simulations found."""
