"""One run of a policy, step by step: ask for an arm, then report its score."""
