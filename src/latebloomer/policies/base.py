"""The contract: a policy is a plan (data, made once) and a rating (a pure function of one arm).

A subclass is a frozen dataclass of settings with a `name` and two methods, `levels` (the plan)
and `rating`; the rest has defaults. Methods marked `@kernel` run unchanged in a session (plain
Python), in the CPU simulator (numba) and on the GPU (numba-cuda); inside them `self` is the named
tuple that `settings` returns.
"""

from __future__ import annotations

import dataclasses
import heapq
from abc import ABC, abstractmethod
from collections import namedtuple
from collections.abc import Callable, Sequence
from math import floor
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from latebloomer._util.memory import need_memory
from latebloomer.core.estimators import first_full
from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import (
    ANY,
    Ledger,
    Plan,
    best_open,
    remember_slopes,
)
from latebloomer.core.phases import log_bar
from latebloomer.errors import BudgetError, SettingError, need_number, need_whole, require

if TYPE_CHECKING:
    from latebloomer.policies.plan_text import Description

NUMERIC = ("bool", "int", "float", bool, int, float)  # annotations, as text or as types
SMALLEST_WINDOW = 1e-9
PHASE_BYTES = 200  # of a phase while a plan is made, and there may be one for each arm
# The kernels a policy may define; the moves of a run (`core/moves.py`) call them by these names.
HOOKS = (
    "rating", "final_rating", "update_rating", "rate_jointly", "after_sweep", "pick", "remember",
)  # fmt: skip


class Forecast(NamedTuple):
    """What a policy expects of an arm, as far as it makes forecasts."""

    trust: float  # share of `gain` that is in the arm's rating, from 0 to 1
    origin: int  # pull from which earlier forecasts were made,
    tested: int  # and the pull up to which they were compared with what happened
    ahead: float  # the pull that is forecast
    gain: float  # until then


class NumbersOf:
    """Makes the named tuple of a policy's numeric fields when it is first asked for.

    It then stands on the policy's class under its own name, where numba's disk cache, which
    refers to types by name, finds it in any process.
    """

    def __get__(self, policy: object, cls: type[Policy]) -> Any:
        fields = dataclasses.fields(cls)  # type: ignore[arg-type]
        names = [field.name for field in fields if field.type in NUMERIC]
        made: Any = namedtuple("Numbers", names, module=cls.__module__)  # type: ignore[misc]
        made.__qualname__ = f"{cls.__qualname__}.Numbers"
        cls.Numbers = made
        return made


class Policy(ABC):
    """How a budget is spent over arms, and which arm is recommended."""

    Numbers: ClassVar[Any] = NumbersOf()
    name: ClassVar[str]  # in the registry and on the command line
    cites: ClassVar[tuple[str, ...]] = ()  # whose idea it is: keys of src/latebloomer/refs.bib

    # --- what every policy defines ---

    @abstractmethod
    def levels(self, arms: int, budget: int, horizon: int) -> list[tuple[int, int]]:
        """The plan as (k, n): 'keep the best k arms and bring each to n pulls', in this order.

        `(ANY, n)` opens what is left to every arm with fewer than n pulls.
        """

    @kernel
    def rating(self, ledger: Ledger, i: int, horizon: int) -> float:
        """What arms are ranked by, to be kept or pulled next: a pure function of i's history."""
        raise NotImplementedError

    # --- what some policies define ---

    @kernel
    def final_rating(self, ledger: Ledger, i: int, budget: int, horizon: int) -> float:
        """What racing arms are ranked by when one is recommended; the rating by default."""
        return ledger.rating[i]

    @kernel
    def update_rating(self, ledger: Ledger, i: int, horizon: int) -> None:
        """Rate arm `i` anew, whose history now ends in its newest reward."""
        ledger.rating[i] = rating(self, ledger, i, horizon)

    @kernel  # noqa: B027
    def rate_jointly(self, ledger: Ledger, horizon: int) -> None:
        """At the end of a phase, before arms are dropped: rate the racing arms by each other."""

    @kernel  # noqa: B027
    def after_sweep(self, ledger: Ledger, budget: int, horizon: int) -> None:
        """After each sweep over the racing arms: drop those that a comparison rules out."""

    @kernel
    def pick(self, ledger: Ledger, pulled: int, horizon: int, seed: int, run: int) -> int:
        """The arm of the next pull where the plan says ANY, or OVER when all are at the horizon.

        `pulled` is the only arm whose rating has changed since the last call, or ANY.
        """
        return best_open(ledger, pulled, horizon)

    # Whether `pick` takes the best-rated arm. Then an arm can be chosen while others are being
    # pulled: the ratings of now do not depend on which pulls are under way.
    picks_by_rating: ClassVar[bool] = False

    def pick_batch(
        self, rule: Any, ledger: Ledger, held: list[int], count: int, game: Any
    ) -> list[int]:
        """Up to `count` distinct arms to pull at once where the plan says ANY.

        `held`, whose pulls are under way, come first. Plain Python, for sessions that ask for
        several pulls before the first is told.
        """
        open_arms = (i for i, n in enumerate(ledger.n) if n < game.horizon and i not in held)
        more = count - len(held)
        return [*held, *heapq.nsmallest(more, open_arms, key=lambda i: (-ledger.rating[i], i))]

    # What a reward leaves in the ledger; `core/ledger.py` has leaner ones.
    remember: ClassVar[Callable[..., None]] = staticmethod(remember_slopes)

    def rated_window(self, n: int) -> int | None:
        """How many of the newest rewards the rating of an arm with n pulls is the mean of.

        None where the rating is not such a mean. Where it is, whole phases can be simulated by
        drawing the sums of their rewards instead of each one.
        """
        return None

    def running_window(self) -> float | None:
        """The window whose running sums are all that the rating needs of an arm's past.

        0 where the sum of all rewards, or the newest one, is enough; None where the past itself
        must be stored. Where it is not None, a GPU draws past rewards anew and stores none.
        """
        return None

    def needs_bends(self) -> bool:
        """Whether, with such a window, the newest second difference of an arm is looked at too."""
        return False

    def smallest_budget(self, arms: int) -> tuple[int, str]:
        """The smallest budget that can be spent by the rule, and why."""
        return arms, "one pull of each arm"

    def advised_budget(self, arms: int) -> tuple[int, str]:
        """The smallest budget that makes sense, and why."""
        return self.smallest_budget(arms)

    def forecast(self, ledger: Ledger, i: int) -> Forecast | None:
        """What is expected of arm `i`, in rewards; None where nothing is. For sessions too."""
        return None

    def settings(self, arms: int, budget: int, horizon: int) -> Any:
        """The fields as a named tuple of numbers: what `self` is inside kernels."""
        return numbers_of(self)

    def restricted(self, rule: Any, arms: Sequence[int]) -> Any:
        """Return what `settings` gave for some of the arms only, where it has an entry per arm."""
        return rule

    @classmethod
    def examples(cls) -> list[Self]:
        """Policies of this kind that can be played as they are; tests play every one of them."""
        return [cls()]

    # --- what every policy gets ---

    def plan(self, arms: int, budget: int, horizon: int | None = None, min_pulls: int = 1) -> Plan:
        """The phases of a race over `arms` arms; the horizon is the budget unless given.

        No arm is dropped before its pull number `min_pulls`: the first phases end there, and those
        that follow are of the largest budget with which the whole can be paid.
        """
        horizon = budget if horizon is None else horizon
        self.check(arms, budget, horizon, min_pulls)
        if min_pulls == 1:
            return knockout(self.levels(arms, budget, horizon), horizon)

        def raised(total: int) -> Plan:
            return knockout(with_grace(self.levels(arms, total, horizon), min_pulls), horizon)

        least = self.smallest_budget(arms)[0]
        fits = last_that(lambda total: cost_of(raised(total)) <= budget, least, budget)
        if fits is not None:
            return raised(fits)
        return knockout([(arms, budget // arms), (1, budget // arms)], horizon)

    def most_pulls(self, arms: int, budget: int, horizon: int, min_pulls: int = 1) -> int:
        """The most pulls that one arm can have: how long a past must have room.

        >>> from latebloomer.policies.rising_sr import RisingSR
        >>> from latebloomer.policies.round_robin import RoundRobin
        >>> RoundRobin().most_pulls(100, 2000, 2000), RisingSR().most_pulls(100, 2000, 2000)
        (20, 251)
        """
        plan = self.plan(arms, budget, horizon, min_pulls)
        if self.decides_after_sweeps() or ANY in plan.keep:
            return min(budget, horizon)
        racing, left, level = arms, budget, 0
        for k, upto in zip(plan.keep.tolist(), plan.upto.tolist(), strict=True):
            racing = min(racing, k)
            pulls = min(left, racing * (upto - level))
            left, level = left - pulls, level - (-pulls // racing)
        return int(level)

    def describe(
        self, arms: int, budget: int, horizon: int | None = None, min_pulls: int = 1
    ) -> Description:
        """The plan in words: phases, survivors, pulls each, what is left."""
        from latebloomer.policies.plan_text import describe

        return describe(self, arms, budget, horizon, min_pulls)

    def budget_needed(self, arms: int, horizon: int, min_pulls: int = 1) -> int:
        """The smallest budget that can be planned with."""
        return max(
            self.smallest_budget(arms)[0], arms * min(min_pulls, horizon) if min_pulls > 1 else 0
        )

    def check(self, arms: int, budget: int, horizon: int, min_pulls: int = 1) -> None:
        """Raise an error that says what is wrong, unless the policy can be played."""
        require(arms >= 2, "arms", arms, "at least 2", "with one arm there is nothing to choose")
        require(budget >= 1, "budget", budget, "at least 1", "every arm needs pulls")
        require(horizon >= 1, "horizon", horizon, "at least 1", "arms are compared at that pull")
        least, why = self.smallest_budget(arms)
        if budget < least:
            raise BudgetError(
                f"budget={budget} for {arms} arms, but {type(self).__name__} needs {least}: "
                f"{why}; drop arms or raise the budget"
            )
        if min_pulls != 1:
            self._check_grace(arms, budget, horizon, min_pulls)
        need_memory(PHASE_BYTES * arms, f"a plan for {arms} arms", "drop arms")

    def _check_grace(self, arms: int, budget: int, horizon: int, min_pulls: int) -> None:
        require(need_whole("min_pulls", min_pulls) >= 1, "min_pulls", min_pulls, "at least 1",
                "it is the pull before which no arm is dropped")  # fmt: skip
        name = type(self).__name__
        one_by_one = any(k == ANY for k, _ in self.levels(arms, budget, horizon))
        if one_by_one or self.decides_after_sweeps():
            raise SettingError(
                f"min_pulls={min_pulls}, but {name} has no phases at whose ends arms are dropped: leave "
                "grace out, or choose a policy that has them"
            )
        needed = self.budget_needed(arms, horizon, min_pulls)
        if budget < needed:
            raise BudgetError(
                f"budget={budget} for {arms} arms, but min_pulls={min_pulls} needs {needed}: "
                f"{min(min_pulls, horizon)} pulls of each arm before one is dropped; lower grace, "
                "drop arms or raise the budget"
            )

    @classmethod
    def decides_after_sweeps(cls) -> bool:
        """Whether a decision may fall after every sweep, not only between phases."""
        return cls.after_sweep is not Policy.after_sweep

    @classmethod
    def kernels(cls) -> dict[str, Callable[..., Any]]:
        """This policy's kernels by the names under which the loop calls them."""
        return {hook: getattr(cls, hook) for hook in HOOKS}


rating = Policy.rating  # `update_rating` names it; `moves_of` binds it to the policy's own


def numbers_of(policy: Policy) -> Any:
    """The numeric fields of a policy as a named tuple.

    A whole number where the class says float becomes one: `power=1` and `power=1.0` are then the
    same types to a compiler, and one compilation.
    """
    types = {field.name: field.type for field in dataclasses.fields(policy)}  # type: ignore[arg-type]
    values = ((getattr(policy, name), types[name]) for name in type(policy).Numbers._fields)
    return type(policy).Numbers(*(float(x) if t in ("float", float) else x for x, t in values))


def knockout(levels: Sequence[tuple[int, int]], horizon: int) -> Plan:
    """'Keep the best k arms and bring each to n pulls', level by level, as a plan.

    No arm goes beyond the horizon, and a level that adds no pulls is merged with the next: who
    would be dropped there is dropped on the same ratings one level later.

    >>> knockout([(4, 3), (3, 3), (2, 5), (1, 9)], horizon=8)
    Plan(keep=array([4, 2, 1]), upto=array([3, 5, 8]))
    """
    phases: list[tuple[int, int]] = []
    for place, (k, n) in enumerate(levels):
        before = phases[-1][1] if phases else 0
        last = place == len(levels) - 1
        if min(n, horizon) > before or (last and k != ANY):
            phases.append((k, max(before, min(n, horizon))))
    return Plan(*(np.array(column, dtype=np.int64) for column in zip(*phases, strict=True)))


def with_grace(levels: Sequence[tuple[int, int]], min_pulls: int) -> list[tuple[int, int]]:
    """The same levels, none below `min_pulls` pulls.

    >>> with_grace([(4, 1), (3, 2), (2, 5), (1, 9)], min_pulls=3)
    [(4, 3), (3, 3), (2, 5), (1, 9)]
    """
    return [(k, max(n, min_pulls)) for k, n in levels]


def cost_of(plan: Plan) -> int:
    """Pulls that a plan takes up to its last decision; a lone survivor has what is left.

    >>> cost_of(Plan([4, 2, 1], [3, 5, 8]))
    16
    """
    each = np.diff(plan.upto, prepend=0)
    return int(sum(k * n for k, n in zip(plan.keep, each, strict=True) if k > 1))


def last_that(holds: Callable[[int], bool], low: int, high: int) -> int | None:
    """The largest number from `low` to `high` for which something holds that ends once."""
    if not holds(low):
        return None
    while high > low:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low


def check_window(window: float) -> None:
    """Both estimators look at no more than the later half of an arm's rewards."""
    need_number("window", window)
    require(
        0 < window <= 0.5, "window", window, "in (0, 1/2]",
        "an arm is judged on at most the later half of its rewards",
    )  # fmt: skip
    require(
        window >= SMALLEST_WINDOW, "window", window, f"at least {SMALLEST_WINDOW:g}",
        "it holds no reward before pull 1/window",
    )  # fmt: skip


def check_not_negative(name: str, value: Any, why: str) -> None:
    need_number(name, value)
    require(0 <= value < float("inf"), name, value, "at least 0 and finite", why)


def check_choice(name: str, value: str, choices: Sequence[str], why: str) -> None:
    require(value in choices, name, value, "one of " + ", ".join(map(repr, choices)), why)


def budget_for_window(arms: int, window: float) -> tuple[int, str]:
    """The smallest budget with which successive rejects fill the window in their first phase.

    With n = `first_full(window)`, N_1 reaches n once T - K > (n - 1) K log_bar(K).
    """
    pulls = first_full(window)
    needed = floor(arms + (pulls - 1) * arms * log_bar(arms)) + 1
    return needed, f"{pulls} pulls of each arm in the first phase, so that its window is not empty"
