"""Identify, then deliver: the policy names the best, the rest of the budget trains it on."""

import io
import json
import pickle
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from latebloomer import LocalRunner, race, read_verdict, resume
from latebloomer.errors import BudgetError, JournalMismatch, LearnerError, SettingError, TellError
from latebloomer.page.race_html import race_html
from latebloomer.policies.registry import REGISTRY, label_of, make_policy
from latebloomer.racing.displays import display
from latebloomer.racing.displays.live_table import LiveTable
from latebloomer.racing.journal import files
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.settings import Settings
from latebloomer.racing.verdict.page_data import page_data
from latebloomer.session import events
from latebloomer.session.checked_inputs import set_aside
from latebloomer.session.events import WinnerSelected
from latebloomer.session.session import Session
from latebloomer.session.session_state import Stage
from tests.helpers import races
from tests.helpers.journals import rows
from tests.helpers.learners import FIVE, Counter, curve

ALL = ["auto", *(label_of(kind.examples()[0]) for kind in REGISTRY.values())]
KINDS = ("auto", "r-sr", "r-ucbe", "rest-sure", "sh", "asha")  # one of each; the others are slow
SPECS = [spec if spec in KINDS else pytest.param(spec, marks=pytest.mark.slow) for spec in ALL]
ARMS = 5


def reward(arm, n):
    """Rises, crosses and never ties."""
    return (0.4 + 0.11 * arm) * n / (n + 1 + 3 * arm) + 1e-3 * ((7 * n + arm) % 5)


def play(session, stop=None):
    made = 0
    while not session.over and made != stop:
        arm = session.ask()
        session.tell(arm, reward(arm, session.pulls[arm] + 1))
        made += 1
    return session


def named(policy, budget, share, horizon=None):
    """A session whose policy is done and whose winner is now trained on."""
    session = play(Session(policy, ARMS, budget, horizon, winner_share=share))
    session.apply(WinnerSelected(session.recommend().arm, session.budget))
    return session


@given(budget=st.integers(1, 10**7), thousandths=st.integers(0, 999))
def test_what_is_kept_is_the_share_rounded_down_as_it_is_written(budget, thousandths):
    pulls = set_aside(budget, thousandths / 1000)
    assert pulls == int(Decimal(thousandths) * budget / 1000)
    assert 1 <= budget - pulls <= budget


@pytest.mark.parametrize("share", [1, 1.5, -0.1, float("nan"), "half", True])
def test_a_share_that_leaves_nothing_to_decide_with_is_refused(share):
    with pytest.raises(SettingError, match="winner_share"):
        quiet(100, winner_share=share)


def test_a_budget_too_small_without_what_is_kept_says_so(tmp_path):
    text = r"winner_share=0.6 keeps 6 of budget=10 for the winner, .* budget=4 is too small for 5"
    with pytest.raises(BudgetError, match=text):
        quiet(10, winner_share=0.6, journal=tmp_path / "race.db")
    assert not list(tmp_path.iterdir())


@given(st.sampled_from(ALL), st.integers(100, 200), st.sampled_from([0.1, 0.29, 0.5, 0.7]))
def test_the_policy_has_what_is_not_kept_and_the_winner_all_the_rest(policy, budget, share):
    session = play(Session(policy, ARMS, budget, winner_share=share))
    before, verdict = session.pulls, session.recommend()
    assert session.spent <= session.deciding_budget == budget - set_aside(budget, share)
    assert session.stage is Stage.SELECTING and session.horizon == budget
    session.apply(WinnerSelected(verdict.arm, session.budget))
    left = budget - sum(before)
    assert session.ask_phase(3) == ({verdict.arm: left} if left else {})
    play(session)
    assert session.over and session.spent == budget and not session.ask_phase()
    others = [i for i in range(ARMS) if i != verdict.arm]
    assert [session.pulls[i] for i in others] == [before[i] for i in others]


@pytest.mark.parametrize("policy", SPECS)
def test_who_was_named_stays_named_by_the_same_numbers(policy):
    session = play(Session(policy, ARMS, 150, winner_share=0.4))

    def known():
        views = [session.explain(i) for i in range(ARMS)]
        numbers = [(view.decision, view.estimate, view.forecast) for view in views]
        ranks = [row.estimate for row in session.standings()]
        return session.recommend().name, session.recommend().estimates, ranks, numbers

    before = known()
    session.apply(WinnerSelected(session.recommend().arm, session.budget))
    play(session)
    assert known() == before


@pytest.mark.parametrize("policy", SPECS)
@pytest.mark.parametrize("share", [0.2, 0.6])
def test_naming_is_that_of_a_race_with_the_smaller_budget(policy, share):
    alone = play(Session(policy, ARMS, 150 - set_aside(150, share), horizon=150))
    assert named(policy, 150, share).selection == alone.selection


@given(st.sampled_from(ALL), st.integers(0, 40), st.sampled_from(["failed", "finished"]))
def test_a_winner_that_takes_no_more_pulls_ends_it_and_stays_the_winner(policy, made, kind):
    session = play(named(policy, 120, 0.4), made)
    verdict, spent = session.recommend(), session.spent
    session.apply(events.LearnerLeft(verdict.arm, kind))
    assert session.over and session.recommend().arm == verdict.arm and not session.trainable
    assert session.recommend().estimates == verdict.estimates and session.spent == spent
    assert spent == 120 or "takes no more pulls" in session.reason


@given(policy=st.sampled_from(ALL), made=st.integers(0, 50), more=st.integers(-10, 40))
def test_it_is_the_same_again_from_a_pickle_and_with_another_budget(policy, made, more):
    session = play(named(policy, 120, 0.4), made)
    twin = pickle.loads(pickle.dumps(session))
    assert twin == session
    for one in (session, twin):
        budget = max(one.spent, one.budget + more)
        one.apply(events.BudgetReplanned(budget, one.deciding_budget))
    assert play(session) == play(twin) and session.spent == max(session.budget, session.spent)


def test_only_the_winner_may_be_told():
    session = named("rr", 100, 0.5)
    other = next(i for i in range(ARMS) if i != session.winner)
    with pytest.raises(TellError, match="Received a score for arm"):
        session.tell(other, 0.5)


def test_a_horizon_that_the_winner_reaches_ends_its_training():
    session = play(named("r-sr", 200, 0.5, horizon=60))
    assert session.pulls[session.winner] == 60 and session.spent < 200
    assert "has reached the horizon of 60 pulls" in session.reason


def page(verdict):
    return race_html(page_data(verdict))


def quiet(budget=600, learners=FIVE, **settings):
    return races.quiet(learners, budget, **settings)


def changes(path):
    return rows(path, "SELECT t, kind, arm, value FROM changes ORDER BY id")


@pytest.mark.parametrize("policy", ["auto", "r-sr", "r-ucbe", "sh", "rest-sure"])
def test_a_race_spends_its_budget_and_says_both(policy, path):
    verdict = quiet(winner_share=0.4, policy=policy, journal=path)
    assert verdict.spent == sum(verdict.pulls.values()) == verdict.budget == 600
    assert verdict.selected.name == verdict.name and verdict.selected.estimate == verdict.estimate
    assert verdict.selected.at <= 360 and verdict.selected.final and verdict.trained.final
    assert verdict.trained.pulls == verdict.pulls[verdict.name]
    assert verdict.trained.pulls_after_selection == 600 - verdict.selected.at
    assert verdict.trained.score == verdict.score == verdict.curve(verdict.name)[-1]
    arm = list(FIVE).index(verdict.name)  # in the journal before the first pull that follows
    assert changes(path)[-1] == (verdict.selected.at, "WinnerSelected", arm, 600)


def test_naming_half_time_and_hindsight_are_those_of_the_race_without_delivery():
    long, short = quiet(winner_share=0.4), quiet(360, horizon=600)
    assert (long.name, long.estimates) == (short.name, short.estimates)
    assert (long.half_time, long.hindsight) == (short.half_time, short.hindsight)
    assert (long.selected, short.trained.pulls_after_selection) == (short.selected, 0)
    assert long.score > short.score  # and it was trained on
    assert [page(one).count('class="ring ') for one in (long, short)] == [1, 0]  # the selection


@pytest.mark.parametrize("winner_share", [0.0, 0.3])
def test_both_are_in_everything_that_is_shown_or_kept(path, winner_share):
    verdict = quiet(winner_share=winner_share, journal=path)
    for line in (str(verdict.selected), str(verdict.trained)):
        assert line in verdict.details() and line in page(verdict)
        assert line in read_verdict(path).details()
        assert (line in str(verdict)) == (winner_share > 0)
    kept_as = dict(rows(path, "SELECT key, value FROM verdict"))
    assert json.loads(kept_as["selected"])["estimate"] == verdict.estimate
    assert json.loads(kept_as["trained"])["score"] == verdict.score


@pytest.mark.parametrize("at", [359, 360, 361, 480, 599])
@pytest.mark.parametrize("policy", ["auto", "r-ucbe"])
def test_a_race_cut_short_goes_on_to_the_same_end(tmp_path, cut, at, policy):
    path, other = tmp_path / "race.db", tmp_path / "whole.db"
    whole = quiet(winner_share=0.4, policy=policy, journal=other)
    cut(at, lambda: quiet(winner_share=0.4, policy=policy, journal=path))
    seen = read_verdict(path)
    assert not seen.over and seen.spent == at and seen.budget == 600
    if at > 360:
        assert seen.selected == whole.selected and "Score so far" in str(seen)
    assert resume(path, FIVE, progress=False).summary() == whole.summary()
    assert read_verdict(path).summary() == whole.summary() and changes(path) == changes(other)


def test_resume_trains_only_the_winner_again(tmp_path, cut):
    path, built = tmp_path / "race.db", []

    def counted(name):
        def scores(seed):
            built.append(name)
            yield from FIVE[name](seed)

        return scores

    cut(500, lambda: quiet(winner_share=0.4, journal=path))
    verdict = resume(path, {name: counted(name) for name in FIVE}, progress=False)
    assert built == [verdict.name]


@pytest.mark.parametrize("end, pulls", [(70, {"a": 70, "b": 50}), (10, {"a": 10, "b": 90})])
def test_a_winner_that_ends_by_itself_is_handed_out_as_it_is(end, pulls):
    verdict = quiet(200, {"a": curve(3, 0.9, end=end), "b": curve(3, 0.5)}, winner_share=0.5)
    assert verdict.name == "a" and verdict.pulls == pulls and verdict.over
    assert verdict.trained.pulls_after_selection == max(0, end - 50)
    assert f"finished after {end} pulls. Selected with" in verdict["a"].why
    if end == 70:
        assert "a takes no more pulls; 80 of 200 pulls are left over" in verdict.reason


def test_a_winner_that_fails_is_handed_out_as_it_was(tmp_path):
    class Breaks(Counter):
        def pull(self):
            if self.n == 70:
                raise RuntimeError("boom")
            return super().pull()

    path, learners = tmp_path / "race.db", {"a": Breaks, "b": curve(3, 0.5)}
    verdict = quiet(200, learners, winner_share=0.5, journal=path)
    assert verdict.name == "a" and verdict.trained.pulls == verdict.learner.n == 70
    assert verdict["a"].state == "winner" and verdict.selected.pulls == 50
    assert "a failed: pull 71 failed twice: RuntimeError: boom" in verdict.warnings
    assert verdict["a"].why.startswith("pull 71 failed twice: RuntimeError: boom. Selected")
    again = resume(path, learners, progress=False)
    assert again.summary() == verdict.summary() == read_verdict(path).summary()
    assert again.learner.n == 70
    # In hindsight it had not failed: nobody but the winner was trained any more.
    assert [rule.pick for rule in verdict.hindsight] == ["a", "a"]


def test_a_winner_that_cannot_be_brought_back_does_not_lose_the_verdict(tmp_path):
    path, tries = tmp_path / "race.db", []

    def once(seed):
        tries.append(1)
        if len(tries) > 1:
            raise FileNotFoundError("data.csv")
        yield from curve(3, 0.9, fail=71)(seed)

    learners, once_only = {"a": once, "b": curve(3, 0.5)}, LocalRunner(retries=0)
    with pytest.raises(LearnerError, match="Could not restore learner 'a' to its 70 pulls"):
        quiet(200, learners, winner_share=0.5, journal=path, runner=once_only)
    assert read_verdict(path).name == "a" and read_verdict(path).over


def test_a_small_budget_is_judged_without_what_is_kept():
    text = "the budget of 20 pulls of 40 to select the winner is small: 25 are"
    assert any(text in warning for warning in quiet(40, winner_share=0.5).warnings)


def test_a_naming_that_the_rule_would_not_make_is_refused(tmp_path, path):
    quiet(winner_share=0.4, journal=path)
    opened = files.read(path)
    first, *others = [entry.event for entry in opened.read()]
    opened.close()
    forged = files.create(tmp_path / "forged.db", first)
    for event in others:
        forged.append(replace(event, arm=4) if isinstance(event, WinnerSelected) else event)
    forged.close()
    with pytest.raises(JournalMismatch, match=r"Arm 4 cannot be selected: Foresight.* selects"):
        read_verdict(tmp_path / "forged.db")


def test_the_lines_say_who_is_trained_on(capfd, monkeypatch):
    race(FIVE, 600, winner_share=0.4, journal=None)
    said = capfd.readouterr().err
    assert ", the winner for 240 more pulls.\n" in said
    assert ": selected with estimate " in said
    assert ", trained further with the remaining 240 pulls" in said
    monkeypatch.setattr(display, "EVERY", 0.0)
    race(FIVE, 600, winner_share=0.4, journal=None)
    assert " is selected and trained further, with score " in capfd.readouterr().err


def test_the_table_says_who_is_trained_on():
    settings = Settings(policy=make_policy("r-sr"), budget=100, winner_share=0.4)
    state = RaceState(events.Created("race", settings.as_dict(), tuple("abcde")))
    session = play(state.session)
    state.apply(WinnerSelected(session.recommend().arm, session.budget))
    progress = LiveTable(state)
    with progress.shown():
        console = Console(file=io.StringIO(), width=100)
        console.print(progress.table(console.size))
    shown = console.file.getvalue()
    name = session.names[session.winner]
    assert f"pull 60 of 100 · training {name} further · " in shown
    (row,) = [line for line in shown.splitlines() if line.startswith(f"{name} ")]
    assert row.rstrip().endswith("trained further")


def test_looking_before_the_naming_tells_the_budgets_apart(path, cut):
    cut(100, lambda: quiet(winner_share=0.4, journal=path))
    seen = read_verdict(path)
    assert seen.reason == "500 of 600 pulls left, 240 of them for the winner"
    assert "Leading: " in seen.details() and not seen.selected.final
