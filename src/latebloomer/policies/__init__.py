"""One file per algorithm, a plan and a rating: `base.py` the contract, `registry.py` the list."""
