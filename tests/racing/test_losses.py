"""With maximize=False everything is said in the sign of the losses."""

import json
import re

import numpy as np
import pytest

from latebloomer import Session, race
from latebloomer.policies.registry import REGISTRY
from latebloomer.theory.curve_tests import BENDS_UP, FALLS, check_curves


def loss(best, speed, rise=0.0, noise=0.01):
    def losses(seed):
        rng, n = np.random.default_rng(seed), 0
        while True:
            n += 1
            yield 2 - best * n / (n + speed) + rise * n + noise * rng.normal()

    return losses


LEARNERS = {"good": loss(0.9, 9), "mid": loss(0.6, 3), "rises": loss(0.5, 2, rise=0.004)}
POLICIES = ["auto", "r-sr", "r-ucbe", "sh", "rest-sure", "adaptive-rejects"]


def run(policy="auto", **settings):
    return race(LEARNERS, 300, journal=None, progress=False, policy=policy, maximize=False,
                **settings)  # fmt: skip


@pytest.mark.parametrize("policy", POLICIES)
def test_every_number_of_a_verdict_is_a_loss(policy, tmp_path):
    verdict = run(policy)
    assert verdict.name == "good"
    for arm in verdict.learners:
        assert 0.9 < arm.score < 2.5 and 0.8 < arm.estimate < 2.5
    for arm in (verdict["good"], verdict["mid"]):
        assert arm.lower < arm.score and arm.lower < 2.1
    text = verdict.details()
    assert not re.search(r"(?<![\w.e])-\d", text)  # nothing is negative here but rewards
    assert "rise and flatten" not in text and "never fall" not in text
    assert "losses that never rise" in text
    page = verdict.report(tmp_path / "race.html").read_text()
    assert "rise and are concave" not in page and "fall and are convex" in page
    assert min(row["score"] for row in json.loads(verdict.to_json())["rows"]) > 0.9


@pytest.mark.parametrize("name", [name for name in REGISTRY if name != "ucb-e"])
def test_a_session_of_losses_is_that_of_scores_turned_round(name):
    pulls = {}
    for maximize in (True, False):
        session = Session(name, ["a", "b", "c"], 90, maximize=maximize)
        sign = 1 if maximize else -1
        while not session.over:
            arm = session.ask()
            n = session.pulls_of(arm) + 1
            session.tell(arm, sign * (arm + 1) * n / (n + 5))
        pulls[maximize] = session.pulls, session.best_arm, [
            repr(sign * value) for value in session.recommend().estimates
        ]  # fmt: skip
    assert pulls[True] == pulls[False]


def test_what_a_certificate_says_is_in_losses():
    session = Session("r-sr", ["a", "b"], 40, maximize=False)
    while not session.over:
        arm = session.ask()
        n = session.pulls_of(arm) + 1
        session.tell(arm, 2 - (0.9, 0.4)[arm] * n / (n + 3))
    said = session.certificate().missing(1)
    numbers = re.search(r"could reach ([\d.]+) at .*pulls, and arm 1 has at most ([\d.]+)", said)
    reach, sure = map(float, numbers.groups())
    assert reach < sure < 2
    assert "if curves fall and flatten" in said


def test_findings_of_losses_speak_of_losses(rng):
    n = np.arange(1, 101)
    curves = [-0.01 * n + 0.01 * rng.normal(size=100), 1e-4 * n**2 + 0.01 * rng.normal(size=100)]
    found = {f.kind: str(f) for f in check_curves(["a", "b"], curves, maximize=False)}
    assert "a gets worse by" in found[FALLS] and "losses that never rise" in found[FALLS]
    assert "b bends downwards by" in found[BENDS_UP] and "convex losses" in found[BENDS_UP]
