"""The refit of a search: its winner is trained again on all rows."""

from math import inf
from time import perf_counter

from latebloomer._util.console import print_aside
from latebloomer._util.text import span_of_time
from latebloomer.integrations.sklearn.search_budget import TICK
from latebloomer.integrations.sklearn.search_race import SearchRace
from latebloomer.integrations.sklearn.sklearn_learner import SklearnLearner
from latebloomer.integrations.sklearn.user_warnings import warn_user
from latebloomer.racing.verdict.verdict import Verdict

PARTS = 20  # parts of a refit with limited time; the time is checked after each
OVERTIME = 0.05  # extra share of a search's time, to train at least as many steps as the race did
# Seconds per step in the race, which also scores, over seconds per step in the refit.
OVERSTATED = 1.7


def refit(race: SearchRace, name: str, verdict: Verdict) -> SklearnLearner | None:
    """Return a new clone of an estimator, trained on all rows; None if the time is too short.

    With `best_iteration`, it is trained for the number of steps with the best score in the race.
    """
    search, candidate = race.search, verdict[name]
    learner = race.learner_of_all_rows(name)
    raced_steps = candidate.pulls if candidate.steps is None else candidate.steps
    pace = max(TICK, race.refit_ratio * candidate.seconds / max(1, raced_steps))
    reserve = race.refit_reserve
    if learner.keeps_best:
        steps = raced_steps = _best_steps(race, name, verdict, pace)
    else:
        steps = _refit_steps(race, learner, candidate.pulls, verdict.horizon)
    seconds_left = inf if reserve is None else max(0.0, reserve.seconds_left())
    if search.verbose:
        seconds = min(seconds_left, steps * pace)
        about = f"about {span_of_time(seconds)}" if seconds >= 1 else "less than a second"
        print_aside(f"refitting {name} on all {race.rows:,} rows, {about}")
    if reserve is None:
        if steps == learner.full_steps and not learner.keeps_best:
            learner.fit()
        else:
            learner.train(steps)
        return learner
    least = min(steps, max(1, raced_steps))
    _train_in_time(learner, steps, least, seconds_left, OVERTIME * reserve.seconds, pace)
    if learner.finished or learner.steps >= least:
        return learner
    warn_user(
        f"The time left was too short to refit {name}: best_estimator_ is the model of the race, "
        f"trained on the training rows only ({raced_steps} steps). Give more seconds, or set "
        "refit=False or extra_refit=True."
    )
    return None


def _train_in_time(
    learner: SklearnLearner, steps: int, least: int, seconds: float, overtime: float, pace: float
) -> None:
    """Train a learner for `steps` steps, or until the time is used up, at the measured pace.

    The first part is small, because only the pace in the race is known. Only the first `least`
    steps may use the overtime.
    """
    until, twentieth = perf_counter() + seconds, -(-steps // PARTS)
    part = min(twentieth, max(1, int(seconds / pace / PARTS)))
    if part * pace / OVERSTATED > seconds + overtime:
        return
    while part and not learner.finished:
        done, began = learner.steps, perf_counter()
        learner.train(part)
        done, now = learner.steps - done, perf_counter()
        pace = max(TICK, (now - began) / max(1, done))
        behind = learner.steps < least
        fits = int((until - now + overtime * behind) / pace)
        enough = fits >= (1 if behind else twentieth / 2)
        # Train half of the steps that fit, because steps may become slower. Train at least one
        # part of the steps: some estimators start from scratch at each call.
        part = min(steps - learner.steps, fits, max(twentieth, fits // 2)) if enough else 0


def _best_steps(race: SearchRace, name: str, verdict: Verdict, pace: float) -> int:
    """Return the number of steps of a learner's best iteration.

    If the race has not found it (the learner was neither fully trained nor out of patience), the
    learner is trained further. This training and the refit together must not cost more than was
    reserved: one full training, or the remaining time.
    """
    learner = race.trained(name, verdict)
    full, raced, reserve = learner.full_steps, learner.steps, race.refit_reserve
    pulls = race.budget.pulls_per_training
    if pulls is None:  # a budget in pulls: as many pulls are reserved as the winner had
        return learner.best_steps
    part = max(1, full // pulls)
    most = full if reserve is not None else (full + raced) // 2
    while not learner.finished and learner.steps + part <= most:
        needed = pace * (learner.steps + 2 * part)
        if reserve is not None and reserve.seconds_left() < needed:
            break
        learner.pull(part)
    return learner.best_steps


def _refit_steps(race: SearchRace, learner: SklearnLearner, pulls: int, horizon: int) -> int:
    """Return the steps of a full training or, with a budget in pulls, the reserved steps."""
    search = race.search
    if search.budget is None:
        return learner.full_steps
    if race.budget.refit_steps is not None and not search.extra_refit:
        return race.budget.refit_steps
    return pulls if search.horizon is None else horizon
