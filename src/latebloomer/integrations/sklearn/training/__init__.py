"""How a scikit-learn estimator is trained a little more at each pull."""
