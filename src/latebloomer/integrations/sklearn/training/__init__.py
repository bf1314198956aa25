"""The ways in which a pull trains a scikit-learn estimator a little further."""
