"""The class that runs a policy step by step: ask for an arm, train it, report its score."""

from collections import deque
from collections.abc import Iterable, Sequence

from latebloomer.core.ledger import OVER, RACERS, RUNS
from latebloomer.errors import TellError, need_flag, need_whole, require
from latebloomer.policies.base import Policy
from latebloomer.policies.registry import policy_for
from latebloomer.session import certificates, changes, estimates, standings
from latebloomer.session import checked_inputs as inputs
from latebloomer.session.arm_views import LearnerView, Recommendation
from latebloomer.session.checked_inputs import LARGEST
from latebloomer.session.decisions import WinnerSelection
from latebloomer.session.events import BatchIssued, Dropped, Event, Revived, ScoreReported
from latebloomer.session.play import Play
from latebloomer.session.session_state import SessionState, Stage
from latebloomer.theory.certificate import DELTA, LINES, Certificate


class Session:
    """Run a policy step by step: ask for an arm, report its score, get a recommendation.

    Only `apply(event)` changes a session; `tell` is the short form of `apply(ScoreReported(...))`.
    So the settings and the events of a session determine it: replaying the events gives an equal
    session, bit for bit. A session can be pickled at any time.

    Parameters
    ----------
    policy : Policy | str
        Policy, or its name with settings such as "r-sr:window=0.5".
    arms : int | Sequence[str]
        Number of arms, or their names.
    budget : int
        Total number of pulls over all arms.
    horizon : int | None
        Number of pulls per arm at which arms are compared; no arm is pulled further. Default: the
        budget.
    seed : int
        Seed for policies that choose at random.
    maximize : bool
        Whether higher scores are better. If False, scores are losses; estimates and forecasts are
        then losses, too, but intervals are rewards (see `certificate`).
    winner_share : float
        Fraction of the budget, at least 0 and below 1, reserved for training the winner after it
        is selected (`WinnerSelected`).
    min_pulls : int
        Number of pulls every arm gets before any arm can be dropped.
    repeats_scores : Iterable[int | str]
        Arms with fewer steps than pulls, which repeat their last score if a pull adds no step. No
        noise or interval is estimated for these arms. Default: none.
    run : int
        Number of a simulated run: the policy makes the random choices of that run. Default: 0.

    Raises
    ------
    BudgetError
        The budget is too small for the policy.
    UnknownName
        No policy has that name.

    Examples
    --------
    >>> session = Session("r-sr", arms=["slow", "quick"], budget=20)
    >>> while not session.over:
    ...     arm = session.ask()
    ...     n = session.pulls[arm] + 1
    ...     session.tell(arm, [n / 8, n / (n + 2)][arm])
    >>> session.recommend().name
    'slow'
    """

    def __init__(
        self,
        policy: Policy | str,
        arms: int | Sequence[str],
        budget: int,
        horizon: int | None = None,
        seed: int = 0,
        *,
        maximize: bool = True,
        winner_share: float = 0.0,
        min_pulls: int = 1,
        repeats_scores: Iterable[int | str] = (),
        run: int = 0,
    ) -> None:
        inputs.check_share(winner_share)
        names = inputs.arm_names(arms)
        require(
            0 <= need_whole("run", run) < RUNS,
            "run",
            run,
            f"from 0 to {RUNS - 1}",
            "runs are numbered below 2^48",
        )
        budget = need_whole("budget", budget)
        deciding = budget - inputs.set_aside(budget, winner_share)
        # Without a horizon, arms are compared at the total budget, which includes the pulls
        # reserved for the winner: a nearer horizon would end the winner's training too early.
        at = budget if horizon is None else need_whole("horizon", horizon)
        chosen = policy_for(policy, len(names), deciding, at)
        chosen.check(len(names), deciding, at, min_pulls)
        self.state = state = SessionState(
            policy=chosen,
            names=names,
            budget=budget,
            horizon=at,
            seed=seed,
            run=run,
            maximize=need_flag("maximize", maximize, inputs.MAXIMIZE),
            winner_share=winner_share,
            min_pulls=min_pulls,
            original=(budget, horizon, len(names)),
            horizon_follows_budget=horizon is None,
            deciding_budget=deciding,
        )
        state.repeats_scores = frozenset(map(state.index, repeats_scores))
        state.play = Play(state.terms(range(len(names))))
        changes.note_drops(state)

    # --- ask and tell ---

    def ask(self) -> int:
        """Return the arm to pull next. It is the same arm until you report its score."""
        due = self.state.play.due
        if due == OVER:
            raise TellError(f"The session requests no more pulls: {self.reason}.")
        return due

    def ask_phase(self, batch: int = 1) -> dict[int, int]:
        """Return the pulls per arm that may be made in any order before the next decision.

        For a policy with phases, these are the remaining pulls of the phase. For a policy that
        decides after every pull, they are one pull each of up to `batch` arms. The result is empty
        if the session is over.
        """
        event = self.next_batch(batch)
        if event is not None and not event.more:
            self.apply(event)
        selected = self.state.selection
        if selected is not None:
            return {} if self.over else {selected.arm: self.state.pulls_for_winner}
        return self.state.play.remaining()

    def next_batch(self, batch: int) -> BatchIssued | None:
        """Return the event after which up to `batch` arms are pulled at the same time, if any.

        Only a policy that decides after every pull issues batches, because the pulls of a phase
        may be made in any order without one. The result is None if no arm can be added.
        """
        return changes.next_batch(self.state, batch)

    def tell(self, arm: int | str, score: float) -> None:
        """Report the score of a pull that `ask` or `ask_phase` requested."""
        state = self.state
        play = state.play
        due = play.due
        i = arm if arm is due and due >= 0 else state.index(arm)
        value = score
        if type(score) is not float or not -LARGEST <= score <= LARGEST:
            value = inputs.as_score(score, f" for arm {state.names[i]}")
        if i != due and not (state.selection is None and play.accepts(i)):
            raise TellError(self._not_requested(i))
        state.arms.append(i)
        state.scores.append(value)
        state.pulls[i] += 1
        state.last_scores[i] = value
        if state.selection is not None:  # no decision depends on scores after the selection
            changes.train_winner(state)
            return
        play.take(i, value if state.maximize else -value)
        if play.ledger.cursor[RACERS] != state.racers:
            changes.note_drops(state)
        if play.waiting is not None or (state.prices and play.drop_due):
            changes.settle(state)

    def accepts(self, arm: int) -> bool:
        """Return whether a score of this arm may be reported now."""
        play = self.state.play
        return play.due == arm >= 0 or (self.state.selection is None and play.accepts(arm))

    def _not_requested(self, i: int) -> str:
        names = self.state.names
        why = (
            f"requests no more pulls: {self.reason}."
            if self.over
            else f"asked for arm {names[self.state.play.due]}. Report scores only for arms that "
            "ask() or ask_phase() returned."
        )
        return f"Received a score for arm {names[i]}, but the session {why}"

    # --- events other than a score ---

    def apply(self, event: Event) -> None:
        """Apply an event: this is the only way to change a session.

        An event that is not possible now raises an error and changes nothing. Events that concern
        a race only (`PullFailed`, `Saved`, ...) leave a session unchanged.
        """
        if type(event) is ScoreReported:
            self.tell(event.arm, event.score)
        elif type(event) in changes.CHANGES:
            at = self.state.spent
            changes.CHANGES[type(event)](self.state, event)
            self.state.others.append((at, event))

    @property
    def drops(self) -> Sequence[Dropped | Revived]:
        """All arms that were dropped or revived, in order: they follow from the events."""
        return self.state.drops

    # --- the settings in force, which events may have changed ---

    @property
    def policy(self) -> Policy:
        """The policy that decides."""
        return self.state.policy

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the arms."""
        return self.state.names

    @property
    def budget(self) -> int:
        """Total number of pulls, as events have set it."""
        return self.state.budget

    @property
    def deciding_budget(self) -> int:
        """Number of pulls that decide; the rest trains the winner."""
        return self.state.deciding_budget

    @property
    def horizon(self) -> int:
        """Number of pulls per arm at which arms are compared."""
        return self.state.horizon

    @property
    def seed(self) -> int:
        """Seed for policies that choose at random."""
        return self.state.seed

    @property
    def maximize(self) -> bool:
        """Whether higher scores are better."""
        return self.state.maximize

    @property
    def winner_share(self) -> float:
        """Fraction of the budget that trains the winner."""
        return self.state.winner_share

    @property
    def min_pulls(self) -> int:
        """Number of pulls every arm gets before any arm can be dropped."""
        return self.state.min_pulls

    @property
    def repeats_scores(self) -> frozenset[int]:
        """Arms that repeat their last score when a pull adds no step."""
        return self.state.repeats_scores

    # --- the state now ---

    @property
    def stage(self) -> Stage:
        """The stage of the session: what it does now."""
        return self.state.stage

    @property
    def over(self) -> bool:
        """True if the session requests no more pulls."""
        return self.state.over

    @property
    def reason(self) -> str:
        """Why the session is over, or how much of the budget is left."""
        return standings.reason(self.state)

    @property
    def spent(self) -> int:
        """Number of scores reported so far."""
        return self.state.spent

    @property
    def pulls(self) -> tuple[int, ...]:
        """Number of scores reported so far, per arm."""
        return tuple(self.state.pulls)

    def pulls_of(self, arm: int) -> int:
        """Return the number of scores reported for one arm; faster than `pulls[arm]`."""
        return self.state.pulls[arm]

    @property
    def history(self) -> list[tuple[int, float]]:
        """Every (arm, score) reported, in order."""
        return list(zip(self.state.arms, self.state.scores, strict=True))

    def scores(self, arm: int | str) -> list[float]:
        """Return the scores of one arm, in order."""
        return self.state.scores_of(self.state.index(arm))

    @property
    def racing(self) -> tuple[int, ...]:
        """The arms that may still be recommended, in order."""
        return self.state.racing

    @property
    def trainable(self) -> list[int]:
        """The arms that may still be pulled."""
        return self.state.trainable

    def departure(self, arm: int | str) -> str | None:
        """Return FAILED or FINISHED; None for an arm that did neither, such as a dropped one."""
        return self.state.departure(self.state.index(arm))

    @property
    def phase(self) -> tuple[int, int]:
        """Number of the current phase, from 1, and number of phases."""
        before, (done, phases) = self.state.phases_done, self.state.play.phase
        return before + min(done + 1, phases), before + phases

    @property
    def levels_to_come(self) -> list[tuple[int, int]]:
        """Pairs (arms, pulls per arm) of this phase and the later ones, by the plan in force."""
        return self.state.play.levels_to_come if self.stage is Stage.DECIDING else []

    @property
    def levels_given(self) -> bool:
        """True if a replan set the levels in force; False if the policy did."""
        return bool(self.state.levels)

    @property
    def decides_every_pull(self) -> bool:
        """True if the policy decides after every pull instead of between phases."""
        return self.state.play.decides_every_pull

    # --- the arm to keep, and the standings of all arms ---

    def recommend(self) -> Recommendation:
        """Return the arm to keep, by all scores so far."""
        return standings.recommendation(self.state)

    @property
    def best_arm(self) -> int:
        """The arm to keep, by all scores so far: equal to `recommend().arm`."""
        return estimates.best_arm(self.state)

    @property
    def has_best(self) -> bool:
        """True if an arm can be recommended."""
        return estimates.best_or_none(self.state) != OVER

    @property
    def winner(self) -> int | None:
        """The arm that was selected and is trained further; None while the policy decides."""
        return None if self.state.selection is None else self.state.selection.arm

    @property
    def selection(self) -> WinnerSelection:
        """The selected arm with its numbers then, or else the best arm with its numbers now."""
        return estimates.selection(self.state)

    def standings(self) -> list[LearnerView]:
        """Return the best arm, then the others by their estimates, and failed ones last."""
        return standings.standings(self.state)

    def explain(self, arm: int | str) -> LearnerView:
        """Return the view of an arm: its state, and the numbers that decided; `print` it."""
        return standings.explain(self.state, arm)

    def certificate(
        self,
        noise: float | None = None,
        delta: float = DELTA,
        score_range: tuple[float, float] | None = None,
        method: str = LINES,
        budget: int | None = None,
        looks: int = 1,
    ) -> Certificate:
        """Bound every arm's mean at the horizon, all of them together [Mussi24, Lemmas 1, 2].

        The intervals hold with probability 1 - delta if the curves rise and are concave and the
        noise is sub-Gaussian with standard deviation `noise`; if that is None, it is estimated.
        They are intervals of rewards: with `maximize=False`, of scores times -1; the sentences of
        the certificate speak of scores. `score_range` is the lowest and highest possible mean
        score, such as (0, 1). `budget` is the largest number of pulls that an arm could have had,
        as known before the first pull. Default: that number by the plan, or the horizon if the
        session was extended or stopped. If you check repeatedly in order to stop, `looks` is the
        maximum number of checks.
        """
        return certificates.certificate(
            self.state, noise, delta, score_range, method, budget, looks
        )

    # --- events, replay, equality ---

    @property
    def events(self) -> list[Event]:
        """All events, in order."""
        due: list[Event] = []
        others = deque(self.state.others)
        for spent, (arm, score) in enumerate(self.history):
            while others and others[0][0] == spent:
                due.append(others.popleft()[1])
            due.append(ScoreReported(arm, score))
        return [*due, *(event for _, event in others)]

    def replay(self, history: Iterable[tuple[int | str, float]]) -> "Session":
        """Return a new session with the same settings to which `history` is reported.

        The other events of this session are applied after the same numbers of pulls.
        """
        budget, horizon, arms = self.state.original
        session, others = (
            Session(
                self.policy,
                self.names[:arms],
                budget,
                horizon,
                self.seed,
                maximize=self.maximize,
                winner_share=self.winner_share,
                min_pulls=self.min_pulls,
                repeats_scores=[i for i in self.repeats_scores if i < arms],
                run=self.state.run,
            ),
            deque(self.state.others),
        )
        for arm, score in history:
            session._catch_up(others)
            session.tell(arm, score)
        session._catch_up(others)
        return session

    def _catch_up(self, others: deque[tuple[int, Event]]) -> None:
        while others and others[0][0] == self.spent:
            self.apply(others.popleft()[1])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Session) and self.state == other.state

    __hash__ = None  # type: ignore[assignment]

    def _repr_html_(self) -> str:
        """Return the standings for a notebook."""
        return standings.as_html(self.state)

    def __repr__(self) -> str:
        return f"Session({self.policy!r}, {len(self.names)} arms, {self.reason})"
