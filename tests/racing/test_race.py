"""Races from end to end: what a user calls and gets."""

import errno
import os
import pickle
import random
import signal
import subprocess
import sys
from itertools import count, pairwise, repeat

import pytest

from latebloomer import LocalRunner, RisingSR, race, read_verdict, resume
from latebloomer.errors import (
    AllFailed,
    BudgetError,
    Interrupted,
    JournalMismatch,
    LatebloomerError,
    LearnerError,
    OutputError,
    SettingError,
    UnknownName,
)
from latebloomer.racing.learner import seed_of
from latebloomer.racing.runners.contract import recorded_runner


def curve(slow, best, noise=0.0):
    """A generator function whose scores rise to `best`."""

    def scores(seed):
        rng = random.Random(seed)
        for n in count(1):
            yield best * n / (n + slow) + rng.gauss(0, 1) * noise

    return scores


FIVE = {
    "late": curve(37, 1.0, 0.01),
    "second": curve(10, 0.88, 0.01),
    "early": curve(1, 0.78, 0.01),
    "weak": curve(10, 0.7, 0.01),
    "slow": curve(20, 0.5, 0.01),
}


def quiet(learners, budget=None, **settings):
    settings.setdefault("journal", None)
    return race(learners, budget, progress=False, **settings)


class Counter:
    """An object with nothing but `pull`."""

    def __init__(self, step=1.0):
        self.step, self.n = step, 0

    def pull(self):
        self.n += 1
        return self.step * self.n


# --- what comes out ---


def test_the_winner_comes_out_trained():
    slow, quick = Counter(1.0), Counter(2.0)
    verdict = quiet({"slow": slow, "quick": quick}, 40)
    assert verdict.learner is quick
    assert quick.n == verdict.pulls["quick"] and slow.n == verdict.pulls["slow"]
    assert quick.n + slow.n == verdict.spent == 40
    assert verdict.score == 2.0 * quick.n


@pytest.mark.parametrize("policy", ["r-sr", "r-ucbe", "sh", "rr", "rest-sure", "prob-1"])
def test_the_budget_is_never_overspent(policy):
    made = []

    def counted(best):
        def scores():
            for n in count(1):
                made.append(1)
                yield best * n / (n + 5)

        return scores

    verdict = quiet({str(k): counted(k / 5) for k in range(1, 6)}, 300, policy=policy)
    assert len(made) == verdict.spent == sum(verdict.pulls.values()) <= 300


def test_a_late_bloomer_is_named_as_one():
    verdict = quiet(FIVE, 1200)
    assert verdict.name == "late" and verdict.late_bloomer and verdict.half_time != "late"
    assert f"Late bloomer: {verdict.half_time} led at half-time." in verdict.sentence


def test_losses_are_minimised_and_shown_as_they_are():
    def loss(floor):
        return lambda: (floor + 10 / n for n in count(1))

    verdict = quiet({"low": loss(0.1), "high": loss(3.0)}, 60, maximize=False)
    assert verdict.name == "low"
    assert verdict["high"].score > verdict["low"].score > 0
    assert verdict["high"].estimate > verdict["low"].estimate > 0
    assert verdict["high"].lower <= verdict["high"].upper


def test_higher_losses_mirror_lower_scores():
    mirrored = {
        name: (lambda make: lambda seed: (-x for x in make(seed)))(m) for name, m in FIVE.items()
    }
    up, down = quiet(FIVE, 500), quiet(mirrored, 500, maximize=False)
    assert (up.name, up.pulls, up.half_time) == (down.name, down.pulls, down.half_time)
    assert up.score == -down.score


def test_every_dropped_arm_has_its_numbers():
    verdict = quiet(FIVE, 600)
    out = [arm for arm in verdict.learners if arm.state == "dropped"]
    assert len(out) == 4
    for arm in out:
        assert (
            f"dropped at race pull {arm.left_at}: estimate {arm.estimate:.6g}, versus" in arm.why
        )


def test_a_function_with_a_seed_is_given_one_by_its_name():
    seen = {}

    def make(name):
        def scores(seed):
            seen[name] = seed
            yield from repeat(0.5)

        return scores

    names = ["a", "b", "c"]
    quiet({name: make(name) for name in reversed(names)}, 30, seed=7)
    assert seen == {name: seed_of(7, name) for name in names} and len(set(seen.values())) == 3


def test_a_generator_can_hand_out_its_model():
    def net():
        model = {"weights": 0}
        while True:
            model["weights"] += 1
            yield model["weights"], model

    verdict = quiet({"net": net, "constant": lambda: repeat(0.0)}, 30)
    assert verdict.learner == {"weights": verdict.pulls["net"]}


def test_classes_and_factories_build_learners_where_they_run():
    verdict = quiet({"class": Counter, "factory": lambda: Counter(3.0)}, 30)
    assert isinstance(verdict.learner, Counter) and verdict.name == "factory"


def test_the_frame_and_the_plot_have_every_learner():
    pytest.importorskip("pandas")
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot

    verdict = quiet(FIVE, 200)
    frame = verdict.to_frame()
    assert list(frame.columns) == list(verdict.rows()[0]) and frame["pulls"].sum() == 200
    assert frame["at_horizon_low"].tolist() == [arm.lower for arm in verdict.learners]
    assert list(verdict.to_frame(index="name").index) == list(FIVE)
    with pytest.raises(SettingError, match="index='what', but index must be of the columns arm"):
        verdict.to_frame(index="what")
    figure = verdict.plot()
    assert {text.get_text() for text in figure.axes[0].texts} == set(FIVE)
    pyplot.close(figure)
    figure = verdict.plot("budget")
    assert sum(bar.get_width() for bar in figure.axes[0].patches) == 200
    pyplot.close(figure)
    with pytest.raises(SettingError, match="kind='pie', but kind must be 'curves' or 'budget'"):
        verdict.plot("pie")


@pytest.mark.parametrize("kind", ["curves", "budget"])
@pytest.mark.parametrize("size", [(8, 4.5), (5, 3.2)])
def test_a_plot_of_many_learners_is_readable(kind, size):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot

    names = [f"candidate {k} with a long name" for k in range(40)]
    many = {name: lambda k=k: repeat(k / 40) for k, name in enumerate(names)}
    figure, ax = pyplot.subplots(figsize=size, layout="constrained")
    quiet(many, 400).plot(kind, ax)
    figure.canvas.draw()
    labels = ax.texts if kind == "curves" else ax.get_yticklabels()
    boxes = [label.get_window_extent() for label in labels if label.get_text()]
    assert len(boxes) == 10 if kind == "curves" else len(boxes) > 10
    rows = sorted((box.y0, box.y1) for box in boxes)
    assert all(low[1] <= high[0] + 1 for low, high in pairwise(rows))
    assert all(figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 for box in boxes)
    pyplot.close(figure)


def test_the_title_of_a_plot_fits_its_figure():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot

    verdict = quiet({f"rising {name} curve": make for name, make in FIVE.items()}, 400)
    assert " Late bloomer: " in verdict.sentence  # the longest there is
    figure = verdict.plot()
    figure.canvas.draw()
    title = figure.axes[0].title.get_window_extent()
    assert figure.bbox.x0 <= title.x0 and title.x1 <= figure.bbox.x1
    pyplot.close(figure)


def test_the_winner_can_be_pickled_or_one_is_told_why_not(tmp_path):
    verdict = quiet({"a": Counter(1.0), "b": Counter(2.0)}, 20)
    verdict.save(tmp_path / "winner.pkl")
    assert pickle.loads((tmp_path / "winner.pkl").read_bytes()).n == verdict.pulls["b"]
    verdict = quiet(FIVE, 100)  # generators cannot be pickled
    with pytest.raises(LearnerError, match=r"cannot be pickled .* nothing is lost"):
        verdict.save(tmp_path / "generator.pkl")
    assert not (tmp_path / "generator.pkl").exists()


class Exits(Counter):
    def __reduce__(self):
        raise SystemExit(0)


def test_a_winner_that_exits_when_it_is_pickled_is_told_of(tmp_path):
    verdict = quiet({"a": Exits(2.0), "b": Counter(1.0)}, 20)
    with pytest.raises(LearnerError, match=r"'a' cannot be pickled \(SystemExit: 0\)"):
        verdict.save(tmp_path / "winner.pkl")


@pytest.mark.parametrize("form", ["save", "report"])
def test_a_full_disk_leaves_the_winner_and_the_report_that_were_there(tmp_path, monkeypatch, form):
    file, write = tmp_path / "out", getattr(quiet({"a": Counter(1.0), "b": Counter()}, 20), form)
    write(file)
    before = file.read_bytes()

    def full_steps(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full_steps)
    with pytest.raises(OutputError, match="No space left on device; what was there is unchanged"):
        write(file)
    assert file.read_bytes() == before and list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("form", ["save", "report"])
def test_a_verdict_does_not_overwrite_its_journal(tmp_path, form):
    path = tmp_path / "race.db"
    verdict = quiet({"a": Counter(1.0), "b": Counter()}, 20, journal=path)
    with pytest.raises(OutputError, match=r"the journal and the file to write are both"):
        getattr(verdict, form)(path)
    assert read_verdict(path).summary() == verdict.summary()


# --- resume and look ---


def test_resume_of_a_finished_race_gives_its_verdict_and_winner(tmp_path):
    learners = {"a": lambda: Counter(1.0), "b": lambda: Counter(2.0)}
    verdict = quiet(learners, 30, journal=tmp_path / "race.db")
    again = resume(tmp_path / "race.db", learners, progress=False)
    assert again.summary() == verdict.summary()
    assert again.learner.n == verdict.learner.n


def test_looking_needs_no_learners(tmp_path):
    verdict = quiet(FIVE, 100, journal=tmp_path / "race.db")
    seen = read_verdict(tmp_path / "race.db")
    assert seen.learner is None and seen.summary() == verdict.summary()


def test_the_order_of_the_learners_does_not_matter_to_resume(tmp_path):
    path = tmp_path / "race.db"
    verdict = quiet(FIVE, 100, journal=path)
    again = resume(path, dict(reversed(FIVE.items())), progress=False)
    assert again.summary() == verdict.summary()


def test_learners_of_another_race_are_refused(tmp_path):
    path = tmp_path / "race.db"
    quiet({"a": Counter(), "b": Counter()}, 20, journal=path)
    with pytest.raises(
        JournalMismatch, match=r"another race: learner b is missing; learner c is new"
    ):
        resume(path, {"a": Counter(), "c": Counter()})


def test_a_policy_of_ones_own_is_handed_in_again(tmp_path):
    class Mine(RisingSR):
        pass

    path = tmp_path / "race.db"
    verdict = quiet(FIVE, 100, policy=Mine(), journal=path)
    with pytest.raises(JournalMismatch, match=r"not a policy of this library: pass it as"):
        resume(path, FIVE)
    with pytest.raises(JournalMismatch, match="resumed by the rule that it started with"):
        resume(path, FIVE, policy="sh")
    assert resume(path, FIVE, policy=Mine(), progress=False).summary() == verdict.summary()


# --- Ctrl-C ---


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_finishes_the_pull_and_the_race_goes_on_later(tmp_path, capsys):
    path = tmp_path / "race.db"

    def impatient(seed):
        for n in count(1):
            if n == 9 and path.name == "race.db" and interrupt:
                os.kill(os.getpid(), signal.SIGINT)
            yield 0.9 * n / (n + 3)

    interrupt = True
    learners = FIVE | {"impatient": impatient}
    with pytest.raises(
        Interrupted, match=r"Stopped after pull \d+ of 200; continue with resume\("
    ):
        quiet(learners, 200, journal=path)
    assert "Stopping after the running pull" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    interrupt = False
    assert read_verdict(path).pulls["impatient"] == 9  # the running pull was finished
    again = resume(path, learners, progress=False)
    assert again.summary() == quiet(learners, 200, journal=tmp_path / "whole.db").summary()


@pytest.mark.usefixtures("ctrl_c")
def test_a_second_ctrl_c_stops_at_once_and_the_journal_still_resumes(tmp_path):
    path, presses = tmp_path / "race.db", 2

    def stubborn():
        for n in count(1):
            for _ in range(presses if n == 5 else 0):
                os.kill(os.getpid(), signal.SIGINT)
            yield float(n)

    learners = {"stubborn": stubborn, "other": lambda: repeat(0.0)}
    with pytest.raises(KeyboardInterrupt) as caught:
        quiet(learners, 40, journal=path)
    assert not isinstance(caught.value, Interrupted)
    presses = 0
    assert read_verdict(path).pulls["stubborn"] == 4
    assert resume(path, learners, progress=False).spent == 40


# --- bad input ---


@pytest.mark.parametrize(
    ("learners", "text"),
    [
        ({"a": Counter()}, "at least 2"),
        ({"a": Counter(), "b": 3}, r"learner 'b' is 3, but a learner needs a method pull\(\)"),
        ({"a": Counter(), "b": iter([1.0])}, "Pass the generator function itself"),
        ({"a": Counter(), 2: Counter()}, "named by text"),
        ([Counter(), Counter()], "must be a dict of names"),
    ],
)
def test_what_cannot_race_is_said_before_anything_is_written(tmp_path, learners, text):
    with pytest.raises(LatebloomerError, match=text):
        race(learners, 20, journal=tmp_path / "race.db")
    assert not list(tmp_path.iterdir())


def test_one_object_cannot_race_against_itself():
    one = Counter()
    with pytest.raises(LearnerError, match="'a' and 'b' are the same object"):
        quiet({"a": one, "b": one}, 20)


@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        (
            {"budget": 1},
            BudgetError,
            "budget=1 is too small for 2 learners: foresight needs at least 2",
        ),
        (
            {"budget": 2, "policy": "r-sr"},
            BudgetError,
            "budget=2 is too small for 2 learners: r-sr needs",
        ),
        (
            {},
            SettingError,
            r"give exactly one budget, trainings=3 \(full trainings\), budget=2000",
        ),
        ({"budget": 20, "seconds": 3}, SettingError, "give exactly one budget"),
        ({"seconds": 0}, SettingError, "seconds must be above 0"),
        ({"budget": 20, "policy": "r-usr"}, UnknownName, "did you mean"),
        ({"budget": 20, "runner": "cloud"}, SettingError, "'ray' or a Runner"),
    ],
)
def test_settings_out_of_range_are_said_before_anything_is_written(
    tmp_path, settings, error, text
):
    with pytest.raises(error, match=text):
        race({"a": Counter(), "b": Counter()}, journal=tmp_path / "race.db", **settings)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"timeout": -1}, "timeout must be above 0"),
        ({"retries": 1.5}, "retries must be an integer >= 0"),
        ({"checkpoint_every": 0}, "checkpoint_every must be an integer >= 1"),
        ({"isolate": "yes"}, "isolate must be True or False"),
    ],
)
def test_settings_of_a_runner_out_of_range_are_refused(settings, text):
    with pytest.raises(SettingError, match=text):
        LocalRunner(**settings)


def test_a_race_is_resumed_with_the_runner_that_it_was_started_with(tmp_path, cut):
    path, learners = tmp_path / "race.db", {"a": curve(3, 0.8), "b": curve(3, 0.6)}
    runner = LocalRunner(isolate=True, timeout=60, retries=3, checkpoint_every=7)
    cut(10, lambda: quiet(learners, 30, journal=path, runner=runner))
    made = recorded_runner(read_verdict(path).settings["runner"])
    assert isinstance(made, LocalRunner) and made.as_dict() == runner.as_dict()
    assert resume(path, learners, progress=False).spent == 30


def test_a_function_that_builds_no_learner_is_out_with_that_reason():
    verdict = quiet({"a": Counter, "b": Counter, "c": lambda: 3}, 20)
    assert verdict["c"].state == "failed"
    assert "returned 3, but it must return an object with a method pull()" in verdict["c"].why


# --- failures ---


def failing(at, with_what=None):
    def scores():
        for n in count(1):
            if n == at:
                raise with_what or RuntimeError("boom")
            yield 0.5

    return scores


def test_a_failure_is_retried_from_the_start_and_then_out_and_the_race_goes_on():
    built = []

    def bad():
        built.append(1)
        yield from failing(4)()

    verdict = quiet(
        {"bad": bad, "a": curve(3, 0.8), "b": curve(3, 0.6)}, 60, runner=LocalRunner(retries=2)
    )
    assert len(built) == 3
    # What bad did not use went to the others; an odd pull is not made.
    assert verdict.name == "a" and verdict.pulls == {"bad": 3, "a": 28, "b": 28}
    assert verdict["bad"].state == "failed" and verdict["bad"].pulls == 3
    assert verdict["bad"].why == "pull 4 failed 3 times: RuntimeError: boom"
    assert any("bad failed: pull 4" in warning for warning in verdict.warnings)


def test_a_failure_that_passes_leaves_no_trace_but_a_warning():
    tries = []

    def flaky():
        tries.append(1)
        for n in count(1):
            if n == 5 and len(tries) == 1:
                raise OSError("network is down")
            yield n / (n + 4)

    verdict = quiet({"flaky": flaky, "b": curve(4, 0.5)}, 40)
    assert verdict.name == "flaky" and verdict["flaky"].state == "winner"
    assert verdict.curve("flaky") == [n / (n + 4) for n in range(1, verdict.pulls["flaky"] + 1)]
    assert "flaky: pull 5 failed and was made again" in verdict.warnings


@pytest.mark.parametrize("score", [float("nan"), float("inf"), 1e200, "0.5", None, [1, 2]])
def test_a_score_that_is_no_finite_number_is_a_failure(score):
    def odd():
        yield 0.5
        while True:
            yield score

    verdict = quiet({"odd": odd, "a": curve(3, 0.8), "b": curve(3, 0.6)}, 60)
    assert verdict["odd"].pulls == 1
    assert "but a score must be" in verdict["odd"].why


def test_an_object_without_checkpoint_is_pulled_again_as_it_is():
    class Hiccup(Counter):
        def pull(self):
            if super().pull() == 5:
                raise RuntimeError("once")
            return 1.0

    hiccup = Hiccup()
    verdict = quiet({"hiccup": hiccup, "b": curve(4, 0.5)}, 30)
    assert verdict["hiccup"].state == "winner" and hiccup.n == verdict.pulls["hiccup"] + 1


def test_when_all_fail_each_reason_is_said():
    learners = {"a": failing(1, ValueError("bad a")), "b": failing(1, KeyError("bad b"))}
    with pytest.raises(AllFailed) as caught:
        quiet(learners, 30, runner=LocalRunner(retries=0))
    assert "a: pull 1 failed once: ValueError: bad a" in str(caught.value)
    assert "b: pull 1 failed once: KeyError: 'bad b'" in str(caught.value)
    assert any("Traceback" in note for note in caught.value.__notes__)


def test_a_race_whose_learners_all_failed_says_so_again_on_resume(tmp_path):
    path = tmp_path / "race.db"
    for call in (
        lambda: quiet(
            {"a": failing(3), "b": failing(2)}, 30, journal=path, runner=LocalRunner(retries=0)
        ),
        lambda: resume(path, {"a": failing(3), "b": failing(2)}, progress=False),
        lambda: read_verdict(path),
    ):
        with pytest.raises(AllFailed, match="a: pull 3 failed once: RuntimeError: boom"):
            call()


@pytest.mark.parametrize("policy", ["etc", "rest-sure", "rising-bandits", "auto"])
def test_a_race_whose_learners_have_all_ended_has_a_verdict(policy, tmp_path):
    def ends(best, pulls):
        return lambda: (best * n / (n + 2) for n in range(1, pulls + 1))

    learners = {"worse": ends(0.5, 4), "best": ends(0.9, 4), "longer": ends(0.6, 6)}
    path = tmp_path / "race.db"
    verdict = quiet(learners, 90, policy=policy, journal=path)
    assert verdict.name == "best" and verdict.pulls == {"worse": 4, "best": 4, "longer": 6}
    assert read_verdict(path).name == resume(path, learners, progress=False).name == "best"


def test_one_that_ends_early_keeps_its_score_and_the_budget_goes_on():
    def short():
        yield from [0.9] * 6

    verdict = quiet({"short": short, "a": curve(3, 0.8), "b": curve(3, 0.6)}, 90)
    assert verdict.name == "short" and verdict.pulls["short"] == 6
    assert verdict.pulls["a"] + verdict.pulls["b"] == 84
    assert "finished after 6 pulls" in verdict["short"].why
    assert any("short: finished after" in warning for warning in verdict.warnings)


def test_one_that_ends_before_its_first_score_has_failed():
    verdict = quiet({"none": lambda: iter(()), "a": curve(3, 0.8), "b": curve(3, 0.6)}, 60)
    assert "it ended before its first score" in verdict["none"].why
    assert verdict["none"].state == "failed" and verdict.spent == 60


def test_a_pull_longer_than_timeout_is_abandoned_and_the_arm_built_anew(tmp_path):
    import threading

    release, built = threading.Event(), []

    def stuck():
        built.append(1)
        yield 0.5
        yield 0.5
        release.wait()
        yield 0.5

    verdict = quiet(
        {"stuck": stuck, "a": curve(3, 0.8), "b": curve(3, 0.6)}, 60,
        runner=LocalRunner(timeout=0.3),
        journal=tmp_path / "race.db",
    )  # fmt: skip
    release.set()
    assert len(built) == 2 and verdict.spent == 60
    assert "longer than timeout=0.3 s" in verdict["stuck"].why


def test_an_object_that_is_too_slow_is_out_at_once():
    import threading

    release = threading.Event()

    class Stuck(Counter):
        def pull(self):
            if super().pull() > 2:
                release.wait()
            return 1.0

    verdict = quiet(
        {"stuck": Stuck(), "a": curve(3, 0.8), "b": curve(3, 0.6)},
        60,
        runner=LocalRunner(timeout=0.3),
    )
    release.set()
    assert "pull 3 failed once" in verdict["stuck"].why
    assert "Pass a function that builds the learner" in verdict["stuck"].why


def test_a_learner_that_cannot_be_brought_back_stops_the_resume_and_harms_nothing(tmp_path):
    path, good = tmp_path / "race.db", {"a": curve(3, 0.8), "b": curve(3, 0.6)}

    def breaks(seed):
        yield 0.1
        yield 0.2
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        quiet(good | {"b": breaks}, 40, journal=path)
    before = read_verdict(path).spent

    def gone(seed):
        raise FileNotFoundError("data.csv")
        yield 0.0

    with pytest.raises(LearnerError, match=r"Could not restore learner 'b' to its 2 pulls"):
        resume(path, good | {"b": gone}, progress=False)
    assert read_verdict(path).spent == before
    assert resume(path, good, progress=False).spent == 40


def test_a_winner_that_cannot_be_brought_back_does_not_lose_the_verdict(tmp_path):
    path, learners = tmp_path / "race.db", {"a": curve(3, 0.8), "b": curve(3, 0.6)}
    verdict = quiet(learners, 40, journal=path)

    def gone(seed):
        raise FileNotFoundError("data.csv")
        yield 0.0

    with pytest.raises(LearnerError, match=r"Could not restore learner 'a' to its 20 pulls"):
        resume(path, learners | {"a": gone}, progress=False)
    assert read_verdict(path).summary() == verdict.summary()


def test_scores_that_differ_when_trained_again_are_said():
    import itertools

    fresh = itertools.count()

    def drifting():
        start = next(fresh)
        for n in count(1):
            if n == 6 and start == 0:
                raise RuntimeError("once")
            yield float(start + n)

    verdict = quiet({"drifting": drifting, "b": curve(4, 0.5)}, 30)
    assert any("the learner is not deterministic" in warning for warning in verdict.warnings)
    assert verdict.curve("drifting")[:5] == [1, 2, 3, 4, 5]  # the recorded scores count


def test_importing_races_loads_nothing_heavy():
    heavy = ["numba", "matplotlib", "pandas", "sklearn", "scipy", "rich"]
    code = (
        f"import sys, latebloomer.racing; sys.exit(str([m for m in {heavy} if m in sys.modules]))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.stderr.strip() == "[]"


# --- objects that live on, as in a notebook ---


class Pausing(Counter):
    """Presses Ctrl-C in its fifth pull."""

    def __init__(self, presses=0):
        super().__init__(2.0)
        self.presses = presses

    def pull(self):
        score = super().pull()
        for _ in range(self.presses if self.n == 5 else 0):
            os.kill(os.getpid(), signal.SIGINT)
        return score


@pytest.mark.usefixtures("ctrl_c")
def test_objects_that_raced_before_go_on_without_being_trained_twice(tmp_path):
    learners = {"a": Pausing(presses=1), "b": Counter(1.0)}
    with pytest.raises(Interrupted):
        quiet(learners, 40, journal=tmp_path / "race.db")
    verdict = resume(tmp_path / "race.db", learners, progress=False)
    assert learners["a"].n == verdict.pulls["a"] and learners["b"].n == verdict.pulls["b"]


@pytest.mark.usefixtures("ctrl_c")
def test_fresh_objects_are_trained_to_where_the_race_was(tmp_path):
    with pytest.raises(Interrupted):
        quiet({"a": Pausing(1), "b": Counter(1.0)}, 40, journal=tmp_path / "race.db")
    learners = {"a": Pausing(), "b": Counter(1.0)}
    verdict = resume(tmp_path / "race.db", learners, progress=False)
    assert verdict.learner is learners["a"] and verdict.learner.n == verdict.pulls["a"]


@pytest.mark.usefixtures("ctrl_c")
def test_an_object_stopped_within_a_pull_is_not_trusted(tmp_path):
    learners = {"a": Pausing(presses=2), "b": Counter(1.0)}
    with pytest.raises(KeyboardInterrupt):
        quiet(learners, 40, journal=tmp_path / "race.db")
    with pytest.raises(LearnerError, match=r"learner 'a' .* stopped in the middle of a pull"):
        resume(tmp_path / "race.db", learners, progress=False)


# --- how sure is this? ---


def test_a_range_of_scores_bounds_what_is_said_of_a_learner(tmp_path):
    def few(best):
        return lambda: (best * n / (n + 2) for n in range(1, 1000))

    learners = {"a": few(0.9), "b": few(0.8), "c": few(0.7)}
    path = tmp_path / "race.db"
    verdict = race(learners, 60, journal=path, progress=False, score_range=(0, 1), horizon=500)
    assert all(0 <= arm.lower <= 1 and 0 <= arm.upper <= 1 for arm in verdict.learners)
    assert read_verdict(path).summary() == verdict.summary()
    free = race(learners, 60, journal=None, progress=False, horizon=500)
    assert any(arm.upper > 1 for arm in free.learners)
    for wrong in ((1, 0), (0,), "accuracy", 3):
        with pytest.raises(SettingError, match="score_range"):
            race(learners, 60, journal=None, score_range=wrong)


def test_a_certificate_does_not_open_the_verdict():
    def noisy(seed):
        rng = random.Random(seed)
        return (rng.gauss(0.5, 0.1) for _ in range(1000))

    text = str(race({"a": noisy, "b": noisy}, 60, journal=None, progress=False)).splitlines()
    (place,) = [k for k, line in enumerate(text) if "certified" in line]
    assert place > 3 and text[place].startswith("Not certified: ")
    assert len(text) <= 12


def test_identical_learners_are_called_a_tie():
    def same():
        return (n / (n + 5) for n in range(1, 1000))

    verdict = race({"a": same, "b": same}, 40, journal=None, progress=False)
    assert verdict.certificate == "a tie: a and b have the same estimate"


def test_curves_that_contradict_the_assumptions_get_no_number():
    def falls():
        return (1.0 - n / 100 for n in range(1, 1000))

    def flat():
        return iter([0.1] * 1000)

    verdict = race({"falls": falls, "flat": flat}, 80, journal=None, progress=False)
    assert "contradict the assumptions" in verdict.certificate and not verdict.certified
