"""A callback that shows a race in a study."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from latebloomer.integrations.optuna.study_trials import LEFT, frozen_trials
from latebloomer.racing.callbacks import RaceView
from latebloomer.session import events


class StudyMirror:
    """Show a race in a study: values as they are reported, and the final state of each trial."""

    def __init__(self, optuna: Any, study: Any, trials: Sequence[Any], key: str) -> None:
        self._states = optuna.trial.TrialState
        self._study, self._trials, self._key = study, trials, key
        frozen = frozen_trials(study, trials)
        self._shown = [len(trial.intermediate_values) for trial in frozen]
        self._running = {arm for arm, trial in enumerate(frozen) if not trial.state.is_finished()}

    def __call__(self, event: events.Event, view: RaceView) -> None:
        if isinstance(event, events.ProcessStarted):
            self._begin(view)
        else:
            self._show(event, view, view.pulls)

    def _begin(self, view: RaceView) -> None:
        """Record the settings of the race, and report values that are missing after a kill."""
        known = self._study.user_attrs.get(self._key)
        # An earlier race ended before its first pull.
        if known is None or known["race"] != view.id:
            kept = {"race": view.id, "settings": view.settings.as_dict(), "names": [*view.names]}
            self._study.set_user_attr(self._key, kept)
        pulls: Counter[int] = Counter()
        for event in view.events():
            if isinstance(event, events.ScoreReported):
                pulls[event.arm] += 1
            self._show(event, view, pulls)
        for row in view.standings():
            if row.state == events.DROPPED:
                self._end(row.arm, state=self._states.PRUNED)

    def _show(self, event: events.Event, view: RaceView, pulls: Any) -> None:
        match event:
            case events.ScoreReported(arm) if pulls[arm] > self._shown[arm]:
                self._shown[arm] = pulls[arm]  # a resumed race repeats the latest event
                self._trials[arm].report(event.score, step=pulls[arm])
            case events.LearnerLeft() if event.arm in self._running:
                self._trials[event.arm].set_user_attr(LEFT, [event.how, event.why])
                if event.how == events.FAILED:
                    self._end(event.arm, state=self._states.FAIL)
            case events.Dropped():
                self._end(event.arm, state=self._states.PRUNED)
            case events.RaceFinished():
                self._end(view.names.index(event.summary["name"]), event.summary["score"])
                for arm in sorted(self._running):
                    self._end(arm, state=self._states.PRUNED)

    def _end(self, arm: int, value: float | None = None, state: Any = None) -> None:
        if arm in self._running:
            self._study.tell(self._trials[arm], value, state=state)
            self._running.remove(arm)
