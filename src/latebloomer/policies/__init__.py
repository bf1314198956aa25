"""The policies, one file each: `base.py` is their contract, and `registry.py` lists them."""
