"""The simulation of runs on a GPU."""
