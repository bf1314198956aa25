"""The contract: a policy is a plan (data, made once) and a rating (a pure function of one arm).

A subclass is a frozen dataclass of settings with a `name` and two methods, `levels` (the plan)
and `rating`; the rest has defaults. Methods marked `@kernel` run unchanged in a session (plain
Python), in the CPU simulator (numba) and on the GPU (numba-cuda); inside them `self` is the named
tuple that `settings` returns. Error messages say "learner", because races show them too.
"""

from __future__ import annotations

import dataclasses
import heapq
from abc import ABC, abstractmethod
from collections import namedtuple
from collections.abc import Callable, Collection, Sequence
from math import floor
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from latebloomer._util.memory import need_memory
from latebloomer.core import ledger as ledgers
from latebloomer.core.estimators import first_full
from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import ANY, RACERS, Ledger, Plan, best_open
from latebloomer.core.moves import log_bar
from latebloomer.errors import BudgetError, SettingError, need_in, need_whole, require

if TYPE_CHECKING:
    from latebloomer.policies.plan_text import Description

NUMERIC = ("bool", "int", "float", bool, int, float)  # annotations, as text or as types
SMALLEST_WINDOW = 1e-9
PHASE_BYTES = 200  # memory for a phase while a plan is made; there may be a phase for each arm


class Forecast(NamedTuple):
    """What a policy expects of an arm, if it makes forecasts."""

    trust: float  # share of `gain` that the arm's rating includes, from 0 to 1
    origin: int  # pull from which earlier forecasts were made,
    tested: int  # and the pull up to which they were compared with the rewards
    ahead: float  # pull that is forecast
    gain: float  # expected gain until then


class NumbersOf:
    """Make the named tuple of a policy's numeric fields when it is first needed.

    It is stored on the policy's class under its own name: numba's disk cache refers to types by
    name and finds it there in any process.
    """

    def __get__(self, policy: object, cls: type[Policy]) -> Any:
        fields = dataclasses.fields(cls)  # type: ignore[arg-type]
        names = [field.name for field in fields if field.type in NUMERIC]
        made: Any = namedtuple("Numbers", names, module=cls.__module__)  # type: ignore[misc]
        made.__qualname__ = f"{cls.__qualname__}.Numbers"
        cls.Numbers = made
        return made


class Policy(ABC):
    """A rule that spends a budget over arms and recommends one of them."""

    Numbers: ClassVar[Any] = NumbersOf()
    name: ClassVar[str]  # in the registry and on the command line
    cites: ClassVar[tuple[str, ...]] = ()  # its sources: keys of src/latebloomer/refs.bib

    # --- what every policy defines ---

    @abstractmethod
    def levels(self, arms: int, budget: int, horizon: int) -> list[tuple[int, int]]:
        """Return the plan as (k, n): "keep the best k arms, train each to n pulls", in this order.

        With `(ANY, n)`, every arm with fewer than n pulls competes for each pull that is left.
        """

    @kernel
    def rating(self, ledger: Ledger, i: int, horizon: int) -> float:
        """Return what arms are ranked by: a pure function of the history of arm `i`."""
        raise NotImplementedError

    # --- what some policies define ---

    @kernel
    def final_rating(self, ledger: Ledger, i: int, budget: int, horizon: int) -> float:
        """Return what racing arms are ranked by when one is recommended. Default: the rating."""
        return ledger.rating[i]

    @kernel
    def update_rating(self, ledger: Ledger, i: int, horizon: int) -> None:
        """Rate arm `i` again after its latest reward was entered."""
        ledger.rating[i] = rating(self, ledger, i, horizon)

    @kernel  # noqa: B027
    def rate_jointly(self, ledger: Ledger, horizon: int) -> None:
        """Rate the racing arms together, at the end of a phase, before arms are dropped."""

    @kernel  # noqa: B027
    def after_sweep(self, ledger: Ledger, budget: int, horizon: int) -> None:
        """Drop the racing arms that a comparison rules out, after each sweep over them."""

    @kernel
    def pick(self, ledger: Ledger, pulled: int, horizon: int, seed: int, run: int) -> int:
        """Return the arm to pull next if the plan says ANY; OVER if all are at the horizon.

        `pulled` is the only arm whose rating has changed since the last call, or ANY.
        """
        return best_open(ledger, pulled, horizon)

    # Whether `pick` takes the best-rated arm. If so, an arm can be chosen while others are being
    # pulled, because the current ratings do not depend on which pulls are under way.
    picks_by_rating: ClassVar[bool] = False

    def pick_batch(
        self, rule: Any, ledger: Ledger, held: list[int], count: int, game: Any
    ) -> list[int]:
        """Return up to `count` distinct arms to pull at the same time if the plan says ANY.

        The arms `held`, whose pulls are under way, come first. This is plain Python, for sessions
        that request several pulls before the first score is reported.
        """
        able, more = open_arms(ledger, held, game.horizon), count - len(held)
        return [*held, *heapq.nsmallest(more, able, key=lambda i: (-ledger.rating[i], i))]

    # What is stored of a reward; `core/ledger.py` has functions that store less.
    remember: ClassVar[Callable[..., None]] = staticmethod(ledgers.remember_slopes)

    def rated_window(self, n: int) -> int | None:
        """Return the number of latest rewards whose mean is the rating of an arm with n pulls.

        None if the rating is not such a mean. If it is, whole phases can be simulated by drawing
        sums of rewards instead of each reward.
        """
        return None

    def running_window(self) -> tuple[float, bool] | None:
        """Return the window whose running sums are all that the rating needs of an arm's past.

        A window of 0 means that the sum of all rewards, or the latest one, is enough. The second
        value says whether the latest second difference is needed too. None if the past itself
        must be stored. If it is not None, a GPU draws past rewards again and stores none. Default:
        0 for a policy that remembers nothing, otherwise None.
        """
        return (0.0, False) if self.remember is ledgers.remember_nothing else None

    def smallest_budget(self, arms: int) -> tuple[int, str]:
        """Return the smallest budget that the policy can spend, and why."""
        return arms, "one pull of each learner"

    def advised_budget(self, arms: int) -> tuple[int, str]:
        """Return the smallest budget that is recommended, and why."""
        return self.smallest_budget(arms)

    def forecast(self, ledger: Ledger, i: int) -> Forecast | None:
        """Return what is expected of arm `i`, in rewards; None without a forecast."""
        return None

    def settings(self, arms: int, budget: int, horizon: int) -> Any:
        """Return the numbers that `self` is inside kernels: its numeric fields as a named tuple.

        An integer in a field of type float becomes a float: `power=1` and `power=1.0` are then
        the same type to a compiler, and are compiled once.
        """
        types = {field.name: field.type for field in dataclasses.fields(self)}  # type: ignore[arg-type]
        values = ((getattr(self, name), types[name]) for name in self.Numbers._fields)
        return self.Numbers(*(float(x) if t in ("float", float) else x for x, t in values))

    def restricted(self, rule: Any, arms: Sequence[int]) -> Any:
        """Return the numbers in `rule` for some of the arms; needed if it has arrays by arm."""
        return rule

    # Settings that tests run, each a policy; the defaults alone are enough for most.
    _examples: ClassVar[tuple[dict[str, Any], ...]] = ({},)

    @classmethod
    def examples(cls) -> list[Self]:
        """Return the policies that tests run."""
        return [cls(**settings) for settings in cls._examples]

    # --- what every policy gets ---

    def plan(self, arms: int, budget: int, horizon: int | None = None, min_pulls: int = 1) -> Plan:
        """Return the phases for `arms` arms. Default horizon: the budget.

        No arm is dropped before it has had `min_pulls` pulls: the first phases end there, and the
        later ones are those of the largest budget with which all of them can be paid.
        """
        horizon = budget if horizon is None else horizon
        self.check(arms, budget, horizon, min_pulls)
        if min_pulls == 1:
            return knockout(self.levels(arms, budget, horizon), horizon)

        def raised(total: int) -> Plan:
            levels = [(k, max(n, min_pulls)) for k, n in self.levels(arms, total, horizon)]
            return knockout(levels, horizon)

        least = self.smallest_budget(arms)[0]
        fits = last_that(lambda total: cost_of(raised(total)) <= budget, least, budget)
        if fits is not None:
            return raised(fits)
        return knockout([(arms, budget // arms), (1, budget // arms)], horizon)

    def describe(
        self, arms: int, budget: int, horizon: int | None = None, min_pulls: int = 1
    ) -> Description:
        """Return the plan as text: phases, remaining arms, pulls each, pulls left over."""
        from latebloomer.policies.plan_text import describe

        return describe(self, arms, budget, horizon, min_pulls)

    def check(self, arms: int, budget: int, horizon: int, min_pulls: int = 1) -> None:
        """Raise an error that says what is wrong, unless the policy can be run."""
        require(arms >= 2, "arms", arms, "at least 2", "with one arm there is nothing to choose")
        require(budget >= 1, "budget", budget, "at least 1", "every learner needs pulls")
        require(horizon >= 1, "horizon", horizon, "at least 1", "learners are compared there")
        least, why = self.smallest_budget(arms)
        if budget < least:
            raise BudgetError(
                f"budget={budget} is too small for {arms} learners: {self._label} needs at least "
                f"{least} ({why}). Raise the budget or race fewer learners."
            )
        if min_pulls != 1:
            self._check_min_pulls(arms, budget, horizon, min_pulls)
        need_memory(PHASE_BYTES * arms, f"a plan for {arms} learners", "race fewer learners")

    def _check_min_pulls(self, arms: int, budget: int, horizon: int, min_pulls: int) -> None:
        why = "no learner is dropped before it has had that many pulls"
        need_whole("min_pulls", min_pulls, 1, why)
        one_by_one = any(k == ANY for k, _ in self.levels(arms, budget, horizon))
        if one_by_one or self.decides_after_sweeps():
            raise SettingError(
                f"min_pulls={min_pulls} cannot be used with {self._label}, which has no phases "
                "that end in a drop. Omit min_pulls or choose a policy with phases."
            )
        horizon = max(horizon, min_pulls) if horizon == budget else horizon  # which grows too
        needed = least_budget(self, arms, horizon, min_pulls)
        if budget < needed:
            raise BudgetError(
                f"budget={budget} is too small for {arms} learners with min_pulls={min_pulls}: at "
                f"least {needed} are needed ({min(min_pulls, horizon)} pulls of each learner "
                "before one is dropped). Lower min_pulls, raise the budget or race fewer learners."
            )

    @property
    def _label(self) -> str:
        return getattr(self, "name", type(self).__name__)

    @classmethod
    def decides_after_sweeps(cls) -> bool:
        """Return whether arms may be dropped after every sweep, not only between phases."""
        return cls.after_sweep is not Policy.after_sweep


rating = Policy.rating  # `update_rating` calls it; `moves_of` binds it to the policy's own


def open_arms(ledger: Ledger, held: Collection[int], horizon: int) -> list[int]:
    """Return the racing arms below the horizon whose pulls are not under way."""
    racing = ledger.racing[: ledger.cursor[RACERS]]
    return [i for i in racing if i not in held and ledger.n[i] < horizon]


def knockout(levels: Sequence[tuple[int, int]], horizon: int) -> Plan:
    """Return levels, "keep the best k arms, train each to n pulls", as a plan.

    No arm is trained beyond the horizon. A level that adds no pulls is merged with the next one:
    arms that would be dropped there are dropped on the same ratings one level later.

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


def least_budget(policy: Policy, arms: int, horizon: int, min_pulls: int = 1) -> int:
    """Return the smallest budget for which a plan with `min_pulls` can be made."""
    first = arms * min(min_pulls, horizon) if min_pulls > 1 else 0
    return max(policy.smallest_budget(arms)[0], first)


def most_pulls(policy: Policy, arms: int, budget: int, horizon: int, min_pulls: int = 1) -> int:
    """Return the largest number of pulls that one arm can have: the length of a stored past.

    >>> from latebloomer.policies.rising_sr import RisingSR
    >>> from latebloomer.policies.window_ratings import RoundRobin
    >>> most_pulls(RoundRobin(), 100, 2000, 2000), most_pulls(RisingSR(), 100, 2000, 2000)
    (20, 251)
    """
    plan = policy.plan(arms, budget, horizon, min_pulls)
    if policy.decides_after_sweeps() or ANY in plan.keep:
        return min(budget, horizon)
    racing, left, level = arms, budget, 0
    for k, upto in zip(plan.keep.tolist(), plan.upto.tolist(), strict=True):
        racing = min(racing, k)
        pulls = min(left, racing * (upto - level))
        left, level = left - pulls, level - (-pulls // racing)
    return int(level)


def cost_of(plan: Plan) -> int:
    """Return the pulls that a plan takes up to its last decision, without those of the last arm.

    >>> cost_of(Plan([4, 2, 1], [3, 5, 8]))
    16
    """
    each = np.diff(plan.upto, prepend=0)
    return int(sum(k * n for k, n in zip(plan.keep, each, strict=True) if k > 1))


def last_that(holds: Callable[[int], bool], low: int, high: int) -> int | None:
    """Return the largest number from `low` to `high` up to which `holds` is true; None if none."""
    if not holds(low):
        return None
    while high > low:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low


def check_window(window: float) -> None:
    """Raise an error unless a window is at most the later half of an arm's rewards."""
    why = "a learner is rated by at most the later half of its rewards, from pull 1/window on"
    need_in("window", window, f"[{SMALLEST_WINDOW:g}, 0.5]", why)


def check_choice(name: str, value: str, choices: Sequence[str], why: str) -> None:
    """Raise an error unless a setting is one of the choices."""
    require(value in choices, name, value, "one of " + ", ".join(map(repr, choices)), why)


def budget_for_window(arms: int, window: float) -> tuple[int, str]:
    """Return the smallest budget whose first phase of successive rejects fills the window.

    With n = `first_full(window)`, N_1 reaches n once T - K > (n - 1) K log_bar(K).
    """
    pulls = first_full(window)
    needed = floor(arms + (pulls - 1) * arms * log_bar(arms)) + 1
    return needed, f"{pulls} pulls of each learner in the first phase, which fill its window"
