"""Ask for an arm, tell its score: one run of a policy."""
