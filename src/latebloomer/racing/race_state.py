"""What is known of a race: the fold of its journal."""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from operator import attrgetter
from typing import Any, TypeAlias

from latebloomer import errors
from latebloomer._util.text import brief, reason_of, span_of_time
from latebloomer.policies.base import Policy
from latebloomer.racing.checkpoints.storage import model_place, place_of
from latebloomer.racing.journal.journal import Entry
from latebloomer.racing.learner import Share
from latebloomer.racing.settings import Settings
from latebloomer.racing.stopping import NEWEST, PROVISIONAL
from latebloomer.session import events
from latebloomer.session.checked_inputs import set_aside, whole_budget
from latebloomer.session.learner_view import LearnerView
from latebloomer.session.session import Session

MANY_CRASHES = 3  # processes lost in the same pull after which a warning names the learner


class RaceState:
    """A race as its events made it: the session, and what a session does not keep.

    Like a session it changes by `apply` alone, so that a journal replayed is the race resumed.
    """

    def __init__(self, created: events.Created, policy: Policy | str | None = None) -> None:
        self.created = created
        self.id, self.names = created.race, created.names
        self.settings = Settings.from_dict(dict(created.settings), policy)
        self.session = fresh_session(self.settings, created.names)
        self.shares = self.settings.shares  # of a full training that each learner's pull is
        arms = len(self.names)
        self.seconds = [0.0] * arms  # of training, in counted pulls
        self.steps = [0] * arms  # of the learners' own, where pulls are shares of their training
        self._newest = [deque[float](maxlen=NEWEST) for _ in range(arms)]
        self.longest_pull = 0.0
        self.building_seconds = 0.0  # spent on making learners
        self.failures: list[events.PullFailed] = []
        # How often each pull (arm, n) has failed, and how often its process was lost in it.
        self.tries: Counter[tuple[int, int, bool]] = Counter()
        self.departures: dict[int, events.LearnerLeft] = {}
        # What the verdict mentions, in order.
        self.notes: list[events.WarningNoted | events.LearnerLeft | events.Extended] = []
        self.checkpoints: dict[int, events.Saved] = {}  # of each arm the newest
        self.models: dict[int, events.Saved] = {}  # what generators yielded: the winner's alone
        self._unsaved: set[int] = set()  # arms that could not be saved
        self.trials: dict[int, events.Assigned] = {}  # of another tool that trains the arms
        self.verdict: events.Decided | None = None
        self.started: float | None = None  # seconds since 1970
        self.elapsed = 0.0  # seconds of the race so far
        self.trained_until = 0.0  # the same when its newest pull was counted
        self._under_way = False  # whether a process has it, or was killed with it
        self._crashes: list[tuple[int, int]] = []  # pulls told when a process was lost, and whose

    @classmethod
    def replayed(cls, entries: Iterable[Entry], policy: Policy | str | None = None) -> "RaceState":
        """Return the race as its journal left it; raise an error if the policy differs."""
        stream = iter(entries)
        first = next(stream, None)
        if first is None or not isinstance(first.event, events.Created):
            raise errors.JournalMismatch("The journal does not begin with a race of this library.")
        try:
            race = cls(first.event, policy)
        except (KeyError, TypeError, AttributeError) as error:  # settings that are none
            said = f"the settings in the journal were changed ({reason_of(error)})"
            raise errors.JournalError(said) from error
        race.started = first.at
        race.replay(stream)
        return race

    def replay(self, entries: Iterable[Entry]) -> None:
        """Take in what a journal says next."""
        for entry in entries:
            self.elapsed = entry.elapsed
            try:
                self.apply(entry.event)
            except errors.JournalError:
                raise
            except (errors.LatebloomerError, TypeError, IndexError, ValueError) as error:
                raise errors.JournalMismatch(
                    f"Event {entry.number} of the journal does not fit {self.session.policy!r} "
                    f"({error}). It was written by another version of this rule, or has been "
                    "changed: resume with the version that the journal names."
                ) from error

    def apply(self, event: events.Event) -> None:
        """Take in what has happened."""
        if type(event) is events.ScoreReported:  # most are
            self.session.tell(event.arm, event.score)
            arm, seconds = event.arm, event.seconds
            self.seconds[arm] += seconds
            self._newest[arm].append(seconds)
            self.steps[arm] += event.steps or 0
            self.longest_pull = max(self.longest_pull, seconds)
            self.trained_until = self.elapsed
            return
        self.session.apply(event)
        if isinstance(event, events.LearnerLeft | events.WarningNoted | events.Extended):
            self.notes.append(event)
        match event:
            case events.LearnerLeft():
                self.departures[event.arm] = event
            case events.Joined(full_steps=steps) if steps is not None:
                share = Share(steps, self.settings.pulls_per_training or 1)
                self.shares = {**self.shares, event.name: share}
            case events.Extended():
                if event.seconds is not None:
                    self.settings = replace(self.settings, seconds=event.seconds)
                self.names, self.verdict = self.session.names, None
                for _ in range(len(self.names) - len(self.seconds)):
                    self.seconds.append(0.0)
                    self.steps.append(0)
                    self._newest.append(deque(maxlen=NEWEST))
            case events.Restored(n=0):
                self.building_seconds += event.seconds
            case events.PullFailed():
                self.failures.append(event)
                self.tries[event.arm, event.n, event.kind == "lost"] += 1
            case events.Saved():
                # Only if its place is the race's own: a journal may come from anywhere.
                if event.folder == model_place(event.arm, event.n):
                    self.models[event.arm] = event
                elif event.folder == place_of(event.arm, event.n):
                    self.checkpoints[event.arm] = event
                else:
                    said = f"its checkpoint {event.folder!r} is not a place of this race"
                    raise errors.JournalError(f"the journal has been changed: {said}")
            case events.SaveFailed() if event.arm not in self._unsaved:  # noted once
                self._unsaved.add(event.arm)
                text = f"could not be saved ({event.reason}); the race continues"
                self.notes.append(events.WarningNoted(event.arm, text))
            case events.Began():
                if self._under_way and not self.session.over:  # the process before was lost
                    self._crashes.append((self.session.spent, self.session.ask()))
                self._under_way = True
            case events.Ended():
                self._under_way = False
            case events.Assigned():
                self.trials[event.arm] = event
            case events.Decided():
                self.verdict = event

    # --- what is known ---

    def time_left(self, elapsed: float) -> str:
        """Return how long the rest will take, by the pulls so far; empty at the end."""
        session, seconds = self.session, self.settings.seconds
        if session.over:
            return ""
        if seconds is not None:
            return f"{span_of_time(max(0.0, seconds - elapsed))} left"
        if not session.spent:
            return "time left unknown"
        pace = self.elapsed / session.spent
        return f"about {span_of_time(pace * (session.budget - session.spent))} left"

    def crashing_learner(self) -> int | None:
        """Return the arm in whose pull the last processes all ended, if there is one."""
        newest = self._crashes[-MANY_CRASHES:]
        same = len(newest) == MANY_CRASHES and len(set(newest)) == 1
        return newest[0][1] if same and newest[0][0] == self.session.spent else None

    def learners(self) -> list[LearnerView]:
        """Return a view of every learner, by rank, with what a session does not know of it."""
        failures = defaultdict[int, list[str]](list)
        for one in self.failures:
            failures[one.arm].append(f"pull {one.n} failed: {one.reason}")
        known = dict(self.settings.learner_settings or {})
        known |= {self.names[arm]: trial.config for arm, trial in self.trials.items()}
        full = self.settings.pulls_per_training
        return [
            replace(
                view, seconds=self.seconds[view.arm],
                full_pulls=full and (view.pulls if self._finished(view.arm) else full),
                steps=self.steps[view.arm] if self.shares else None,
                failures=tuple(failures[view.arm]), settings=known.get(view.name, {}),
            )
            for view in self.session.standings()
        ]  # fmt: skip

    def _finished(self, arm: int) -> bool:
        return self.session.departure(arm) == events.FINISHED

    def pace(self, arm: int) -> float:
        """Return the seconds per pull, over an arm's latest pulls."""
        newest = self._newest[arm]
        return sum(newest) / len(newest) if newest else 0.0

    @property
    def every_learner_failed(self) -> bool:
        """True if the race is over and no learner with a score is left."""
        return self.session.over and not self.session.has_best

    def need_one_learner(self) -> None:
        """Raise `AllFailed`, with every reason, if no learner with a score is left."""
        if not self.every_learner_failed:
            return
        failed = [left for left in self.departures.values() if left.how == events.FAILED]
        reasons = "\n".join(f"  {self.names[left.arm]}: {left.why}" for left in failed)
        error = errors.AllFailed(f"Every learner has failed:\n{reasons}")
        for details in {f.arm: f.details for f in self.failures if f.details}.values():
            error.add_note(details)
        raise error


def fresh_session(settings: Settings, names: Iterable[str]) -> Session:
    """Return the session of a race before its first pull."""
    arms, budget, share = list(names), settings.budget, settings.winner_share
    if budget is None:
        least = settings.policy.advised_budget(len(arms))[0]
        budget = whole_budget(max(PROVISIONAL * len(arms), 2 * least), share)
    try:
        return Session(
            settings.policy, arms, budget, settings.horizon, settings.seed,
            maximize=settings.maximize, winner_share=share, min_pulls=settings.min_pulls,
            repeats_scores=[name for name, one in settings.shares.items() if one.repeats_scores],
        )  # fmt: skip
    except errors.BudgetError as error:
        if share == 0:
            raise
        raise errors.BudgetError(
            f"winner_share={share:g} keeps {set_aside(budget, share)} of budget={budget} for the "
            f"winner, and the rest is too little: {error}"
        ) from None


Callback: TypeAlias = Callable[[events.Event, "RaceView"], Any]


class RaceView:
    """A race as it stands, to be read; it can also be stopped, or keep some of its time.

    Parameters
    ----------
    race : RaceState
        The state that is read.
    events : Callable[[], Iterable[events.Event]]
        Gives all that has happened, in earlier processes too.
    """

    stop_reason: str | None = None  # why a callback wants the race to end
    reserved = 0.0  # seconds of a time budget that a callback keeps for what comes after the race

    def __init__(self, race: RaceState, events: Callable[[], Iterable[events.Event]]) -> None:
        self._race, self._events = race, events

    id = property(attrgetter("_race.id"), doc="A name that no other race has.")
    settings = property(attrgetter("_race.settings"), doc="Settings of the race.")
    names = property(attrgetter("_race.names"), doc="The learners; arm i is the i-th.")
    spent = property(attrgetter("_race.session.spent"), doc="Pulls so far.")
    budget = property(attrgetter("_race.session.budget"), doc="Total pulls by the plan in force.")
    pulls = property(attrgetter("_race.session.pulls"), doc="Pulls so far, per learner.")
    phase = property(attrgetter("_race.session.phase"), doc="The phase, from 1, and of how many.")
    elapsed = property(attrgetter("_race.elapsed"), doc="Seconds of the race at the last event.")

    def standings(self) -> list[LearnerView]:
        """Return all learners: the best, those in the race by their estimate, then the others."""
        return self._race.learners()

    def events(self) -> list[events.Event]:
        """Return all events so far, in order, those of earlier processes included."""
        return list(self._events())

    def reserve(self, seconds: float) -> None:
        """Keep this much of a time budget for what comes after the race; plan with the rest."""
        self.reserved = seconds

    def stop(self, reason: str) -> None:
        """End the race after the running pull; the verdict is by what is known then."""
        self.stop_reason = str(reason) or "a callback asked for it"


def check_callbacks(callbacks: Any) -> list[Callback]:
    """Return the functions as a list; raise a `SettingError` if they are no functions."""
    listed = [] if callbacks is None else callbacks
    if callable(listed) or not (isinstance(listed, Iterable) and all(map(callable, listed))):
        needed = "a list of functions f(event, view)"
        raise errors.SettingError(f"callbacks={brief(callbacks)}, but callbacks must be {needed}")
    return list(listed)
