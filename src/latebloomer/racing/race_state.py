"""The state of a race, which is computed from the events in its journal."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from latebloomer import errors
from latebloomer._util.text import reason_of, span_of_time
from latebloomer.policies.base import Policy
from latebloomer.racing.journal.schema import Entry
from latebloomer.racing.learners.learner import Share
from latebloomer.racing.pull_times import PullTimes
from latebloomer.racing.settings import Settings
from latebloomer.session import events
from latebloomer.session.arm_views import SETTINGS, LearnerView
from latebloomer.session.checked_inputs import set_aside, whole_budget
from latebloomer.session.session import Session

# Provisional pulls per arm if the budget is in seconds, until the first sweep was measured.
PROVISIONAL = 1000
MOST_NAMED = 5  # learners that an error names for one reason; of more, the first ones
MANY_CRASHES = 3  # after this many processes lost in the same pull, name the learner in a warning


class BestScore(NamedTuple):
    """The best score of a learner so far, and when it was first reported."""

    score: float
    n: int  # number of pulls of the learner then
    steps: int  # number of its training steps then, if pulls are shares of a full training


class LatestPlan(NamedTuple):
    """The time at which the budget was last set."""

    elapsed: float  # seconds of the race
    spent: int  # pulls of all arms
    phase: int  # number of the phase
    final: bool  # whether the race was already over or stopped


SETS_BUDGET = events.BudgetReplanned | events.WinnerSelected | events.Stopped


class RaceState:
    """The state of a race: its session, and data that a session does not store.

    Like a session, it is changed only by `apply`, so replaying a journal gives the same state.
    """

    def __init__(self, created: events.Created, policy: Policy | str | None = None) -> None:
        self.created = created
        self.id, self.names = created.race, created.names
        self.settings = Settings.from_dict(dict(created.settings), policy)
        self.session = fresh_session(self.settings, created.names)
        self.shares = self.settings.shares  # share of a full training that is one pull, by learner
        arms = len(self.names)
        self.times = PullTimes(arms)
        self.planned: LatestPlan | None = None  # since the start or the latest extension
        # Number of training steps by arm, if pulls are shares of a full training.
        self.steps = [0] * arms
        self.bests: dict[int, BestScore] = {}  # by arm
        self.building_seconds = 0.0  # seconds spent on building learners
        self.failures: list[events.PullFailed] = []
        # How often each pull (arm, n) has failed, and how often the process was lost in it.
        self.tries: Counter[tuple[int, int, bool]] = Counter()
        self.departures: dict[int, events.LearnerLeft] = {}
        # Warnings for the verdict, in order.
        self.notes: list[events.WarningNoted | events.LearnerLeft | events.Extended] = []
        self.checkpoints: dict[int, events.Saved] = {}  # the latest one of each arm
        self.models: dict[int, events.ModelKept] = {}  # saved models of generators that won
        # By arm: pulls with a failed attempt of which the learner kept the training, and how many
        # of these attempts its latest checkpoint includes.
        self._attempts = defaultdict[int, list[int]](list)
        self._attempts_saved: Counter[int] = Counter()
        self.details: dict[int, Mapping[str, Any]] = {}  # details of each arm's latest score
        self.row_sums: dict[int, events.RowsScored] = {}  # the latest one of each arm
        self.programs: dict[int, events.ProgramStarted] = {}  # the latest one of each arm
        self._unsaved: set[int] = set()  # arms that could not be saved
        self.trials: dict[int, events.Assigned] = {}  # trials of another tool that trains the arms
        self.verdict: events.RaceFinished | None = None
        # Arms that were trained in an earlier process and not pulled in this one yet: the time to
        # restore them does not count.
        self.resumed: set[int] = set()
        # The latest score, later events, and the drops and revivals that followed from each.
        self.latest: list[events.Event] = []
        self.started: float | None = None  # seconds since 1970
        self.elapsed = 0.0  # seconds of the race so far
        self.trained_until = 0.0  # seconds of the race when the latest pull was counted
        self._under_way = False  # whether a process runs the race or was killed while running it
        # (pulls counted then, arm) for each lost process.
        self._crashes: list[tuple[int, int]] = []

    @classmethod
    def replayed(cls, entries: Iterable[Entry], policy: Policy | str | None = None) -> "RaceState":
        """Return the state from a journal's entries; raise an error if the policy differs."""
        stream = iter(entries)
        first = next(stream, None)
        if first is None or not isinstance(first.event, events.Created):
            raise errors.JournalMismatch("The journal does not begin with a race of this library.")
        try:
            race = cls(first.event, policy)
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            if isinstance(error, errors.LatebloomerError):
                raise
            problem = f"the settings in the journal were changed ({reason_of(error)})"
            raise errors.JournalError(problem) from error
        race.started = first.at
        race.replay(stream)
        return race

    def replay(self, entries: Iterable[Entry]) -> None:
        """Apply the next entries of a journal."""
        for entry in entries:
            self.elapsed = entry.elapsed
            try:
                self.apply(entry.event)
            except errors.JournalError:
                raise
            except (errors.LatebloomerError, TypeError, LookupError, ValueError) as error:
                raise errors.JournalMismatch(
                    f"Event {entry.number} of the journal does not fit {self.session.policy!r} "
                    f"({error}). It was written by another version of this rule, or has been "
                    "changed: resume with the version that the journal names."
                ) from error

    def apply(self, event: events.Event) -> Sequence[events.Event]:
        """Apply an event; return the drops and revivals that follow from it."""
        drops = self.session.drops
        known = len(drops)
        if type(event) is events.ScoreReported:  # most are
            self._take_score(event)
            self.latest = [event]
        else:
            self._take_other(event)
            self.latest.append(event)
        if len(drops) == known:
            return ()
        self.latest += drops[known:]
        return drops[known:]

    def _take_score(self, event: events.ScoreReported) -> None:
        self.session.tell(event.arm, event.score)
        arm = event.arm
        self.times.add_pull(event, self.session.pulls_of(arm))
        self.steps[arm] += event.steps or 0
        best, score = self.bests.get(arm), event.score
        if best is None or (score > best[0] if self.settings.maximize else score < best[0]):
            self.bests[arm] = BestScore(score, self.session.pulls_of(arm), self.steps[arm])
        if self.resumed:
            self.resumed.discard(arm)
        self.trained_until = self.elapsed
        if event.details is not None:
            self.details[arm] = event.details

    def _take_other(self, event: events.Event) -> None:
        self._need_arm(event)
        if isinstance(event, SETS_BUDGET):
            self._take_plan(event)
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
                self._extend(event)
            case events.Restored():
                self.building_seconds += event.seconds * (event.n == 0)
                if event.arm not in self.resumed:
                    self.times.add_other(event)
            case events.PullFailed():
                self._note_failure(event)
            case events.Saved():
                self.checkpoints[event.arm] = event
                self._attempts_saved[event.arm] = len(self._attempts[event.arm])
            case events.ModelKept():
                self.models[event.arm] = event
            case events.RowsScored():
                self.row_sums[event.arm] = event
            case events.ProgramStarted():
                self.programs[event.arm] = event
            case events.SaveFailed() if event.arm not in self._unsaved:  # only once per arm
                self._unsaved.add(event.arm)
                text = f"could not be saved ({event.reason}); the race continues"
                self.notes.append(events.WarningNoted(event.arm, text))
            case events.ProcessStarted():
                self._start_process()
            case events.ProcessClosed():
                self._under_way = False
            case events.Assigned():
                self.trials[event.arm] = event
            case events.RaceFinished():
                self.verdict = event

    def _take_plan(
        self, event: events.BudgetReplanned | events.WinnerSelected | events.Stopped
    ) -> None:
        """Apply an event that sets the budget, and note when it was planned."""
        was_over, phase = self.session.over, self.session.phase[0]
        self.session.apply(event)
        final = was_over or isinstance(event, events.Stopped)
        self.planned = LatestPlan(self.elapsed, self.session.spent, phase, final)

    def _extend(self, event: events.Extended) -> None:
        """Make room for new learners, and reset the verdict and the time of the latest plan."""
        if event.seconds is not None:
            self.settings = replace(self.settings, seconds=event.seconds)
        self.names, self.verdict, self.planned = self.session.names, None, None
        self.times.admit(len(self.names))
        self.steps += [0] * (len(self.names) - len(self.steps))

    def _note_failure(self, event: events.PullFailed) -> None:
        self.times.add_other(event)
        self.failures.append(event)
        self.tries[event.arm, event.n, event.kind == events.LOST] += 1
        if event.kept:
            self._attempts[event.arm].append(event.n)

    def _start_process(self) -> None:
        if self._under_way and not self.session.over:  # the previous process was lost
            self._crashes.append((self.session.spent, self.session.ask()))
        self._under_way = True
        self.resumed = {i for i, n in enumerate(self.session.pulls) if n}

    def _need_arm(self, event: events.Event) -> None:
        """Raise a `ValueError` if an event is about a learner that is not in the race."""
        arm = None if isinstance(event, events.Joined) else getattr(event, "arm", None)
        if arm is not None and not 0 <= arm < len(self.names):
            raise ValueError(f"there is no arm {arm}")

    # --- reading the state ---

    def kept_attempts(self, arm: int) -> list[int]:
        """Return the pulls with a failed attempt of which the learner has kept the training.

        Such a learner is an object that cannot be built again.
        """
        return list(self._attempts[arm])

    def kept_attempts_saved(self, arm: int) -> int:
        """Return how many of these attempts the latest checkpoint includes."""
        return self._attempts_saved[arm]

    def progress(self, elapsed: float) -> str:
        """Return text about how much of the budget is spent, in the unit of the budget.

        For a budget in seconds, the total number of pulls changes with prices, so it is not shown.
        """
        spent, seconds = self.session.spent, self.settings.seconds
        if seconds is None:
            return f"pull {spent:,} of {self.session.budget:,}"
        return f"{min(elapsed, seconds):.3g} of {seconds:g} s (pull {spent:,})"

    def time_left(self, elapsed: float) -> str:
        """Return text about how long the rest will take, by the pulls so far; empty at the end."""
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
        """Return the arm in whose pull all of the last processes ended, if there is one."""
        newest = self._crashes[-MANY_CRASHES:]
        same = len(newest) == MANY_CRASHES and len(set(newest)) == 1
        return newest[0][1] if same and newest[0][0] == self.session.spent else None

    def learners(self) -> list[LearnerView]:
        """Return a view of every learner, by rank, with data that the session does not have."""
        failures = defaultdict[int, list[str]](list)
        for failure in self.failures:
            failures[failure.arm].append(f"pull {failure.n} failed: {failure.reason}")
        full = self.settings.pulls_per_training
        return [
            replace(
                view,
                seconds=self.seconds[view.arm],
                full_pulls=full and (view.pulls if self._finished(view.arm) else full),
                steps=self.steps[view.arm] if self.shares else None,
                **self._best_of(view.arm),
                failures=tuple(failures[view.arm]),
                settings=self._settings_of(view.arm),
                details=self.details.get(view.arm, {}),
            ).within(*self.settings.score_bounds)
            for view in self.session.standings()
        ]

    def _settings_of(self, arm: int) -> Mapping[str, Any]:
        """Return the settings of an arm: from its trial, from its scores, or as declared."""
        if arm in self.trials:
            return self.trials[arm].config
        reported = self.details.get(arm, {}).get(SETTINGS)
        if isinstance(reported, Mapping):
            return reported
        return (self.settings.learner_settings or {}).get(self.names[arm], {})

    def _best_of(self, arm: int) -> dict[str, Any]:
        """Return the fields of a view about the best score so far."""
        if arm not in self.bests:
            return {}
        score, n, steps = self.bests[arm]
        steps_of = {"best_steps": steps} if self.shares else {}
        return {"best_score": score, "best_at": n, **steps_of}

    def _finished(self, arm: int) -> bool:
        return self.session.departure(arm) == events.FINISHED

    @property
    def seconds(self) -> list[float]:
        """Seconds of training in counted pulls, by arm."""
        return self.times.by_arm

    @property
    def every_learner_failed(self) -> bool:
        """True if the race is over and no learner with a score remains."""
        return self.session.over and not self.session.has_best

    def need_one_learner(self) -> None:
        """Raise `AllFailed`, with every reason, if no learner with a score remains."""
        if not self.every_learner_failed:
            return
        failed = [
            departure for departure in self.departures.values() if departure.how == events.FAILED
        ]
        reasons: dict[str, list[int]] = {}
        for departure in failed:
            reasons.setdefault(departure.why, []).append(departure.arm)
        each = "\n".join(f"  {self._named(arms)}: {why}" for why, arms in reasons.items())
        error = errors.AllFailed(f"Every learner has failed:\n{each}").quoting(each)
        details = {f.arm: f.details for f in self.failures if f.details}
        for first, *_ in reasons.values():  # one traceback for each reason
            if first in details:
                error.add_note(details[first])
        raise error

    def _named(self, arms: Sequence[int]) -> str:
        """Return the names of learners as text: the first ones, and how many more there are."""
        names = [self.names[arm] for arm in arms]
        if len(names) <= MOST_NAMED:
            return ", ".join(names)
        return f"{', '.join(names[: MOST_NAMED - 1])} and {len(names) - MOST_NAMED + 1} more"


def fresh_session(settings: Settings, names: Iterable[str]) -> Session:
    """Return the session of a race before its first pull."""
    arms, budget, share = list(names), settings.budget, settings.winner_share
    if budget is None:
        least = settings.policy.advised_budget(len(arms))[0]
        budget = whole_budget(max(PROVISIONAL * len(arms), 2 * least), share)
    try:
        return Session(
            settings.policy,
            arms,
            budget,
            settings.horizon,
            settings.seed,
            maximize=settings.maximize,
            winner_share=share,
            min_pulls=settings.min_pulls,
            repeats_scores=[
                name for name, own_share in settings.shares.items() if own_share.repeats_scores
            ],
        )
    except errors.BudgetError as error:
        if share == 0:
            raise
        raise errors.BudgetError(
            f"winner_share={share:g} keeps {set_aside(budget, share)} of budget={budget} for the "
            f"winner, and the rest is too small: {error}"
        ) from None
