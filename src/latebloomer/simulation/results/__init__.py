"""The results of simulations."""
