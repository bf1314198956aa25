"""Rules of tuners, for comparison: i-Epoch, MaxUCB and Rising Bandits."""

from dataclasses import dataclass
from math import log
from typing import Any, ClassVar

from latebloomer.core.history import reward_at
from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import ANY, PULLS, RACERS, SWEEPS, Ledger
from latebloomer.core.ranking import close_ranks
from latebloomer.core.run_memory import NOTHING, REWARDS, Memory
from latebloomer.errors import need_in, need_whole
from latebloomer.policies.base import Policy
from latebloomer.policies.related.power_thresholds import best_racing
from latebloomer.policies.window_ratings import ByWindow


@dataclass(frozen=True)
class IEpoch(ByWindow):
    """Pull every arm i times, then only the arm with the best latest value.

    This is the simplest rule that compares arms at all. Its authors find that halving and models
    of learning curves add little to it. In their setting each arm is a new configuration, and the
    configuration with the best value after i epochs is kept. Here the set of arms is fixed, so all
    arms are trained to i pulls, and the leader gets the remaining pulls. This form for a fixed
    budget is ours.

    Parameters
    ----------
    i : int
        Number of pulls that every arm gets, at least 1.

    Examples
    --------
    >>> IEpoch(i=2).plan(arms=4, budget=20)
    Plan(keep=array([4, 1]), upto=array([ 2, 20]))
    """

    i: int = 1

    name: ClassVar[str] = "i-epoch"
    cites: ClassVar[tuple[str, ...]] = ("Egele24",)
    _examples = ({}, {"i": 3})

    def __post_init__(self) -> None:
        need_whole("i", self.i, 1, "learners are compared by their scores")

    def levels(self, arms: int, budget: int, horizon: int) -> list[tuple[int, int]]:
        return [(arms, self.i), (1, budget)]

    def rated_share(self) -> float:
        return 0.0

    def smallest_budget(self, arms: int) -> tuple[int, str]:
        return arms * self.i, f"each learner is pulled {self.i} times before one is chosen"


MAXIMUM = 0  # cell of `Ledger.arm`: the arm's largest reward
SMALLEST, LARGEST = 0, 1  # cells of `Ledger.run`: extremes of all rewards so far


@dataclass(frozen=True)
class MaxUCB(Policy):
    r"""Pull the arm with the largest maximum plus bonus; recommend the largest maximum.

    Before pull t, after one pull of each arm,

    .. math:: B_i = \max_{s \le n_i} X_{i,s} + \Bigl(\frac{\alpha \log t}{n_i}\Bigr)^2,

    with rewards scaled so that the smallest of the race so far is 0 and the largest 1 (the
    authors' code scales to [.01, .99]). It is made to distribute a tuner's trials over classes of
    models; most rewards of a class lie near an upper bound. It does not extrapolate, and with
    noise a maximum favors arms that were pulled often. The index and alpha are from the authors'
    public code. The recommendation is ours, because in their setting the best trial counts, not an
    arm.

    Parameters
    ----------
    alpha : float
        Weight of the exploration bonus, at least 0.

    Examples
    --------
    >>> MaxUCB().plan(arms=3, budget=100)
    Plan(keep=array([ 3, -1]), upto=array([  1, 100]))
    """

    alpha: float = 0.5

    name: ClassVar[str] = "max-ucb"
    cites: ClassVar[tuple[str, ...]] = ("Balef25",)
    memory: ClassVar[Memory] = Memory(NOTHING, arm=("maximum",), run=("smallest", "largest"))
    _examples = ({}, {"alpha": 2.0})

    def __post_init__(self) -> None:
        need_in("alpha", self.alpha, "[0, inf)", "it scales the bonus")

    def levels(self, arms: int, budget: int, horizon: int) -> list[tuple[int, int]]:
        return [(arms, 1), (ANY, horizon)]

    @kernel
    def update_rating(self, ledger: Ledger, i: int, horizon: int) -> None:
        reward, run = ledger.last[i], ledger.run
        first = ledger.cursor[PULLS] == 1
        run[SMALLEST] = reward if first else min(run[SMALLEST], reward)
        run[LARGEST] = reward if first else max(run[LARGEST], reward)
        ledger.arm[i][MAXIMUM] = (
            reward if ledger.n[i] == 1 else max(ledger.arm[i][MAXIMUM], reward)
        )
        ledger.rating[i] = ledger.arm[i][MAXIMUM]

    @kernel
    def pick(self: Any, ledger: Ledger, pulled: int, horizon: int, seed: int, run: int) -> int:
        """Return the arm with the largest index; all indices change with every pull."""
        for place in range(ledger.cursor[RACERS]):
            i = ledger.racing[place]
            if ledger.n[i] < horizon:
                ledger.rating[i] = index_of(self, ledger, i)
        return best_racing(ledger, horizon)

    @kernel
    def final_rating(self, ledger: Ledger, i: int, budget: int, horizon: int) -> float:
        return ledger.arm[i][MAXIMUM]


@kernel
def index_of(self: Any, ledger: Ledger, i: int) -> float:
    """Return B_i for the next pull."""
    low, spread = ledger.run[SMALLEST], ledger.run[LARGEST] - ledger.run[SMALLEST]
    level = (ledger.arm[i][MAXIMUM] - low) / spread if spread > 0.0 else 0.0
    bonus = self.alpha * log(ledger.cursor[PULLS] + 1.0) / ledger.n[i]
    return level + bonus * bonus


@dataclass(frozen=True)
class RisingBandits(Policy):
    r"""Sweep over the arms; drop arms that cannot catch up along their own recent slope.

    After n > C pulls of each racing arm, with its latest value :math:`y_n`,

    .. math:: l = y_n, \qquad u = y_n + (H - n)\,\frac{y_n - y_{n-C}}{C},

    and arm j is dropped when the leader's :math:`l_i \ge u_j`. The recommended arm is the arm with
    the best latest value. The rule is made for rising concave curves without noise: noise of size
    s changes u by about (H - n) s / C. In its authors' setting, y is a tuner's best value so far,
    which never falls; here it is the reward itself. The paper's text was not available to us: the
    bounds and C = 7 are quoted from other papers, and keeping the leader among equal arms is our
    choice.

    Parameters
    ----------
    span : int
        Number of pulls C over which the slope is computed, at least 1.

    Examples
    --------
    >>> print(RisingBandits().describe(arms=3, budget=60).phases[0])
           60 pulls  train 3 learners to 20 pulls each
    """

    span: int = 7

    name: ClassVar[str] = "rising-bandits"
    cites: ClassVar[tuple[str, ...]] = ("LiJiang20",)
    memory: ClassVar[Memory] = Memory(REWARDS)
    _examples = ({}, {"span": 2})

    def __post_init__(self) -> None:
        need_whole("span", self.span, 1, "a slope needs two values")

    def levels(self, arms: int, budget: int, horizon: int) -> list[tuple[int, int]]:
        return [(arms, budget)]

    @kernel
    def rating(self, ledger: Ledger, i: int, horizon: int) -> float:
        return ledger.last[i]

    @kernel
    def after_sweep(self: Any, ledger: Ledger, budget: int, horizon: int) -> None:
        if ledger.cursor[RACERS] == 1 or ledger.cursor[SWEEPS] <= self.span:
            return
        leader = ledger.racing[0]
        for place in range(ledger.cursor[RACERS]):
            if ledger.last[ledger.racing[place]] > ledger.last[leader]:
                leader = ledger.racing[place]
        for place in range(ledger.cursor[RACERS]):
            j = ledger.racing[place]
            if j != leader and ledger.last[leader] >= upper_value(ledger, j, self.span, horizon):
                ledger.out[j] = ledger.cursor[PULLS]
        close_ranks(ledger)

    def advised_budget(self, arms: int) -> tuple[int, str]:
        pulls = self.span + 1
        return arms * pulls, f"{pulls} pulls of each learner before one can be dropped"


@kernel
def upper_value(ledger: Ledger, i: int, span: int, horizon: int) -> float:
    """Return the upper value u of arm i, which must have more than `span` pulls."""
    n, last = ledger.n[i], ledger.last[i]
    return last + (horizon - n) * (last - reward_at(ledger, i, n - span)) / span
