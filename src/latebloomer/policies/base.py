"""The contract: a policy is a plan (data, made once) and a rating of its arms.

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
PHASE_BYTES = 200  # memory for a phase while a plan is made; there may be a phase for each arm


class Forecast(NamedTuple):
    """What a policy expects of an arm, if it makes forecasts."""

    trust: float  # share of `gain` that the arm's rating includes, from 0 to 1
    origin: int  # pull from which earlier forecasts were made,
    tested: int  # and the pull up to which they were compared with the rewards
    ahead: float  # pull that is forecast
    gain: float  # expected gain until then


class Policy(ABC):
    """A rule that spends a budget over arms and recommends one of them."""

    Numbers: ClassVar[Any] = NumbersOf()
    name: ClassVar[str]  # in the registry and on the command line
    cites: ClassVar[tuple[str, ...]] = ()  # its sources: keys of src/latebloomer/refs.bib

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        _need_other_names(cls)
        cls.Numbers = NumbersOf()

    # --- what every policy defines ---

    @abstractmethod
    def levels(self, arms: int, budget: int, horizon: int) -> list[tuple[int, int]]:
        """Return the plan as (k, n): "keep the best k arms, train each to n pulls", in this order.

        With `(ANY, n)`, every arm with fewer than n pulls competes for each pull that is left.
        """

    @kernel
    def rating(self, ledger: Ledger, i: int, horizon: int) -> float:
        """Return what arms are ranked by: a function of the rewards of arm `i`.

        Some policies also read cells of the run: what all arms' rewards say of the noise, or what
        the latest decision was made by.
        """
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

    # Whether arms are treated by their index: the first is trained first, or in another bracket.
    # Simulations then give each run its own random order of arms.
    treats_arms_in_order: ClassVar[bool] = False

    # Whether `pick` takes the best-rated arm. If so, an arm can be chosen while others are being
    # pulled, because the current ratings do not depend on which pulls are under way.
    picks_by_rating: ClassVar[bool] = False

    def pick_batch(
        self, settings: Any, ledger: Ledger, held: list[int], count: int, game: Any
    ) -> list[int]:
        """Return up to `count` distinct arms to pull at the same time if the plan says ANY.

        The arms `held`, whose pulls are under way, come first. This is plain Python, for sessions
        that request several pulls before the first score is reported.
        """
        able, more = open_arms(ledger, held, game.horizon), count - len(held)
        return [*held, *heapq.nsmallest(more, able, key=lambda i: (-ledger.rating[i], i))]

    # What a run keeps: of each arm's rewards, and in cells of the policy's own.
    memory: ClassVar[Memory] = Memory()

    def rated_share(self) -> float | None:
        """Return the share of its pulls, the latest ones, that an arm's rating looks at.

        1 means all of them, 0 the latest reward alone, and None (the default) that the rating
        reads more of the past. If the memory has sums, the rating must be the mean of these
        rewards: then whole phases can be simulated by drawing sums of rewards, and a GPU draws
        past rewards again and stores none. If the memory has a window, it is that share.
        """
        return None

    def reads_bends(self) -> bool:
        """Return whether ratings read the latest second difference of an arm: `newest_bend`.

        It takes room on a GPU that draws past rewards again.
        """
        return False

    def after_replan(self, ledger: Ledger) -> None:  # noqa: B027
        """Make cells fit again after a new plan has copied them: arms have left or joined.

        Cells of arms that joined are 0. This is plain Python, for sessions.
        """

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
        """Return what `self` is inside kernels: the numeric fields as a named tuple."""
        return numbers_of(self)

    def restricted(self, settings: Any, arms: Sequence[int]) -> Any:
        """Return `settings` for some of the arms; needed if it has arrays by arm."""
        return settings

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

    def rated_span(self, n: int) -> int:
        """Return the number of latest rewards that the rating of an arm with n pulls looks at."""
        share = self.rated_share()
        return n if share is None else max(1, window_length(share, n))

    @classmethod
    def rates_by_sums(cls) -> bool:
        """Return whether ratings follow from sums of rewards, as far as `memory` says."""
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
        """Return whether a rating is needed only where arms are compared, and may wait until then.

        It may if `rating` is all that rates an arm between two decisions.
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
