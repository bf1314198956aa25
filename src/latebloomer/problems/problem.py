"""A problem: arms with known curves, and the noise of their rewards."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from latebloomer._util.memory import need_memory
from latebloomer._util.text import reason_of
from latebloomer.core.ledger import RUNS
from latebloomer.core.policy_moves import key
from latebloomer.errors import ArmError, CurveError, extra, need_whole, require
from latebloomer.problems.curves import Floats
from latebloomer.problems.noise import KnownNoise, as_noise, need_reward
from latebloomer.theory import complexity

AnyCurve: TypeAlias = Callable[[npt.ArrayLike], npt.ArrayLike]

MOST_MEANS = 10**11  # maximum number of means that are computed: an hour or two
CURVE_BYTES = 800  # bytes per curve, with its name
# Number of means that are computed at a time when a table is only read once, and number of pulls
# at which a curve is evaluated at a time. Intermediate results of this size stay in the cache;
# with 2^17, a mean takes twice as long.
BLOCK = 2**13


@dataclass(frozen=True, eq=False)
class Problem:
    """Arms whose mean rewards are known exactly, on which policies are simulated.

    `curves` is a table in which ``curves[i, n - 1]`` is the mean of arm i's n-th pull, or one
    function of n per arm. The functions are those of `latebloomer.problems.curves`, or any
    function of an array of n that returns an array of means, or one number for all n.

    Parameters
    ----------
    curves : Any
        A table, or one function of n per arm. It is stored as a read-only array or a tuple.
    noise : Any
        A `Noise`, a number for the standard deviation of Gaussian noise, or None for no noise. It
        is stored as a `Noise`.
    names : Sequence[str]
        Names of the arms, all different. Default: arm 0, arm 1, ....
    label : str
        Name of the problem in results.

    Raises
    ------
    CurveError
        The curves are empty, not finite, or impossible with this noise.

    Examples
    --------
    >>> from latebloomer.problems import Exponential, Stationary
    >>> late = Problem([Exponential(0.9, tau=50), Stationary(0.5)], 0.1, ["late", "flat"])
    >>> late.best(10), late.best(100), late.changes(100)
    (1, 0, ((1, 1), (41, 0)))
    """

    curves: Any
    noise: Any = None
    names: Sequence[str] = ()
    label: str = "problem"

    def __post_init__(self) -> None:
        set_field, names = object.__setattr__, _names(self.names, _count(self.curves))
        functions = all(callable(curve) for curve in self.curves)
        curves = tuple(self.curves) if functions else _as_table(self.curves, names)
        set_field(self, "curves", curves)
        set_field(self, "noise", as_noise(self.noise))
        set_field(self, "names", names)
        need_reward(self.noise, self.arms)
        if self.length is not None:
            self.noise.check(self.curves)
        if not isinstance(self.noise, KnownNoise):
            self._need_finite_reward()

    def _need_finite_reward(self) -> None:
        reward, name = self.draw(0, 1), f"{type(self.noise).__name__}.reward"
        require(math.isfinite(reward), name, reward, "a finite number", "policies compare it")

    @property
    def arms(self) -> int:
        """Number of arms."""
        return len(self.curves)

    @property
    def length(self) -> int | None:
        """Number of pulls that the curves of all arms cover; None if they never end."""
        return self.curves.shape[1] if isinstance(self.curves, np.ndarray) else None

    def means(self, budget: int) -> Floats:
        """Return the table (arms, budget) of the means of the pulls 1 to `budget` of each arm."""
        self.need_pulls("budget", budget)
        what = f"the table of the means of {self.arms} arms up to pull {budget}"
        need_memory(8 * self.arms * int(budget), what, "set a smaller budget, or give fewer arms")
        means = self._means_of(range(self.arms), 1, int(budget))
        return means if self.length is None else means.copy()

    def mean_rows(self, budget: int) -> Iterator[Floats]:
        """Yield the table of `means` in blocks: some complete rows, or a part of one row."""
        self.need_means("budget", budget)
        each = max(1, BLOCK // int(budget))
        for arm in range(0, self.arms, each):
            for first in range(1, int(budget) + 1, BLOCK):
                last = min(first + BLOCK - 1, int(budget))
                yield self._means_of(range(arm, min(arm + each, self.arms)), first, last)

    def rows(self, budget: int) -> Iterator[Floats]:
        """Yield the rows of the table of `means`, arm by arm."""
        for arm in range(self.arms):
            yield self._means_of(range(arm, arm + 1), 1, int(budget))[0]

    def best(self, horizon: int) -> int:
        """Return the arm with the largest mean at pull `horizon`; the lowest index wins ties."""
        return complexity.best_arm(self._mean_at(horizon), 1, complexity.TIE)

    def gaps(self, horizon: int) -> Floats:
        r"""Return the gap of each arm: :math:`\Delta_i(H) = \max_j \mu_j(H) - \mu_i(H)`."""
        return complexity.gaps(self._mean_at(horizon), 1)

    def changes(self, budget: int) -> tuple[tuple[int, int], ...]:
        """Return pairs (horizon, arm): from this horizon on, this arm is the best one."""
        self.need_means("budget", budget)
        leads: list[tuple[int, int]] = []
        for first in range(1, int(budget) + 1, BLOCK):
            best = self._best_arms(first, min(first + BLOCK - 1, int(budget)))
            before = leads[-1][1] if leads else -1
            starts = np.flatnonzero(np.diff(best, prepend=before))
            leads += zip((first + starts).tolist(), best[starts].tolist(), strict=True)
        return tuple(leads)

    def _best_arms(self, first: int, last: int) -> npt.NDArray[np.int64]:
        """Return the best arm at each of the horizons `first` to `last`.

        Arms are evaluated one by one, each at many pulls at the same time, so that many arms need
        little memory. Arms near the highest mean so far are evaluated again when the highest mean
        of all arms is known.
        """
        size = last - first + 1
        highest, near = np.full(size, -np.inf), []
        for arm in range(self.arms):
            means = self._means_of(range(arm, arm + 1), first, last)[0]
            if np.any(means >= highest - complexity.TIE):
                near.append(arm)
                np.maximum(highest, means, out=highest)
        best = np.zeros(size, np.int64)
        for arm in reversed(near):  # reversed, so that the lowest index wins ties
            means = self._means_of(range(arm, arm + 1), first, last)[0]
            best[means >= highest - complexity.TIE] = arm
        return best

    def check(self, budget: int, c: float = 1.0, beta: float = 1.5) -> "AssumptionReport":
        """Return which of the paper's assumptions hold for the problem at a budget; `print` it.

        For Assumption 2 it has the largest beta that is possible with `c`, and the smallest c that
        is possible with `beta`.
        """
        means, changes = self.means(budget), self.changes(budget)
        falls, bends_up = complexity.violations(means, complexity.TIE)
        return AssumptionReport(
            label=self.label,
            names=tuple(self.names),
            budget=budget,
            falls=tuple(violation.pull if violation else None for violation in falls),
            bends_up=tuple(violation.pull if violation else None for violation in bends_up),
            c=c,
            largest_beta=complexity.largest_beta(means, c),
            beta=beta,
            smallest_c=complexity.smallest_c(means, beta),
            best=changes[-1][1],
            gaps=self.gaps(budget),
            changes=changes,
        )

    def draw(self, arm: int, pull: int, seed: int = 0, run: int = 0) -> float:
        """Return the reward of an arm's pull `pull` (1 is the first); it never changes."""
        self.need_pulls("pull", pull)
        if not 0 <= arm < self.arms:
            raise ArmError(f"no arm {arm}: there are {self.arms}, from 0 to {self.arms - 1}")
        known = 0 <= need_whole("run", run) < RUNS
        require(known, "run", run, f"from 0 to {RUNS - 1}", "runs are numbered below 2^48")
        mean = float(self._means_of(range(self.arms), int(pull), int(pull))[arm, 0])
        draw, numbers = type(self.noise).reward, self.noise.numbers(self.arms)
        return float(draw(numbers, mean, key(seed), run, arm, int(pull) - 1))

    def plot(self, budget: int, ax: Any = None) -> Any:
        """Draw the curves up to `budget`, with the horizons where the best arm changes."""
        pyplot = extra("matplotlib.pyplot", "plots", "plots")
        means, pulls = self.means(budget), np.arange(1, budget + 1)
        ax = pyplot.subplots()[1] if ax is None else ax
        for name, mean in zip(self.names, means, strict=True):
            ax.plot(pulls, mean, label=name)
        for horizon, _ in self.changes(budget)[1:]:
            ax.axvline(horizon, color="0.8", linewidth=0.8, zorder=0)
        ax.set(xlabel="pulls of the arm", ylabel="mean reward", title=self.label)
        ax.legend()
        return ax

    def _mean_at(self, horizon: int) -> Floats:
        """Return the table (arms, 1) of the means at pull `horizon`."""
        self.need_pulls("horizon", horizon)
        return self._means_of(range(self.arms), int(horizon), int(horizon))

    def _means_of(self, arms: range, first: int, last: int) -> Floats:
        """Return the means of some arms at pulls `first` to `last`; for a table, it is a view."""
        if self.length is not None:
            return self.curves[arms.start : arms.stop, first - 1 : last]
        means = np.empty((len(arms), last - first + 1))
        for arm, row in zip(arms, means, strict=True):
            for start in range(first, last + 1, BLOCK):
                pulls = np.arange(start, min(start + BLOCK, last + 1))
                at = slice(start - first, start - first + len(pulls))
                row[at] = _evaluate(self.names[arm], self.curves[arm], pulls)
        self.noise.check(means)
        return means

    def need_pulls(self, name: str, value: int) -> None:
        """Raise an error unless `value` is a number of pulls that the curves cover."""
        need_whole(name, value, 1, "it counts pulls")
        if self.length is not None and value > self.length:
            raise CurveError(
                f"{name}={value}, but the curves of {self.label} end at pull {self.length}: "
                "they were recorded no further"
            )

    def need_means(self, name: str, value: int) -> None:
        """Raise an error if computing all means up to pull `value` would take too long."""
        self.need_pulls(name, value)
        most = MOST_MEANS // self.arms
        require(
            value <= most,
            name,
            value,
            f"at most {most} for {self.arms} arms",
            "every mean up to there is computed, and more would take hours",
        )


def need_room_for(arms: int) -> None:
    """Raise a `ChunkError` if the curves of `arms` arms do not fit into memory."""
    need_memory(CURVE_BYTES * arms, f"a problem of {arms} arms", "give fewer arms")


def _evaluate(name: str, curve: AnyCurve, pulls: npt.NDArray[np.int64]) -> Floats:
    try:
        means = np.asarray(curve(pulls), dtype=np.float64)
    except Exception as error:
        reason = reason_of(error)
        raise CurveError(
            f"the curve of {name!r} raised {reason}. It is called with an array of pull numbers, "
            "as in lambda n: 0.9 * n / (n + 60); put a function of one number into numpy.vectorize"
        ).quoting(reason) from error
    if means.ndim == 0:  # lambda n: 0.6
        means = np.full(pulls.shape, float(means))
    if means.shape != pulls.shape or not np.all(np.isfinite(means)):
        raise CurveError(f"the curve of {name!r} must return one finite mean for each pull count")
    return means


def _count(curves: Any) -> int:
    """Return the number of arms, which must be at least 2."""
    if not hasattr(curves, "__len__"):
        raise CurveError(f"curves={curves!r}, but they must be a table, or one function per arm")
    if len(curves) < 2:
        arms = f"{len(curves)} arm{'s' * (len(curves) != 1)}"
        raise CurveError(f"{arms}, but a problem needs at least 2 to choose from")
    return len(curves)


def _names(labels: Sequence[str], arms: int) -> tuple[str, ...]:
    names = tuple(map(str, labels)) or tuple(f"arm {arm}" for arm in range(arms))
    require(len(names) == arms, "names", names, f"one for each of {arms} arms", "they label arms")
    require(len(set(names)) == arms, "names", names, "all different", "they tell arms apart")
    return names


def _as_table(curves: Any, names: Sequence[str]) -> Floats:
    """Return curves as a read-only table."""
    rows = {name: _row(name, curve) for name, curve in zip(names, curves, strict=True)}
    if len({row.size for row in rows.values()}) > 1:
        ends = ", ".join(f"{name!r} ends at pull {row.size}" for name, row in rows.items())
        raise CurveError(f"curves of unequal length: {ends}")
    table = np.array([*rows.values()])
    if table.shape[1] == 0:
        raise CurveError("the curves are empty")
    table.flags.writeable = False
    return table


def _row(name: str, curve: Any) -> Floats:
    try:
        row = np.asarray(curve, dtype=np.float64)
    except (TypeError, ValueError):
        raise CurveError(
            f"arm {name!r} holds something other than numbers: give numbers, or one function per "
            "arm"
        ) from None
    if row.ndim != 1:
        raise CurveError(f"arm {name!r} has shape {row.shape}, but a curve is a list of means")
    bad = np.flatnonzero(~np.isfinite(row))
    if len(bad):
        raise CurveError(f"arm {name!r} is {row[bad[0]]} at pull {bad[0] + 1}")
    return row


# --- the paper's assumptions ---


@dataclass(frozen=True)
class AssumptionReport:
    """The paper's assumptions, the gaps and the best arm by horizon; `print` it.

    Attributes
    ----------
    label : str
        Label of the problem.
    names : tuple[str, ...]
        Names of the arms, in order.
    budget : int
        Total number of pulls, T.
    falls : tuple[int | None, ...]
        For each arm, the first n with mu(n + 1) < mu(n); None if the curve never falls.
    bends_up : tuple[int | None, ...]
        For each arm, the first n at which the next increment is larger; None if there is none.
    c : float
        Constant c for which `largest_beta` is computed.
    largest_beta : float | None
        Largest beta with this c; None if the first increment exceeds c.
    beta : float
        Exponent beta for which `smallest_c` is computed.
    smallest_c : float
        Smallest c that is possible with this beta.
    best : int
        Arm that is best at the budget.
    gaps : Floats
        Gaps of the arms at the budget.
    changes : tuple[tuple[int, int], ...]
        Pairs (first horizon, arm): from this horizon on, this arm is the best one.
    """

    label: str
    names: tuple[str, ...]
    budget: int
    falls: tuple[int | None, ...]
    bends_up: tuple[int | None, ...]
    c: float
    largest_beta: float | None
    beta: float
    smallest_c: float
    best: int
    gaps: Floats
    changes: tuple[tuple[int, int], ...]

    @property
    def assumption_1(self) -> bool:
        """True if every arm is non-decreasing and concave up to the budget [Mussi24, Ass. 1]."""
        return not any(n is not None for n in self.falls + self.bends_up)

    @property
    def assumption_2(self) -> bool:
        """True if this c is possible with some beta > 1 up to the budget [Mussi24, Ass. 2]."""
        return self.largest_beta is not None and self.largest_beta > 1

    def __str__(self) -> str:
        best = [f"{self.names[arm]} from {horizon}" for horizon, arm in self.changes]
        gaps = [f"{name} {gap:.4g}" for name, gap in zip(self.names, self.gaps, strict=True)]
        lines = [
            f"{self.label}: {len(self.names)} arms, budget {self.budget}",
            f"Assumption 1 (non-decreasing, concave): {self._first()}",
            f"Assumption 2 (increments at most c n^-beta): {self._second()}",
            f"best arm at {self.budget}: {self.names[self.best]}",
            f"gaps at {self.budget}: {_some(gaps)}",
            f"best arm by horizon: {_some(best)}",
        ]
        return "\n".join(lines)

    def _first(self) -> str:
        broken = [
            f"{name} {what} at pull {n}"
            for what, where in (("falls", self.falls), ("bends up", self.bends_up))
            for name, n in zip(self.names, where, strict=True)
            if n is not None
        ]
        return f"broken; {_some(broken)}" if broken else "holds"

    def _second(self) -> str:
        needed = f"beta = {self.beta:g} needs c >= {self.smallest_c:.4g}"
        if self.largest_beta is None:
            return f"c = {self.c:g} is below the first increment; {needed}"
        return f"c = {self.c:g} allows beta <= {self.largest_beta:.5g}; {needed}"


def _some(items: list[str], most: int = 12) -> str:
    more = len(items) - most
    return ", ".join(items[:most]) + (f", ... ({more} more)" if more > 0 else "")
