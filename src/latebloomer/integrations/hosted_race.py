"""A race inside another tool: it says which trials of the tool may continue.

The tool's scheduler reports results and asks what each trial does next. The phases of the policy
define the level up to which a trial is trained before it waits for the other trials. All state is
in the journal: after a kill, a new process reads it and continues, independent of what the tool
itself has stored.
"""

import json
import os
import uuid
from collections.abc import Mapping
from numbers import Real
from pathlib import Path
from typing import Any, NoReturn
from weakref import WeakValueDictionary

from latebloomer._util.atomic_files import make_folder
from latebloomer._util.text import plain_repr
from latebloomer.errors import LearnerError, SettingError, need_whole, require
from latebloomer.integrations.library_learner import need_reported
from latebloomer.policies.base import Policy
from latebloomer.racing.journal import files, new_names
from latebloomer.racing.journal.event_log import EventLog
from latebloomer.racing.journal.journal_file import Place
from latebloomer.racing.learners.learner import as_score
from latebloomer.racing.race_state import RaceState, fresh_session
from latebloomer.racing.recorded_race import RecordedRace, process_started
from latebloomer.racing.request import Budget, RaceRequest, Rules
from latebloomer.racing.same_race import holds_race, need_same, need_same_settings, race_in
from latebloomer.racing.verdict.build import build_verdict
from latebloomer.racing.verdict.verdict import Verdict
from latebloomer.session import events
from latebloomer.session.arm_views import NUMBERED
from latebloomer.session.session import Session

GO_ON, WAIT, END = "continue", "wait", "end"  # what a trial does next: the values of `next_of`
# The latest race of each journal in this process.
_open: WeakValueDictionary[Path, "HostedRace"] = WeakValueDictionary()


class HostedRace:
    """A race of `n_trials` trials that another tool creates and trains.

    A pull is one result of a trial, and `budget` is a number of results; `trainings=8,
    full_steps=81` is a budget of eight full trainings of 81 results each. The journal is opened
    when the first trial is added, so schedulers can be copied and pickled before that.
    """

    def __init__(
        self,
        n_trials: int,
        journal: Place,
        *,
        budget: int | None = None,
        trainings: float | None = None,
        full_steps: int | None = None,
        horizon: int | None = None,
        policy: Policy | str = "auto",
        min_pulls: int | None = None,
        seed: int = 0,
        maximize: bool = True,
    ) -> None:
        need_several("n_trials", n_trials)
        if trainings is not None and full_steps is None:
            raise SettingError(f"trainings={trainings} also needs full_steps=, in results")
        named = isinstance(journal, str | os.PathLike) and not new_names.names_folder(journal)
        require(named, "journal", journal, "a file", "after a kill the race continues from it")
        self.place = Path(journal).absolute()
        self.names = tuple(f"{NUMBERED}{k}" for k in range(n_trials))
        request = RaceRequest(
            learners=dict.fromkeys(self.names, elsewhere),
            budget=Budget(
                pulls=budget,
                trainings=trainings,
                horizon=horizon,
                full_steps=full_steps,
                pulls_per_training=full_steps,
            ),
            rules=Rules(policy=policy, seed=seed, maximize=maximize, min_pulls=min_pulls),
        )
        self.settings = request.settings()
        self._policy = policy  # as the caller passed it
        self._race: RecordedRace | None = None
        self._closed = False
        self._seen: set[int | None] = set()  # arms assigned in this process
        self._warned: set[int | None] = set()  # arms with a warning; None stands for the race
        need_phases(fresh_session(self.settings, self.names))

    # --- the journal ---

    @property
    def state(self) -> RaceState:
        """The race so far; the journal is read or created when it is first used."""
        if self._race is None:
            self._race, self._closed = self._taken_up(), False
            if self._race.state.session.over:
                self.close()
            else:
                self.record(process_started())
        return self._race.state

    def _taken_up(self) -> RecordedRace:
        if self.place in _open:  # the race of an interrupted tuner, as in a notebook
            _open[self.place].close()
        _open[self.place] = self
        if holds_race(self.place):
            need_same_settings(self.place, self.settings, self._policy)
            was, now = len(race_in(self.place).names), {"n_trials": len(self.names)}
            need_same(self.place, {"n_trials": was}, now, "Give that number.")
            journal: EventLog = files.reopen(self.place)
        else:
            make_folder(self.place.parent)
            created = events.Created(uuid.uuid4().hex[:12], self.settings.as_dict(), self.names)
            journal = files.create(self.place, created)
        return RecordedRace(RaceState.replayed(journal.read(), self._policy), journal)

    @property
    def session(self) -> Session:
        return self.state.session

    def record(self, event: events.Event) -> None:
        """Record an event; do nothing if the journal is closed.

        If the journal was deleted or replaced, the race continues in a new file next to it.
        """
        if self._race is not None and not self._closed:
            self._race.record(event)
            if (warning := self._race.move_if_lost()) is not None:
                self._race.record(warning)

    def close(self) -> None:
        """Close the journal; the state can still be read."""
        if self._race is not None and not self._closed:
            self._closed = True
            self._race.close()

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes without the race, which is in the journal."""
        return vars(self) | {"_race": None, "_closed": False, "_seen": set(), "_warned": set()}

    # --- trials ---

    def assign(self, trial: str, config: Mapping[str, Any]) -> int | None:
        """Return the arm of a trial: the same as before a kill, else the next free arm, if any."""
        known, plain = self.state.trials, plain_config(config)
        same = [
            arm
            for arm, assigned in known.items()
            if arm not in self._seen and assigned.config == plain
        ]
        same.sort(key=lambda arm: known[arm].trial != trial)
        free = [arm for arm in range(len(self.names)) if arm not in known]
        arm = next(iter([*same, *free]), None)
        if arm is None:
            self._warn_once(None, f"{trial} and other trials beyond n_trials did not race")
        elif arm not in known:
            self.record(events.Assigned(arm, trial, plain))
        self._seen.add(arm)
        return arm

    def _warn_once(self, arm: int | None, text: str) -> None:
        if arm not in self._warned and not self.session.over:
            self._warned.add(arm)
            self.record(events.WarningNoted(arm, text))

    def on_result(
        self, arm: int, result: Mapping[str, Any], counter: str, metric: str, seconds: float
    ) -> str:
        """Record a result of a trial, read by the names of its counter and its metric."""
        n = need_count(need_reported(counter, result), counter)
        return self.on_event(arm, n, need_reported(metric, result), seconds)

    def on_event(self, arm: int, n: int, score: Any, seconds: float = 0.0) -> str:
        """Record the n-th result of a trial and return what the trial does next."""
        known = self.session.pulls_of(arm)
        try:
            value = as_score(score)
        except LearnerError as error:
            self.leave(arm, events.FAILED, f"pull {n}: {error}")
            return END
        if n <= known:  # trained again after a kill
            before, now = self.session.scores(arm)[n - 1], self.next_of(arm)
            text = f"pull {n} scored {value:.6g} when it was repeated, but {before:.6g} before"
            if value != before:
                self._warn_once(arm, text)
            return GO_ON if n < known and now != END else now
        if n > known + 1:
            problem = (
                f"{self.names[arm]} reports its result {n} after {known}: report 1, 2, 3, ..."
            )
            raise LearnerError(f"{problem} and continue from the checkpoint after a pause")
        if self.session.accepts(arm):
            self.record(events.ScoreReported(arm, value, seconds))
            self._end_if_over()
        return self.next_of(arm)

    def next_of(self, arm: int | None) -> str:
        """Return what a trial does next: continue, wait for others of its phase, or end."""
        if arm is None or self.session.over or arm not in self.session.racing:
            return END
        return GO_ON if self.session.accepts(arm) else WAIT

    def leave(self, arm: int | None, how: str, why: str) -> None:
        """Record that a trial gets no more pulls: FAILED, or FINISHED, which can still win."""
        if arm is None or self.next_of(arm) == END or self.session.departure(arm) is not None:
            return
        if how == events.FINISHED and not self.session.pulls_of(arm):
            how, why = events.FAILED, "it ended before its first result"
        self.record(events.LearnerLeft(arm, how, why))
        self._end_if_over()

    def level(self, arm: int) -> int:
        """Return the number of pulls up to which a trial may be trained now."""
        return self.session.pulls_of(arm) + self.session.ask_phase().get(arm, 0)

    # --- the end ---

    def _end_if_over(self) -> None:
        if self.session.over and self.state.verdict is None:
            if any(map(self.session.pulls_of, self.session.racing)):
                self.record(events.RaceFinished(self.verdict().summary()))
            self.record(events.ProcessClosed())
            self.close()

    def verdict(self) -> Verdict:
        """Return which trial to keep and why, or the standings so far."""
        state = self.state
        assert self._race is not None
        return build_verdict(state, self._race.journal.path or self.place)


def elsewhere() -> NoReturn:
    """Take the place of a learner, because the other tool creates and trains it."""
    raise NotImplementedError


def need_several(name: str, number: Any) -> None:
    """Raise a `SettingError` if there are fewer than two trials."""
    why = "with one there is nothing to choose"
    require(need_whole(name, number) >= 2, name, number, "at least 2", why)


def need_phases(session: Session) -> None:
    """Raise a `SettingError` if a policy has no levels at which trials could wait."""
    if session.decides_every_pull or session.policy.decides_after_sweeps():
        problem = f"policy={session.policy.name!r} decides after every pull or sweep, but another"
        raise SettingError(
            f"{problem} tool's trials wait at phases: choose 'auto', 'r-sr' or 'sh'"
        )


def need_count(value: Any, name: str) -> int:
    """Return a trial's own counter as an integer."""
    whole = isinstance(value, Real) and float(value).is_integer() and float(value) >= 1
    require(whole, name, value, "an integer >= 1", "it counts a trial's results")
    return int(value)


def plain_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration as it is read from a journal: the same in every process.

    >>> plain_config({"lr": 0.1, "size": (2, 3), "act": len})
    {'lr': 0.1, 'size': [2, 3], 'act': '<built-in function len>'}
    """
    return json.loads(json.dumps(dict(config), default=_text))


def _text(value: Any) -> Any:
    if getattr(value, "ndim", 1) == 0:  # a NumPy number
        return value.item()
    return plain_repr(value)
