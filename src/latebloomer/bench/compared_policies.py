"""What a bench plays unless told otherwise: the default, and each policy that needs no setting."""

from __future__ import annotations

from latebloomer.policies.registry import AUTO, REGISTRY

# The best on the public sets of the 13 settings in docs/research-log.md.
TUNED_ASHA = "asha:eta=2,grace=4,workers=1000"
VARIANTS = ("sh:judge=window", TUNED_ASHA)  # forms that people would ask for
LEFT_OUT = {  # by name, why
    "foresight": "it is what auto plays",
    "ucb-e": "it needs the gaps, which nobody knows of recorded curves",
    "etc": "its published width never decides, so that it is a round robin",
    "rest-sure": "its published width never decides, so that it is a round robin",
}
COMPARED = (AUTO, *(name for name in REGISTRY if name not in LEFT_OUT), *VARIANTS)
