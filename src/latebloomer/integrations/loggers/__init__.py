"""Callbacks that write a race to MLflow, Weights & Biases, TensorBoard or `logging`."""
