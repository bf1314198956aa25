"""Pulls that are the same share of each learner's full training."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

import latebloomer
from latebloomer import LocalRunner, resume
from latebloomer.core.history import remember_slopes
from latebloomer.core.ledger import SWEEPS
from latebloomer.core.run_memory import growing_rows, lists_for
from latebloomer.errors import SettingError
from latebloomer.policies.foresight import Foresight
from latebloomer.policies.late_window import late_noise
from latebloomer.policies.rising_ucbe import SIGMA, watch_noise
from latebloomer.racing.learners.full_training import shares_of
from latebloomer.racing.learners.learner import Share
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.request import Budget, Units
from latebloomer.racing.verdict.verdict_warnings import unequal_costs
from latebloomer.session.events import Created, ScoreReported
from latebloomer.session.session import Session
from tests.helpers.journals import rows
from tests.helpers.races import quiet


@given(full_steps=st.integers(1, 10**6), pulls=st.integers(1, 1000), n=st.integers(1, 1000))
def test_pull_n_ends_at_the_step_nearest_to_its_share(full_steps, pulls, n):
    share, n = Share(full_steps, pulls), min(n, pulls)
    assert share.steps_after(pulls) == full_steps
    assert share.steps_after(n) >= 1  # the first pull has a score to show
    exact = n * full_steps / pulls
    assert abs(share.steps_after(n) - exact) <= 0.5 or share.steps_after(n) == 1 > exact
    assert share.steps_of(n) == share.steps_after(n) - share.steps_after(n - 1) >= 0


class Counting:
    """A learner that writes down how it was asked to train."""

    def __init__(self, calls):
        self.calls, self.n = calls, 0

    def pull(self, steps=1):
        self.calls.append(steps)
        self.n += steps
        return self.n / (self.n + 30)


def rising(slow, last=10**9):
    def scores():
        for n in range(1, last + 1):
            yield n / (n + slow)

    return scores


def test_a_learner_of_one_step_has_finished_after_its_first_pull_and_sets_no_pull_of_the_others(
    capsys,
):
    learners = {"net": rising(30), "tree": rising(5), "svc": rising(3)}
    verdict = quiet(
        learners, trainings=2, full_steps={"net": 400, "tree": 40, "svc": 1}, progress=True
    )
    assert verdict.settings["pulls_per_training"] == 40
    assert verdict["svc"].state == "finished" and verdict.pulls["svc"] == 1
    assert "up to 10 steps for net (400 in total).\nsvc trains in one pull." in (
        capsys.readouterr().err
    )


def test_two_trainings_are_two_hundred_pulls_and_each_pull_is_the_same_share():
    calls, full_steps = [], {"net": 250, "tree": 100}
    learners = {"net": lambda: Counting(calls), "tree": rising(5)}
    verdict = quiet(learners, trainings=2, full_steps=full_steps)
    assert verdict.spent == verdict.budget == 200 and verdict.horizon == 100
    assert calls == [Share(250, 100).steps_of(n) for n in range(1, 101)]
    assert verdict["net"].steps == 250 and verdict["tree"].steps == 100


def test_without_a_parameter_steps_a_learner_is_pulled_again_and_its_last_score_counts():
    learners = {"a": rising(30), "b": rising(5)}
    verdict = quiet(learners, trainings=2, full_steps={"a": 300, "b": 100})
    assert verdict.curve("a") == [3 * n / (3 * n + 30) for n in range(1, 101)]


def test_pulls_that_add_no_step_repeat_the_last_score_and_cost_nothing(tmp_path):
    path, made, share = tmp_path / "race.db", {"tiny": rising(2), "net": rising(30)}, Share(5, 100)
    quiet(made, trainings=2, full_steps={"tiny": 5, "net": 100}, journal=path)
    for n, score, steps in rows(path, "SELECT n, score, steps FROM pulls WHERE arm = 0"):
        assert steps == share.steps_of(n)
        assert score == share.steps_after(n) / (share.steps_after(n) + 2)
    assert rows(path, "SELECT sum(steps) FROM pulls WHERE arm = 0") == [(5,)]


def test_a_learner_that_ends_in_the_middle_of_a_pull_has_finished_and_keeps_its_last_score():
    learners = {"short": rising(1, last=25), "net": rising(30)}
    verdict = quiet(learners, trainings=2, full_steps=100, pulls_per_training=10)
    # ten steps a pull: the third pull ends after five of them, and there is no fourth
    assert verdict.curve("short") == [10 / 11, 20 / 21, 25 / 26]
    assert verdict["short"].steps == 25 and "finished after 3 pulls" in verdict["short"].why


class Kept(Counting):
    """With state that only a checkpoint carries."""

    def __init__(self):
        super().__init__([])

    def save(self, folder):
        (folder / "n").write_text(str(self.n))

    def load(self, folder):
        self.n = int((folder / "n").read_text())


@pytest.mark.parametrize("stop", [1, 7, 41, 60, 88])
def test_cut_short_anywhere_it_resumes_to_the_same_verdict(tmp_path, cut, stop):
    learners = {"kept": Kept, "stream": rising(12), "tiny": rising(2)}
    asked = {"trainings": 1.5, "full_steps": {"kept": 173, "stream": 91, "tiny": 7},
             "pulls_per_training": 60, "runner": LocalRunner(checkpoint_every=4)}  # fmt: skip
    path, other = tmp_path / "race.db", tmp_path / "whole.db"
    whole = quiet(learners, journal=other, **asked)
    cut(stop, lambda: quiet(learners, journal=path, **asked))
    assert resume(path, learners, progress=False).summary() == whole.summary()
    query = "SELECT t, arm, n, score, steps FROM pulls ORDER BY t"
    assert rows(path, query) == rows(other, query)


def test_a_process_for_each_learner_makes_the_same_steps():
    learners, full_steps = {"kept": Kept, "tiny": rising(2)}, {"kept": 173, "tiny": 7}
    here = quiet(learners, trainings=0.3, full_steps=full_steps)
    apart = quiet(learners, trainings=0.3, full_steps=full_steps, runner="isolated")
    assert [arm.steps for arm in here.learners] == [arm.steps for arm in apart.learners]
    assert here.curve("kept") == apart.curve("kept")


def test_full_is_read_from_an_object_a_class_a_function_and_a_partial():
    @latebloomer.full_training(40)
    def stream():
        yield 0.5

    @latebloomer.full_training(50)
    class Model:
        def pull(self):
            return 0.5

    def build(rounds, full_steps):
        return rounds, full_steps

    learners = {
        "function": stream, "class": Model, "object": Model(),
        "partial": partial(build, 3, full_steps=70), "partial of a class": partial(Model),
    }  # fmt: skip
    found = {name: share.full_steps for name, share in shares_of(learners).items()}
    assert found == {"function": 40, "class": 50, "object": 50, "partial": 70,
                     "partial of a class": 50}  # fmt: skip


def test_nothing_is_built_to_ask_for_a_full_training():
    class Model:
        def __init__(self):
            raise AssertionError("built")

        @property
        def full_steps(self):
            return 100

    with pytest.raises(SettingError, match="full training is unknown for 'model'"):
        shares_of({"model": Model, "other": Model}, {"other": 10})


BAD = [
    ({"trainings": 3, "full_steps": {"a": 10}}, "full training is unknown for 'b'"),
    ({"trainings": 3}, r"unknown for 'a', 'b'.*full_steps=\{'a': 200, 'b': 200\}"),
    (
        {"trainings": 3, "full_steps": 0},
        "full_steps of 'a' is 0, but it must be an integer from 1",
    ),
    ({"trainings": 3, "full_steps": True}, "is True, but it must be an integer from 1"),
    ({"trainings": 1, "full_steps": 10**30}, "but it must be an integer from 1 to 2.53"),
    ({"trainings": 3, "full_steps": {"a": 10, "b": -5}}, "full_steps of 'b' is -5"),
    ({"trainings": 3, "full_steps": {"a": 10, "b": 2.5}}, "full_steps of 'b' is 2.5"),
    ({"trainings": 3, "full_steps": {"a": 10, "b": 20, "c": 5}}, "'b'. Correct the name 'c'"),
    ({"trainings": 3, "budget": 10, "full_steps": 10}, "trainings=3 and budget=10, but trainings"),
    ({"trainings": 3, "horizon": 10, "full_steps": 10}, "trainings=3 and horizon=10"),
    ({"trainings": 3, "seconds": 10, "full_steps": 10}, "=3 and seconds=10 were both given"),
    ({"trainings": 0, "full_steps": 10}, "trainings=0, but trainings must be above 0"),
    ({"trainings": "two", "full_steps": 10}, "trainings='two', but trainings must be a number"),
    ({"budget": 30, "pulls_per_training": 5}, "pulls_per_training=5 needs trainings="),
    ({"trainings": 3, "full_steps": 10, "pulls_per_training": 0}, "pulls_per_training=0"),
    ({"budget": 30, "full_steps": 20, "horizon": 21}, "horizon must be at most 20"),
]


@pytest.mark.parametrize("settings, text", BAD)
def test_bad_units_are_said_before_anything_is_made(tmp_path, settings, text):
    with pytest.raises(SettingError, match=text):
        quiet({"a": rising(1), "b": rising(2)}, journal=tmp_path / "race.db", **settings)
    assert not list(tmp_path.iterdir())


def test_a_budget_in_pulls_and_a_race_by_the_clock_can_have_shares_too():
    learners = {"a": rising(1), "b": rising(2)}
    found = Budget(pulls=30, full_steps=20).units(learners)
    assert found == Units(30, 20, {"a": 20, "b": 20}, pulls_per_training=20)
    assert Budget(seconds=1, full_steps=20).units(learners).horizon == 20


def test_an_arm_that_repeats_its_rewards_leaves_the_noise_estimate_as_it_is():
    noisy = [0.3, 0.5, 0.4, 0.7, 0.55, 0.6, 0.8, 0.7]
    steps = [0.1, 0.1, 0.1, 0.1, 0.9, 0.9, 0.9, 0.9]

    def certificate(repeats_scores):
        session = Session("r-sr", ["noisy", "other", "steps"], 60, repeats_scores=repeats_scores)
        for n, score in enumerate(noisy):
            for arm, own in enumerate((score, score + 0.1, steps[n])):
                session.tell(arm, own)
        return session.certificate()

    alone = Session("r-sr", ["noisy", "other"], 60)
    for score in noisy:
        alone.tell(0, score)
        alone.tell(1, score + 0.1)
    assert certificate(["steps"]).noise == pytest.approx(alone.certificate().noise)
    assert certificate([]).noise > certificate(["steps"]).noise
    assert certificate(["steps"]).lower[2] == float("-inf")


NOISY = [[0.3, 0.5, 0.4, 0.7, 0.55, 0.6], [0.2, 0.1, 0.4, 0.3, 0.5, 0.4]]
STAIRS = [0.1, 0.1, 0.1, 0.9, 0.9, 0.9]


def ledger_of(curves, repeats_scores=()):
    ledger = lists_for(Foresight(), len(curves))
    for i in repeats_scores:
        ledger.repeats_scores[i] = 1
    for n in range(1, len(curves[0]) + 1):
        for i, curve in enumerate(curves):
            for growing in growing_rows(Foresight(), ledger):
                growing[i].append(0.0)
            ledger.n[i], ledger.last[i] = n, curve[n - 1]
            ledger.cursor[SWEEPS] = n
            remember_slopes(ledger, i, n, curve[n - 1], 0.0)
            watch_noise(ledger, i)
    return ledger


def test_policies_read_no_noise_from_an_arm_that_repeats_its_rewards():
    alone, both = ledger_of(NOISY), ledger_of([*NOISY, STAIRS], repeats_scores=[2])
    assert late_noise(both, 6) == late_noise(alone, 6) > 0
    assert both.run[SIGMA] == alone.run[SIGMA] > 0
    assert late_noise(ledger_of([*NOISY, STAIRS]), 6) != late_noise(both, 6)
    assert late_noise(ledger_of([STAIRS, STAIRS], repeats_scores=[0, 1]), 6) == 0.0


def test_foresight_neither_forecasts_an_arm_that_repeats_its_rewards_nor_is_shaken_by_it():
    """Smooth curves beside a staircase: trust is as without it, and the staircase gains none."""

    def trusted(repeats_scores):
        names = ["slow", "quick", "stairs"]
        session = Session("foresight", names, 200, horizon=100, repeats_scores=repeats_scores)
        while not session.over:
            arm = session.ask()
            n = session.pulls[arm] + 1
            session.tell(arm, (n / (n + 40), 0.6 * n / (n + 8), 0.1 * ((n + 19) // 20))[arm])
        return session.explain("stairs").remark

    assert "stairs was at 0.3, with a forecast gain of 0 by pull" in trusted(["stairs"])
    assert "forecast gain of 0 by pull" not in trusted([])


def with_times(seconds, full_steps=None):
    settings = {
        "policy": {"name": "r-sr", "settings": {}, "repr": "RisingSR()"}, "budget": 40,
        "full_steps": full_steps, "pulls_per_training": 20 if full_steps else None,
    }  # fmt: skip
    state = RaceState(Created("id", settings, ("dear", "cheap")))
    for _ in range(10):
        for arm in (0, 1):
            state.apply(ScoreReported(arm, 0.5, seconds[arm]))
    return unequal_costs(state)


def test_pulls_ten_times_apart_are_a_warning_with_numbers_and_what_to_set():
    (text,) = with_times((2.0, 0.1))
    assert text.startswith("dear took 20 of the 21 s of training, 2 s a pull; cheap took 0.1 s")
    assert "trainings=3 with full_steps={...}" in text
    (text,) = with_times((2.0, 0.1), full_steps={"dear": 20, "cheap": 20})
    assert "the same share of a full training" in text
    assert with_times((2.0, 1.0)) == [] and with_times((0.02, 0.001)) == []  # alike, or short


def test_a_race_in_full_trainings_is_extended_in_full_trainings_with_a_newcomer(tmp_path):
    path, first = tmp_path / "race.db", {"kept": Kept, "stream": rising(12)}
    full_steps = {"kept": 173, "stream": 91}
    quiet(first, trainings=1, full_steps=full_steps, pulls_per_training=60, journal=path)
    with pytest.raises(SettingError, match="full training is unknown for 'late'"):
        resume(path, first, trainings=3, add={"late": rising(2)}, progress=False)
    new = {"add": {"late": rising(2)}, "full_steps": {"late": 20}}
    more = resume(path, first, trainings=3, **new, progress=False)
    assert more.budget == 180 and more.spent == sum(more.pulls.values()) <= 180
    share = Share(20, 60)
    assert more["late"].steps == share.steps_after(more.pulls["late"])
    assert more.curve("late")[0] == more.curve("late")[1] == 1 / 3  # it repeats between its steps
    again = resume(path, first | {"late": rising(2)}, progress=False)
    assert again.summary() == more.summary() and again["late"].steps == more["late"].steps
