"""Leads on new rows: learners that give row scores, and what the verdict says of them."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import latebloomer as lb
from latebloomer import race, read_verdict, resume, row_scores
from latebloomer.racing.verdict.new_rows import NewRowsLead, decimals, new_rows_lines
from latebloomer.theory.leads import leads, sign_sums
from latebloomer.theory.row_scores import mean_of_rows

ROWS = 300
TRUTH = np.random.default_rng(7).random(ROWS) < 0.5


def predictions(skill, n):
    """Return probabilities that get better with n, with noise of their own."""
    noise = np.random.default_rng([int(100 * skill), n]).normal(size=ROWS)
    return 1 / (1 + np.exp(-(2 * TRUTH - 1) * skill * n / (n + 5) - noise))


def learner(skill, last=100):
    """Return a learner of some skill, which gives row scores."""

    def train():
        for n in range(1, last):
            scored = row_scores("roc_auc", TRUTH, predictions(skill, n))
            yield scored.score, n, scored

    return train


class Skilled:
    """The same learner as an object that can be pickled."""

    def __init__(self, skill):
        self.skill, self.n = skill, 0

    def pull(self):
        self.n += 1
        self.row_scores = row_scores("roc_auc", TRUTH, predictions(self.skill, self.n))
        return self.row_scores.score


LEARNERS = {"good": learner(2.0), "close": learner(1.9), "weak": learner(0.3)}


def quiet(learners=LEARNERS, budget=60, journal=None, **settings):
    return race(learners, budget=budget, journal=journal, progress=False, **settings)


def numbers(verdict):
    return [(one.rival, one.lead, one.margin) for one in verdict.leads]


def test_the_leads_of_a_race_are_those_of_its_models():
    verdict = quiet()
    skills = {"good": 2.0, "close": 1.9, "weak": 0.3}
    names = [one.name for one in verdict.learners]
    kept = [
        sign_sums([row_scores("roc_auc", TRUTH, predictions(skills[name], verdict.pulls[name]))])
        for name in names
    ]
    expected = leads(names.index(verdict.name), kept)
    assert len(verdict.leads) == 2
    for one in verdict.leads:
        lead = expected[names.index(one.rival)]
        assert one.lead == pytest.approx(lead.lead) and one.margin == pytest.approx(lead.margin)
        assert one.rows == ROWS
    assert [one.lead for one in verdict.leads] == sorted(one.lead for one in verdict.leads)


def test_a_journal_has_the_leads_and_a_resume_gives_the_same(tmp_path):
    whole = quiet(journal=tmp_path / "whole.db")
    assert numbers(read_verdict(tmp_path / "whole.db")) == numbers(whole)
    presses = iter([True])

    def stops(event, view):
        if view.spent == 45 and next(presses, False):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        quiet(journal=tmp_path / "two.db", callbacks=[stops])
    again = resume(tmp_path / "two.db", LEARNERS, progress=False)
    assert numbers(again) == numbers(whole) and again.leads


@pytest.mark.parametrize(
    "runner", ["isolated", lb.LocalRunner(max_in_memory=1), lb.LocalRunner(timeout=60)]
)
def test_every_runner_gives_the_same_leads(runner):
    skills = {"good": 2.0, "close": 1.9, "weak": 0.3}
    objects = {name: partial(Skilled, skill) for name, skill in skills.items()}
    assert numbers(quiet(objects, runner=runner)) == numbers(quiet())


@pytest.mark.slow  # it starts Ray: `make test-integrations` runs it
@pytest.mark.filterwarnings("default")
def test_ray_gives_the_same_leads():
    assert numbers(quiet(runner=lb.RayRunner(cores=2))) == numbers(quiet())


@pytest.mark.parametrize("turned", [False, True])
def test_of_losses_the_lower_one_leads(turned):
    """Parts may be losses, or scores of which the losses are the negative."""

    def of(level):
        def train():
            rng = np.random.default_rng(int(100 * level))
            for _ in range(99):
                losses = level + 0.1 * rng.random(ROWS)
                parts = -losses if turned else losses
                yield float(losses.mean()), None, parts

        return train

    verdict = quiet({"low": of(0.2), "high": of(0.5)}, maximize=False)
    (lead,) = verdict.leads
    assert verdict.name == "low" and lead.is_better and lead.lead == pytest.approx(0.3, abs=0.03)


def test_row_scores_of_another_score_and_those_that_fail_are_left_out():
    class Wrong:
        def pull(self):
            return 0.5

        @property
        def row_scores(self):
            raise OSError("no rows here")

    class Other(Wrong):
        row_scores = np.linspace(0.0, 0.5, 100)  # their mean is not the score

    verdict = quiet({"good": learner(2.0), "wrong": Wrong, "other": Other})
    assert verdict.leads == ()
    assert any("row scores are left out (OSError: no rows here" in w for w in verdict.warnings)
    said = "Not known for new rows: no other learner gives row scores that are parts of its score."
    assert said in str(verdict)


def test_without_another_learner_that_could_be_kept_there_is_no_lead():
    def fails():
        yield 0.4
        raise ValueError("too wide")

    verdict = quiet({"good": learner(2.0), "fails": fails})
    said = "Not known for new rows: no other learner that could be kept has a score."
    assert said in str(verdict)


def test_learners_that_were_scored_on_different_rows_have_no_lead():
    def of(rows, level):
        def train():
            for n in range(1, 99):
                right = np.linspace(0, 1, 100) < level * n / (n + 3)
                parts = row_scores("accuracy", right, np.ones(100, dtype=bool), rows=rows)
                yield parts.score, n, parts

        return train

    verdict = quiet({"a": of(np.arange(100), 0.9), "b": of(np.arange(50, 150), 0.5)})
    assert verdict.leads == () and verdict.name == "a"
    said = "Not known for new rows: no other learner was scored on the same rows."
    assert said in str(verdict)


def test_the_verdict_tells_validation_rows_from_new_ones():
    verdict = quiet()
    for text in (str(verdict), verdict.details()):
        assert f"On these {ROWS} validation rows, " in text
        assert "On new rows, models as trained now: the lead over " in text
    assert "And on new rows?" in verdict._repr_html_() or verdict.over
    plain = quiet({"a": lambda: iter([0.5] * 99), "b": lambda: iter([0.4] * 99)})
    assert "validation rows" not in str(plain)
    assert "Not known for new rows: the learner gives no row scores." in plain.details()


def stated(leads, **changes):
    """Return the sentences about given leads of a race of three."""
    verdict = quiet()
    learners = tuple(replace(one, **changes.get(one.name, {})) for one in verdict.learners)
    return new_rows_lines(replace(verdict, leads=tuple(leads), learners=learners), every=True)


def lead(rival, value, margin, error=0.001):
    return NewRowsLead(rival, value, margin, error, ROWS)


def test_sentences_name_ties_what_is_better_and_what_is_cheaper():
    verdict = quiet()
    assert verdict.name == "good"
    alive = {"state": "not selected", "pulls": 10, "full_pulls": 10}
    seconds = {"good": {"seconds": 9.0, "pulls": 10, "full_pulls": 10}}
    changes = seconds | {"close": alive | {"seconds": 3.0}, "weak": alive | {"seconds": 9.0}}
    first, second = stated([lead("close", 0.004, 0.006), lead("weak", 0.021, 0.009)], **changes)
    assert first == (
        "On new rows, models as trained now: the lead over close is 0.004 ± 0.006: a tie. "
        "close trains in a third of the time."
    )
    assert second == "The lead over weak is 0.021 ± 0.009: good is better (95 %)."
    dropped = {"close": {"state": "dropped", "pulls": 4, "full_pulls": 10}}
    whole = {"close": dropped["close"] | {"pulls": 10}}  # dropped when it was fully trained
    assert "over close is 0.30 " in stated([lead("close", 0.3, 0.1)], **whole)[0]
    (text, unknown) = stated([lead("close", -0.3, 0.1)], **dropped)
    assert "over close, as it was when dropped (40 %), is -0.3" in text
    assert text.endswith("close is better (95 %).") and unknown.startswith(
        "Not known for new rows"
    )
    best = stated([lead("close", 0.05, 0.02), lead("weak", 0.06, 0.02)])[-1]
    assert best == "good is the best of all 3 (95 %)."


def test_of_two_learners_the_better_one_is_named_once():
    both = replace(quiet(), leads=(lead("close", 0.1, 0.01),))
    pair = tuple(one for one in both.learners if one.name in ("good", "close"))
    (said,) = new_rows_lines(replace(both, learners=pair))
    assert said.endswith("is 0.100 ± 0.010: good is better (95 %).")


@pytest.mark.parametrize("values, words", [([0.1], "1 tie"), ([0.1, 0.2], "2 ties")])
def test_the_short_verdict_counts_the_other_learners(values, words):
    others = [lead(f"other {value}", value, 0.3) for value in values]
    verdict = replace(quiet(), leads=(lead("close", 0.1, 0.3), *others))
    assert new_rows_lines(verdict)[0].endswith(f" Other learners: {words}.")


def test_a_margin_has_one_digit_or_two():
    assert [decimals(x) for x in (0.0061, 0.012, 0.1, 0.95, 3, 20)] == [3, 3, 2, 1, 0, 0]


def test_plain_numbers_are_the_parts_of_a_mean():
    def of(level):
        def train():
            rng = np.random.default_rng(int(100 * level))
            for _ in range(99):
                right = rng.random(ROWS) < level
                yield right.mean(), None, right

        return train

    verdict = quiet({"good": of(0.9), "weak": of(0.5)})
    (one,) = verdict.leads
    assert one.is_better and one.error > mean_of_rows([0, 1] * 150).step / ROWS
