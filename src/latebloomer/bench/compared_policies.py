"""What a bench plays unless told otherwise: each registered policy that can be played as it is."""

from __future__ import annotations

from latebloomer.policies import REGISTRY

# The best on the public sets of the 13 settings in docs/research-log.md.
TUNED_ASHA = "asha:eta=2,grace=4,workers=1000"
VARIANTS = ("sh:judge=window", TUNED_ASHA)  # forms that people would ask for
LEFT_OUT = {  # by name, why
    "ucb-e": "it needs the gaps, which nobody knows of recorded curves",
    "etc": "its published width never decides, so that it is a round robin",
    "rest-sure": "its published width never decides, so that it is a round robin",
}
COMPARED = (*(name for name in REGISTRY if name not in LEFT_OUT), *VARIANTS)
