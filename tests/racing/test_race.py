"""Races from end to end: what a user calls and gets."""

import inspect
import os
import pickle
import random
import signal
import threading
from functools import partial, wraps
from itertools import count, pairwise, repeat

import pytest

from latebloomer import LocalRunner, RisingSR, errors, race, read_verdict, resume
from latebloomer.errors import BudgetError, SettingError, UnknownName
from latebloomer.racing.learners.entries import seed_of
from latebloomer.racing.runners.runner_names import recorded_runner
from tests.helpers.learners import FIVE, TWO, Counter, curve
from tests.helpers.races import quiet


def test_the_winner_comes_out_trained():
    slow, quick = Counter(1.0), Counter(2.0)
    verdict = quiet({"slow": slow, "quick": quick}, 40)
    assert verdict.learner is quick
    assert quick.n == verdict.pulls["quick"] and slow.n == verdict.pulls["slow"]
    assert quick.n + slow.n == verdict.spent == 40
    assert verdict.score == 2.0 * quick.n


def test_a_late_bloomer_is_named_as_one():
    verdict = quiet(FIVE, 1200)
    assert verdict.name == "late" and verdict.late_bloomer and verdict.half_time != "late"
    said = f"{verdict.name} is a late bloomer: {verdict.half_time} still led at half-time."
    assert said in verdict.sentence


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


def test_a_seed_that_a_function_is_bound_to_stays():
    seen = []

    def net(seed):
        seen.append(seed)
        yield from repeat(0.5)

    @wraps(net)
    def wrapped(seed):
        return net(seed)

    bound = [partial(net, seed=1), partial(partial(net, seed=9), seed=2), partial(wrapped, seed=3)]
    quiet({name: one for name, one in zip("abc", bound, strict=True)}, 30, seed=7)
    assert seen == [1, 2, 3]


@pytest.fixture
def pyplot():
    pytest.importorskip("matplotlib").use("agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


def test_the_frame_and_the_plot_have_every_learner(pyplot):
    pytest.importorskip("pandas")
    verdict = quiet(FIVE, 200)
    frame = verdict.to_frame()
    assert list(frame.columns) == list(verdict.rows()[0]) and frame["pulls"].sum() == 200
    assert frame["at_horizon_low"].tolist() == [arm.lower for arm in verdict.learners]
    assert list(verdict.to_frame(index="name").index) == list(FIVE)
    with pytest.raises(SettingError, match="index='what', but index must be of the columns arm"):
        verdict.to_frame(index="what")
    assert {text.get_text() for text in verdict.plot().axes[0].texts} == set(FIVE)
    assert sum(bar.get_width() for bar in verdict.plot("budget").axes[0].patches) == 200
    with pytest.raises(SettingError, match="kind='pie', but kind must be 'curves' or 'budget'"):
        verdict.plot("pie")


@pytest.mark.parametrize("kind", ["curves", "budget"])
@pytest.mark.parametrize("size", [(8, 4.5), (5, 3.2)])
def test_a_plot_of_many_learners_is_readable(pyplot, kind, size):
    names = [f"candidate {k} with a long name" for k in range(40)]
    many = {name: lambda k=k: repeat(k / 40) for k, name in enumerate(names)}
    figure, ax = pyplot.subplots(figsize=size, layout="constrained")
    quiet(many, 400).plot(kind, ax)
    figure.canvas.draw()
    labels = ax.texts if kind == "curves" else ax.get_yticklabels()
    boxes = [label.get_window_extent() for label in labels if label.get_text()]
    assert len(boxes) == 10 if kind == "curves" else len(boxes) > 10
    spans = sorted((box.y0, box.y1) for box in boxes)
    assert all(low[1] <= high[0] + 1 for low, high in pairwise(spans))
    assert all(figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 for box in boxes)


def test_the_title_of_a_plot_fits_its_figure(pyplot):
    verdict = quiet({f"rising {name} curve": make for name, make in FIVE.items()}, 400)
    assert " is a late bloomer: " in verdict.sentence  # the longest there is
    figure = verdict.plot()
    figure.canvas.draw()
    title = figure.axes[0].title.get_window_extent()
    assert figure.bbox.x0 <= title.x0 and title.x1 <= figure.bbox.x1


def test_the_axis_of_a_plot_names_only_what_is_drawn(pyplot):
    flat = quiet({"a": partial(repeat, 1), "b": partial(repeat, 2)}, 40)
    assert flat.plot().axes[0].get_xlabel() == "pulls of each learner"
    rising = quiet(FIVE, 400)
    assert "dashed: " in rising.plot().axes[0].get_xlabel()
    shares = quiet(FIVE, trainings=2, full_steps=40)
    axes = shares.plot().axes[0]
    assert "are a full training" in axes.get_xlabel()
    assert all(pull == round(pull) for pull in axes.get_xticks())


class Exits(Counter):
    def __reduce__(self):
        raise SystemExit(0)


def test_the_winner_can_be_pickled_or_one_is_told_why_not(tmp_path):
    verdict = quiet({"a": Counter(1.0), "b": Counter(2.0)}, 20)
    verdict.save(tmp_path / "winner.pkl")
    assert pickle.loads((tmp_path / "winner.pkl").read_bytes()).n == verdict.pulls["b"]
    with pytest.raises(errors.LearnerError, match=r"cannot be pickled .* nothing is lost"):
        quiet(FIVE, 100).save(tmp_path / "generator.pkl")
    with pytest.raises(errors.LearnerError, match=r"'a' cannot be pickled \(SystemExit: 0\)"):
        quiet({"a": Exits(2.0), "b": Counter(1.0)}, 20).save(tmp_path / "exits.pkl")
    assert [path.name for path in tmp_path.iterdir()] == ["winner.pkl"]


@pytest.mark.parametrize("form", ["save", "report"])
def test_a_verdict_does_not_overwrite_its_journal(path, form):
    verdict = quiet({"a": Counter(1.0), "b": Counter()}, 20, journal=path)
    with pytest.raises(errors.OutputError, match=r"the journal and the file to write are both"):
        getattr(verdict, form)(path)
    assert read_verdict(path).summary() == verdict.summary()


def test_a_finished_race_gives_its_verdict_again_and_its_winner_if_there_are_learners(tmp_path):
    learners = {"a": lambda: Counter(1.0), "b": lambda: Counter(2.0)}
    verdict = quiet(learners, 30, journal=tmp_path / "race.db")
    again = resume(tmp_path / "race.db", dict(reversed(learners.items())), progress=False)
    seen = read_verdict(tmp_path / "race.db")
    assert again.summary() == seen.summary() == verdict.summary()
    assert again.learner.n == verdict.learner.n and seen.learner is None


def test_learners_of_another_race_are_refused(path):
    quiet({"a": Counter(), "b": Counter()}, 20, journal=path)
    with pytest.raises(
        errors.JournalMismatch, match="race: learner b is missing; learner c is new"
    ):
        resume(path, {"a": Counter(), "c": Counter()})


def test_a_policy_of_ones_own_is_handed_in_again(path):
    class Mine(RisingSR):
        pass

    verdict = quiet(FIVE, 100, policy=Mine(), journal=path)
    with pytest.raises(errors.JournalMismatch, match=r"not a policy of this library: pass it as"):
        resume(path, FIVE)
    with pytest.raises(errors.JournalMismatch, match="resumed by the rule that it started with"):
        resume(path, FIVE, policy="sh")
    assert resume(path, FIVE, policy=Mine(), progress=False).summary() == verdict.summary()


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
def test_ctrl_c_finishes_the_pull_and_the_race_goes_on_later(tmp_path, capsys):
    path, learners = tmp_path / "race.db", FIVE | {"impatient": lambda: Pausing(1)}
    text = r"Stopped after pull \d+ of 200; continue with resume\("
    with pytest.raises(errors.Interrupted, match=text):
        quiet(learners, 200, journal=path)
    assert "Stopping after the running pull" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert read_verdict(path).pulls["impatient"] == 5  # the running pull was finished
    learners["impatient"] = Pausing
    again = resume(path, learners, progress=False)
    assert again.summary() == quiet(learners, 200, journal=tmp_path / "whole.db").summary()


@pytest.mark.usefixtures("ctrl_c")
def test_a_second_ctrl_c_stops_at_once_and_the_journal_still_resumes(tmp_path):
    path, other = tmp_path / "race.db", lambda: repeat(0.0)
    with pytest.raises(KeyboardInterrupt) as caught:
        quiet({"stubborn": lambda: Pausing(2), "other": other}, 40, journal=path)
    assert not isinstance(caught.value, errors.Interrupted)
    assert read_verdict(path).pulls["stubborn"] == 4
    assert resume(path, {"stubborn": Pausing, "other": other}, progress=False).spent == 40


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("fresh", [False, True])
def test_objects_that_raced_before_go_on_and_new_ones_are_trained_to_there(tmp_path, fresh):
    learners = {"a": Pausing(presses=1), "b": Counter(1.0)}
    with pytest.raises(errors.Interrupted):
        quiet(learners, 40, journal=tmp_path / "race.db")
    learners = {"a": Pausing(), "b": Counter(1.0)} if fresh else learners
    verdict = resume(tmp_path / "race.db", learners, progress=False)
    assert verdict.learner is learners["a"]
    assert learners["a"].n == verdict.pulls["a"] and learners["b"].n == verdict.pulls["b"]


@pytest.mark.usefixtures("ctrl_c")
def test_an_object_stopped_within_a_pull_is_not_trusted(tmp_path):
    learners = {"a": Pausing(presses=2), "b": Counter(1.0)}
    with pytest.raises(KeyboardInterrupt):
        quiet(learners, 40, journal=tmp_path / "race.db")
    with pytest.raises(
        errors.LearnerError, match=r"learner 'a' .* stopped in the middle of a pull"
    ):
        resume(tmp_path / "race.db", learners, progress=False)


ONE = Counter()


NO_RACE = [
    ({"a": Counter()}, "^1 learner was given, but a race needs at least 2"),
    ({"a": Counter(), "b": 3}, r"learner 'b' is 3, but a learner needs a method pull\(\)"),
    ({"a": Counter(), "b": iter([1.0])}, "Pass the generator function itself"),
    ({"a": Counter(), 2: Counter()}, "named by text"),
    ([Counter(), Counter()], "must be a dict of names"),
    ({"a": ONE, "b": ONE}, "'a' and 'b' are the same object"),
]


@pytest.mark.parametrize("learners, text", NO_RACE)
def test_what_cannot_race_is_said_before_anything_is_written(tmp_path, learners, text):
    with pytest.raises(errors.LatebloomerError, match=text):
        race(learners, 20, journal=tmp_path / "race.db")
    assert not list(tmp_path.iterdir())


BAD_SETTINGS = [
    ({"budget": 1}, BudgetError, "budget=1 is too small for 2 learners: foresight needs at least"),
    ({"budget": 2, "policy": "r-sr"}, BudgetError, "budget=2 is too small for 2 learners: r-sr"),
    ({}, SettingError, r"No budget was given. Give .* trainings=3 \(full trainings\), "),
    ({"budget": 20, "seconds": 3}, SettingError, "^budget=20 and seconds=3 were both given"),
    ({"seconds": 0}, SettingError, "seconds must be above 0: "),
    ({"budget": 20, "policy": "r-usr"}, UnknownName, "did you mean"),
    ({"budget": 20, "runner": "cloud"}, SettingError, "'ray' or a Runner"),
    ({"budget": 60, "score_range": (1, 0)}, SettingError, "score_range"),
    ({"budget": 60, "maximize": "minimize"}, SettingError, "maximize must be True if higher"),
    ({"budget": 60, "maximize": None}, SettingError, "or False if scores are losses"),
    ({"budget": 60, "horizon": True}, SettingError, "horizon=True, but horizon must be a whole"),
    ({"budget": 60, "watch": "no"}, SettingError, "watch='no', but watch must be True or False"),
    ({"budget": 60, "progress": "no"}, SettingError, "progress must be True or False"),
    ({"budget": 60, "seed": True}, SettingError, "seed=True, but seed must be an integer"),
    ({"budget": 60, "seed": 2**63}, SettingError, "but seed must be below 2.63: a journal"),
    ({"budget": 60, "min_pulls": 1.5}, SettingError, "min_pulls=1.5, but min_pulls must be a wh"),
    ({"budget": [60]}, SettingError, r"budget=\[60\], but budget must be a whole number"),
    ({"budget": 10**30}, SettingError, "budget has 100 bits, but budget must be at most 2.53"),
    ({"budget": 60, "winner_share": "x"}, SettingError, "winner_share must be a number"),
    ({"budget": True}, SettingError, "budget=True, but budget must be a whole number"),
    ({"seconds": True}, SettingError, "seconds=True, but seconds must be a number"),
    ({"budget": 60, "score_range": (0,)}, SettingError, "score_range"),
    ({"budget": 60, "score_range": "accuracy"}, SettingError, "score_range"),
]


@pytest.mark.parametrize("settings, error, text", BAD_SETTINGS)
def test_bad_settings_are_said_before_anything_is_written(tmp_path, settings, error, text):
    with pytest.raises(error, match=text):
        race({"a": Counter(), "b": Counter()}, journal=tmp_path / "race.db", **settings)
    assert not list(tmp_path.iterdir())


BAD_RUNNERS = [
    ({"timeout": -1}, "timeout must be above 0: "),
    ({"retries": 1.5}, "retries must be an integer >= 0"),
    ({"checkpoint_every": 0}, "checkpoint_every must be an integer >= 1"),
    ({"isolate": "yes"}, "isolate must be True or False"),
]


@pytest.mark.parametrize("settings, text", BAD_RUNNERS)
def test_settings_of_a_runner_out_of_range_are_refused(settings, text):
    with pytest.raises(SettingError, match=text):
        LocalRunner(**settings)


def test_a_race_is_resumed_with_the_runner_that_it_was_started_with(tmp_path, cut):
    path, runner = tmp_path / "race.db", LocalRunner(isolate=True, timeout=60, retries=3)
    cut(10, lambda: quiet(TWO, 30, journal=path, runner=runner))
    made = recorded_runner(read_verdict(path).settings["runner"])
    assert isinstance(made, LocalRunner) and made.as_dict() == runner.as_dict()
    assert resume(path, TWO, progress=False).spent == 30


def failing(at, error):
    def scores():
        yield from repeat(0.5, at - 1)
        raise error

    return scores


def test_a_failure_is_retried_from_the_start_and_then_out_and_the_race_goes_on():
    built = []

    def bad():
        built.append(1)
        yield from failing(4, RuntimeError("boom"))()

    verdict = quiet({"bad": bad} | TWO, 60, runner=LocalRunner(retries=2))
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
    assert "flaky: pull 5 failed and was repeated" in verdict.warnings


def test_an_object_without_checkpoint_is_pulled_again_as_it_is():
    class Hiccup(Counter):
        def pull(self):
            if super().pull() == 5:
                raise RuntimeError("once")
            return 1.0

    hiccup = Hiccup()
    verdict = quiet({"hiccup": hiccup, "b": curve(4, 0.5)}, 30)
    assert verdict["hiccup"].state == "winner" and hiccup.n == verdict.pulls["hiccup"] + 1


def test_when_all_fail_each_reason_is_said_and_again_on_resume(path):
    learners = {"a": failing(3, ValueError("bad a")), "b": failing(1, KeyError("bad b"))}
    for call in (
        lambda: quiet(learners, 30, journal=path, runner=LocalRunner(retries=0)),
        lambda: resume(path, learners, progress=False),
        lambda: read_verdict(path),
    ):
        with pytest.raises(
            errors.AllFailed, match="a: pull 3 failed once: ValueError: bad a"
        ) as caught:
            call()
        assert "b: pull 1 failed once: KeyError: 'bad b'" in str(caught.value)
        assert any("Traceback" in note for note in caught.value.__notes__)


def test_when_all_fail_alike_the_reason_and_its_traceback_are_shown_once():
    learners = {f"net {i}": failing(1, ValueError("too\n  wide")) for i in range(7)}
    with pytest.raises(errors.AllFailed) as caught:
        quiet(learners | {"odd": failing(1, KeyError("odd"))}, 80, runner=LocalRunner(retries=0))
    assert str(caught.value).splitlines()[1:] == [
        "  net 0, net 1, net 2, net 3 and 3 more: pull 1 failed once: ValueError: too wide",
        "  odd: pull 1 failed once: KeyError: 'odd'",
    ]
    assert len(caught.value.__notes__) == 2


def test_when_the_last_learner_in_the_race_fails_a_dropped_one_is_kept(path):
    learners = {"a": curve(4, 0.3), "b": curve(4, 0.4), "last": failing(40, ValueError("bad"))}
    verdict = quiet(learners, 120, policy="i-epoch", journal=path, winner_share=0.1)
    assert verdict.name == "b" and verdict["b"].state == "winner" and verdict.over
    assert verdict.pulls["b"] < 39 and verdict["last"].state == "failed"
    assert "all remaining learners failed; b, dropped before, is kept" in verdict.reason
    assert "every arm that remained then failed. Selected" in verdict["b"].why
    for same in (read_verdict(path), resume(path, learners, progress=False)):
        assert same.summary() == verdict.summary()


@pytest.mark.parametrize("policy", ["etc", "rest-sure", "rising-bandits", "auto"])
def test_a_race_whose_learners_have_all_ended_has_a_verdict(policy, path):
    shapes = {"worse": (0.5, 4), "best": (0.9, 4), "longer": (0.6, 6)}
    learners = {name: curve(2, best, end=end) for name, (best, end) in shapes.items()}
    verdict = quiet(learners, 90, policy=policy, journal=path)
    assert verdict.name == "best" and verdict.pulls == {"worse": 4, "best": 4, "longer": 6}
    assert read_verdict(path).name == resume(path, learners, progress=False).name == "best"


def test_one_that_ends_early_keeps_its_score_and_the_budget_goes_on():
    verdict = quiet({"short": lambda: iter([0.9] * 6)} | TWO, 90)
    assert verdict.name == "short" and verdict.pulls["short"] == 6
    assert verdict.pulls["a"] + verdict.pulls["b"] == 84
    assert "finished after 6 pulls" in verdict["short"].why
    assert "finished after" not in str(verdict.warnings)  # which is no fault


NO_LEARNERS = [
    (iter(()), "it ended before its first score"),
    (3, "returned 3, but it must return an object with a method pull()"),
]


@pytest.mark.parametrize("made, text", NO_LEARNERS)
def test_what_builds_no_learner_is_out_with_that_reason(made, text):
    verdict = quiet({"none": lambda: made} | TWO, 60)
    assert text in verdict["none"].why
    assert verdict["none"].state == "failed" and verdict.spent == 60


@pytest.fixture
def release():
    event = threading.Event()
    yield event
    event.set()


def test_a_pull_longer_than_timeout_is_abandoned_and_the_arm_built_anew(tmp_path, release):
    built = []

    def stuck():
        built.append(1)
        yield 0.5
        yield 0.5
        release.wait()

    runner, path = LocalRunner(timeout=0.3), tmp_path / "race.db"
    verdict = quiet({"stuck": stuck} | TWO, 60, runner=runner, journal=path)
    assert len(built) == 2 and verdict.spent == 60
    assert "longer than timeout=0.3 s" in verdict["stuck"].why


def test_an_object_that_is_too_slow_is_out_at_once(release):
    class Stuck(Counter):
        def pull(self):
            if super().pull() > 2:
                release.wait()
            return 1.0

    verdict = quiet({"stuck": Stuck()} | TWO, 60, runner=LocalRunner(timeout=0.3))
    assert "pull 3 failed once" in verdict["stuck"].why
    assert "Pass a function that builds the learner" in verdict["stuck"].why


def gone(seed):
    raise FileNotFoundError("data.csv")
    yield 0.0


def test_a_learner_that_cannot_be_brought_back_stops_the_resume_and_harms_nothing(path, cut):
    cut(5, lambda: quiet(TWO, 40, journal=path))
    with pytest.raises(errors.LearnerError, match=r"Could not restore learner 'b' to its 2 pulls"):
        resume(path, TWO | {"b": gone}, progress=False)
    assert read_verdict(path).spent == 5
    verdict = resume(path, TWO, progress=False)
    with pytest.raises(
        errors.LearnerError, match=r"Could not restore learner 'a' to its 20 pulls"
    ):
        resume(path, TWO | {"a": gone}, progress=False)  # the winner
    assert read_verdict(path).summary() == verdict.summary()


def test_scores_that_differ_when_trained_again_are_said():
    fresh = count()

    def drifting():
        start = next(fresh)
        for n in count(1):
            if n == 6 and start == 0:
                raise RuntimeError("once")
            yield float(start + n)

    verdict = quiet({"drifting": drifting, "b": curve(4, 0.5)}, 30)
    assert any("the learner is not deterministic" in warning for warning in verdict.warnings)
    assert verdict.curve("drifting")[:5] == [1, 2, 3, 4, 5]  # the recorded scores count


def test_a_range_of_scores_bounds_what_is_said_of_a_learner(path):
    learners = {"a": curve(2, 0.9), "b": curve(2, 0.8), "c": curve(2, 0.7)}
    verdict = quiet(learners, 60, journal=path, score_range=(0, 1), horizon=500)
    assert all(0 <= arm.lower <= 1 and 0 <= arm.upper <= 1 for arm in verdict.learners)
    assert read_verdict(path).summary() == verdict.summary()
    assert any(arm.upper > 1 for arm in quiet(learners, 60, horizon=500).learners)


def test_messages_of_learners_get_no_second_full_stop():
    def missing():
        yield 0.5
        raise FileNotFoundError("No such file.")

    text = quiet({"missing": missing, "a": curve(4, 0.5), "b": curve(4, 0.4)}, 30).details()
    assert text.count("FileNotFoundError: No such file.") == 1 and ".." not in text


def test_the_printed_verdict_has_each_reason_of_failures_once():
    def broken(text):
        def learner():
            yield 0.5
            raise ValueError(text)

        return learner

    learners = {"x": broken("text in column 3"), "y": broken("text in column 3")}
    learners |= {"z": broken("no memory"), "a": curve(4, 0.5), "b": curve(4, 0.4)}
    verdict = quiet(learners, 30)
    for text in (str(verdict), verdict.details()):
        assert "x, y failed: pull 2 failed twice: ValueError: text in column 3." in text
        assert "z failed: pull 2 failed twice: ValueError: no memory." in text
        assert text.count("text in column 3") == text.count("no memory") == 1
    assert "warning" not in str(verdict)  # nothing that is not shown


@pytest.mark.parametrize(
    ("wrong", "meant"), [("verbose", "progress"), ("learnerz", "learners"), ("seed_", "seed")]
)
def test_an_argument_that_race_does_not_have_names_the_one_that_is_meant(wrong, meant):
    with pytest.raises(TypeError, match=f"no argument '{wrong}'; did you mean '{meant}'"):
        race(TWO, 30, **{wrong: True})
    assert "trainings" in inspect.signature(race).parameters


def test_a_certificate_does_not_open_the_verdict():
    def noisy(seed):
        rng = random.Random(seed)
        return (rng.gauss(0.5, 0.1) for _ in range(1000))

    text = str(quiet({"a": noisy, "b": noisy}, 60)).splitlines()
    (place,) = [k for k, line in enumerate(text) if "no proof" in line]
    assert place > 3 and text[place].startswith(
        "There is no proof at this budget, as usual for short races: "
    )
    assert len(text) <= 12


def test_identical_learners_are_called_a_tie():
    verdict = quiet({"a": curve(5, 1.0), "b": curve(5, 1.0)}, 40)
    assert verdict.certificate == "there is a tie: a and b have the same estimate"


def test_curves_that_contradict_the_assumptions_get_no_number():
    falling = {"falls": lambda: (1.0 - n / 100 for n in count(1))}
    verdict = quiet(falling | {"flat": lambda: repeat(0.1)}, 80)
    assert "contradict the assumptions" in verdict.certificate and not verdict.certified
