"""The contract of policies: a policy is a plan (data, made once) and a rating of arms.

A subclass is a frozen dataclass of settings with a `name` and two methods, `levels` (the plan)
and `rating`; the rest has defaults. Methods marked `@kernel` run unchanged in a session (plain
Python), in the CPU simulator (numba) and on the GPU (numba-cuda); inside them `self` is the named
tuple that `settings` returns. Error messages say "learner", because races show them too.
"""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from inspect import get_annotations
from math import floor
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from latebloomer._util.memory import need_memory
from latebloomer.core.formulas import first_full, window_length
from latebloomer.core.kernel import kernel
from latebloomer.core.kernel_numbers import NumbersOf, numbers_of
from latebloomer.core.ledger import ANY, RACERS, Ledger, Plan
from latebloomer.core.moves import rating
from latebloomer.core.phases import log_bar
from latebloomer.core.ranking import best_open
from latebloomer.core.run_memory import SUMS, Memory
from latebloomer.errors import (
    BudgetError,
    ContractError,
    SettingError,
    need_in,
    need_whole,
    require,
)

if TYPE_CHECKING:
    from latebloomer.policies.plan_text import Description

SMALLEST_WINDOW = 1e-9
PHASE_BYTES = 200  # bytes per phase while a plan is made; there may be one phase per arm


class Forecast(NamedTuple):
    """The forecast that a policy makes of an arm's rewards."""

    trust: float  # share of `gain` that the arm's rating includes, from 0 to 1
    origin: int  # pull at which the earlier forecasts were made that the trust is computed from,
    tested: int  # and the last pull with whose reward they were compared
    ahead: float  # pull for which the forecast is made
    gain: float  # expected gain until that pull


class Policy(ABC):
    """A rule that divides a budget among arms and recommends one of them."""

    Numbers: ClassVar[Any] = NumbersOf()
    name: ClassVar[str]  # its name in the registry and on the command line
    cites: ClassVar[tuple[str, ...]] = ()  # keys of its sources in src/latebloomer/refs.bib

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        _need_other_names(cls)
        cls.Numbers = NumbersOf()

    # --- methods that every policy defines ---

    @abstractmethod
    def levels(self, arms: int, budget: int, horizon: int) -> list[tuple[int, int]]:
        """Return the plan as (k, n): "keep the best k arms, train each to n pulls", in this order.

        With `(ANY, n)`, every arm with fewer than n pulls competes for each remaining pull.
        """

    @kernel
    def rating(self, ledger: Ledger, i: int, horizon: int) -> float:
        """Return the rating by which arm `i` is ranked, computed from its rewards.

        Some policies also read cells of the run, such as the noise estimated from all arms'
        rewards, or values of the latest decision.
        """
        raise NotImplementedError

    # --- methods that some policies define ---

    @kernel
    def final_rating(self, ledger: Ledger, i: int, budget: int, horizon: int) -> float:
        """Return the rating by which racing arms are ranked for the recommendation."""
        return ledger.rating[i]

    @kernel
    def update_rating(self, ledger: Ledger, i: int, horizon: int) -> None:
        """Update the rating of arm `i` after a reward was entered."""
        ledger.rating[i] = rating(self, ledger, i, horizon)

    @kernel  # noqa: B027
    def rate_jointly(self, ledger: Ledger, horizon: int) -> None:
        """Rate all racing arms together at the end of a phase, before arms are dropped."""

    @kernel  # noqa: B027
    def after_sweep(self, ledger: Ledger, budget: int, horizon: int) -> None:
        """Drop racing arms that can no longer win, after each sweep."""

    @kernel
    def pick(self, ledger: Ledger, pulled: int, horizon: int, seed: int, run: int) -> int:
        """Return the arm to pull next if the phase is ANY; OVER if all are at the horizon.

        `pulled` is the only arm whose rating has changed since the last call; ANY if others may
        have changed.
        """
        return best_open(ledger, pulled, horizon)

    # Whether an arm's index matters: for example, the first arm is trained first, or is in another
    # bracket. Simulations then give each run its own random order of arms.
    treats_arms_in_order: ClassVar[bool] = False

    # Whether `pick` returns the best-rated arm. If so, an arm can be chosen while other arms are
    # being pulled, because the current ratings do not depend on the pulls under way.
    picks_by_rating: ClassVar[bool] = False

    def pick_batch(
        self, settings: Any, ledger: Ledger, held: list[int], count: int, game: Any
    ) -> list[int]:
        """Return up to `count` distinct arms to pull at the same time in a phase of ANY arm.

        The arms `held`, whose pulls are under way, come first. This is plain Python, for sessions
        that request several pulls before the first score is reported.
        """
        able, more = open_arms(ledger, held, game.horizon), count - len(held)
        return [*held, *heapq.nsmallest(more, able, key=lambda i: (-ledger.rating[i], i))]

    # What a run stores: values from each arm's rewards, and the policy's own cells.
    memory: ClassVar[Memory] = Memory()

    def rated_share(self) -> float | None:
        """Return the share of an arm's pulls, the latest ones, whose rewards its rating uses.

        1 means all rewards and 0 only the latest one. None (the default) means that the rating
        uses the past in another way. If the memory has sums, the rating must be the mean of these
        rewards. Then whole phases can be simulated by drawing sums of rewards, and a GPU can draw
        past rewards again instead of storing them. If the memory has a window, the share must be
        that of the window.
        """
        return None

    def reads_bends(self) -> bool:
        """Return whether ratings use an arm's latest second difference (`newest_bend`).

        It needs extra memory on a GPU, which draws past rewards again.
        """
        return False

    def after_replan(self, ledger: Ledger) -> None:  # noqa: B027
        """Correct cells that were copied for a new plan, because arms have left or joined.

        Cells of arms that joined are 0. This is plain Python, for sessions.
        """

    def smallest_budget(self, arms: int) -> tuple[int, str]:
        """Return the smallest budget that the policy can spend, and why."""
        return arms, "one pull of each learner"

    def advised_budget(self, arms: int) -> tuple[int, str]:
        """Return the smallest budget that is recommended, and why."""
        return self.smallest_budget(arms)

    def forecast(self, ledger: Ledger, i: int) -> Forecast | None:
        """Return the forecast for arm `i`, in rewards; None if the policy makes no forecast."""
        return None

    def settings(self, arms: int, budget: int, horizon: int) -> Any:
        """Return the named tuple of numeric fields that is `self` inside kernels."""
        return numbers_of(self)

    def restricted(self, settings: Any, arms: Sequence[int]) -> Any:
        """Return `settings` for some of the arms; override it if `settings` has arrays by arm."""
        return settings

    # Settings of the policies that tests run; for most policies, the defaults are enough.
    _examples: ClassVar[tuple[dict[str, Any], ...]] = ({},)

    @classmethod
    def examples(cls) -> list[Self]:
        """Return the policies that tests run."""
        return [cls(**settings) for settings in cls._examples]

    # --- methods that every policy inherits ---

    def plan(self, arms: int, budget: int, horizon: int | None = None, min_pulls: int = 1) -> Plan:
        """Return the phases for `arms` arms. Default horizon: the budget.

        No arm is dropped before it has had `min_pulls` pulls: phases that would end earlier end
        there. The later phases are those of the largest budget for which `budget` still pays for
        all phases.
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
        """Return a description of the plan: phases, arms, pulls per arm, pulls left over."""
        from latebloomer.policies.plan_text import describe

        return describe(self, arms, budget, horizon, min_pulls)

    def check(self, arms: int, budget: int, horizon: int, min_pulls: int = 1) -> None:
        """Raise an error that says why the policy cannot be run with these arguments, if so."""
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
        # A default horizon grows with the budget.
        horizon = max(horizon, min_pulls) if horizon == budget else horizon
        needed = least_budget(self, arms, horizon, min_pulls)
        if budget < needed:
            raise BudgetError(
                f"budget={budget} is too small for {arms} learners with min_pulls={min_pulls}: at "
                f"least {needed} are needed ({min(min_pulls, horizon)} pulls of each learner "
                "before one is dropped). Lower min_pulls, raise the budget or race fewer learners."
            )

    def rated_span(self, n: int) -> int:
        """Return the number of latest rewards that the rating of an arm with n pulls uses."""
        share = self.rated_share()
        return n if share is None else max(1, window_length(share, n))

    @classmethod
    def rates_by_sums(cls) -> bool:
        """Return whether ratings are computed from sums of rewards, according to `memory`."""
        return cls.memory.past is SUMS and not cls.decides_after_sweeps()

    @property
    def _label(self) -> str:
        return getattr(self, "name", type(self).__name__)

    @classmethod
    def decides_after_sweeps(cls) -> bool:
        """Return whether arms may be dropped after every sweep, not only between phases."""
        return cls.after_sweep is not Policy.after_sweep

    @classmethod
    def rates_by_history(cls) -> bool:
        """Return whether ratings may be computed only when arms are compared.

        They may if `rating` is the only method that rates an arm between two decisions.
        """
        return cls.update_rating is Policy.update_rating and not cls.decides_after_sweeps()


def _need_other_names(policy: type[Policy]) -> None:
    """Raise a `ContractError` if a setting of a policy hides a method of the contract."""
    for setting in get_annotations(policy):
        if callable(getattr(Policy, setting, None)):
            raise ContractError(
                f"{policy.__name__}.{setting} is a setting, but Policy.{setting} is a method that "
                "every policy has. Give the setting another name."
            )


def open_arms(ledger: Ledger, held: Collection[int], horizon: int) -> list[int]:
    """Return the racing arms below the horizon whose pulls are not under way."""
    racing = ledger.racing[: ledger.cursor[RACERS]]
    return [i for i in racing if i not in held and ledger.n[i] < horizon]


def knockout(levels: Sequence[tuple[int, int]], horizon: int) -> Plan:
    """Return pairs (k, n), "keep the best k arms, train each to n pulls", as a plan.

    No arm is trained beyond the horizon. A level that adds no pulls is merged with the next one:
    arms that would be dropped at that level are dropped at the next one, by the same ratings.

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
    """Return the largest number of pulls that one arm can get, which is the length to store.

    >>> from latebloomer.policies.rising_sr import RisingSR
    >>> from latebloomer.policies.window_ratings import RoundRobin
    >>> most_pulls(RoundRobin(), 100, 2000, 2000), most_pulls(RisingSR(), 100, 2000, 2000)
    (20, 251)
    """
    plan = policy.plan(arms, budget, horizon, min_pulls)
    if policy.decides_after_sweeps() or ANY in plan.keep:
        return min(budget, horizon)
    racing, remaining, level = arms, budget, 0
    for k, upto in zip(plan.keep.tolist(), plan.upto.tolist(), strict=True):
        racing = min(racing, k)
        pulls = min(remaining, racing * (upto - level))
        remaining, level = remaining - pulls, level - (-pulls // racing)
    return int(level)


def cost_of(plan: Plan) -> int:
    """Return the pulls that a plan needs up to its last decision, without those of the last arm.

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
    """Return the smallest budget with which the first phase of successive rejects fills a window.

    With n = `first_full(window)`, N_1 reaches n once T - K > (n - 1) K log_bar(K).
    """
    pulls = first_full(window)
    needed = floor(arms + (pulls - 1) * arms * log_bar(arms)) + 1
    return needed, f"{pulls} pulls of each learner in the first phase, which fill its window"
