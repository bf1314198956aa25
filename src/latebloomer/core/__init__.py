"""What an arm's rewards say: histories as prefix sums, estimators, kernels. Knows nobody."""
