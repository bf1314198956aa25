"""R-ed-UCB [Metelli22], which was made to lose little reward while it learns, for comparison."""

from dataclasses import dataclass
from math import log
from typing import Any, ClassVar, NamedTuple

from latebloomer.core.formulas import exploration_bonus, first_full, window_length
from latebloomer.core.history import projected_mean, recent_mean, reward_at
from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import ANY, PULLS, RACERS, Ledger
from latebloomer.core.run_memory import WINDOW, Memory
from latebloomer.errors import need_in
from latebloomer.policies.base import Policy, check_choice, check_window
from latebloomer.policies.related.power_thresholds import best_racing
from latebloomer.policies.rising_ucbe import SIGMA, watch_noise

FORMS = ("stochastic", "deterministic")


class Numbers(NamedTuple):
    """What `self` is inside the kernels."""

    noise: float  # negative: estimate it
    alpha: float
    window: float  # 0: the deterministic form


@dataclass(frozen=True)
class RestedUCB(Policy):
    r"""Pull the arm whose reward, extrapolated to the coming pull, is largest with a bonus.

    Before pull t of the run, for an arm with n pulls and the window
    :math:`h = \lfloor \varepsilon n \rfloor`,

    .. math:: B_i(t) = \frac1h \sum_{l=n-h+1}^{n} \Bigl(X_l + (t-l)\,\frac{X_l - X_{l-h}}{h}\Bigr)
              + \sigma\,(t - n + h - 1) \sqrt{\frac{10 \alpha \log t}{h^3}}

    and, without noise,

    .. math:: B_i(t) = \mu_i(n) + (t - n)\,\bigl(\mu_i(n) - \mu_i(n-1)\bigr).

    These are the estimators of R-UCBE with t for the horizon T, and with
    :math:`\delta_t = t^{-\alpha}` for the confidence of a bound. R-ed-UCB does not know the
    horizon: it is made for a small regret while learning, which `simulate` reports, and not to
    find the best arm at the end.

    The paper's text was not available, so no equation of it is cited. The stochastic bound is that
    of the authors' public code (repository albertometelli/stochastic-rising-bandits, commit
    2b49e82), from which epsilon = 1/4 and alpha = 4 are, with these differences. There only the
    arm that was pulled is extrapolated again, and the logarithm is of t - 1; here all bounds are
    of the coming pull. There an arm whose window is empty has the bound 1, and equal bounds are
    drawn from; here all windows are filled first, and the lowest index wins. The deterministic
    bound is not in the code: it is the stochastic one for h = 1 and sigma = 0. The
    recommendation, which the paper does not need, is ours: the largest estimate at the horizon.

    Parameters
    ----------
    noise : float | None
        Standard deviation sigma of the noise. Default: estimated, as by `r-ucbe`.
    alpha : float
        How fast the confidence of a bound grows; the regret bound asks for more than 2.
    window : float
        Share epsilon of its pulls, the latest ones, whose mean is extrapolated.
    form : str
        "stochastic", or "deterministic" for rewards without noise.

    Examples
    --------
    >>> RestedUCB().plan(arms=3, budget=100)  # 4 pulls each, then the highest bound
    Plan(keep=array([ 3, -1]), upto=array([  4, 100]))
    """

    noise: float | None = None
    alpha: float = 4.0
    window: float = 0.25
    form: str = "stochastic"

    name: ClassVar[str] = "r-ed-ucb"
    cites: ClassVar[tuple[str, ...]] = ("Metelli22",)
    memory: ClassVar[Memory] = Memory(WINDOW, run=("squares", "count", "sigma", "refresh"))
    _examples = (
        {},
        {"noise": 0.02, "alpha": 2.5, "window": 0.1},
        {"form": "deterministic"},
    )

    def __post_init__(self) -> None:
        check_window(self.window)
        check_choice("form", self.form, FORMS, "it says which bound is used")
        need_in("alpha", self.alpha, "(0, inf)", "the confidence of a bound grows with it")
        if self.noise is not None:
            why = "it is a standard deviation; or None to estimate it"
            need_in("noise", self.noise, "[0, inf)", why)

    def levels(self, arms: int, budget: int, horizon: int) -> list[tuple[int, int]]:
        return [(arms, self._warm_up()), (ANY, horizon)]

    def _warm_up(self) -> int:
        """Return the pulls until every arm can be extrapolated."""
        if self.form == "deterministic":
            return 2
        return max(first_full(self.window), 3 if self.noise is None else 2)

    def smallest_budget(self, arms: int) -> tuple[int, str]:
        pulls = self._warm_up()
        return arms * pulls, f"{pulls} pulls of each learner before it can extrapolate"

    def settings(self, arms: int, budget: int, horizon: int) -> Numbers:
        if self.form == "deterministic":
            return Numbers(0.0, float(self.alpha), 0.0)
        noise = -1.0 if self.noise is None else float(self.noise)
        return Numbers(noise, float(self.alpha), float(self.window))

    def rated_share(self) -> float | None:
        return None if self.form == "deterministic" else self.window

    def reads_bends(self) -> bool:
        return self.form != "deterministic" and self.noise is None

    @kernel
    def update_rating(self: Numbers, ledger: Ledger, i: int, horizon: int) -> None:  # type: ignore[misc]
        noise = self.noise
        if noise < 0:
            noise = watch_noise(ledger, i)
        ledger.rating[i] = bound_at(self, ledger, i, noise, ledger.cursor[PULLS] + 1)

    @kernel
    def pick(self: Any, ledger: Ledger, pulled: int, horizon: int, seed: int, run: int) -> int:
        """Return the arm with the largest bound; all bounds change with every pull."""
        noise = self.noise if self.noise >= 0 else ledger.run[SIGMA]
        for place in range(ledger.cursor[RACERS]):
            i = ledger.racing[place]
            if ledger.n[i] < horizon:
                ledger.rating[i] = bound_at(self, ledger, i, noise, ledger.cursor[PULLS] + 1)
        return best_racing(ledger, horizon)

    @kernel
    def final_rating(self: Numbers, ledger: Ledger, i: int, budget: int, horizon: int) -> float:  # type: ignore[misc]
        return bound_at(self, ledger, i, 0.0, horizon)


@kernel
def bound_at(self: Numbers, ledger: Ledger, i: int, noise: float, t: int) -> float:
    """Return B_i(t) with this noise; the plain mean while the window is empty (warm-up only)."""
    n = ledger.n[i]
    if self.window == 0.0:
        step = ledger.last[i] - reward_at(ledger, i, n - 1) if n > 1 else 0.0
        return ledger.last[i] + (t - n) * step
    h = window_length(self.window, n)
    if h < 1:
        return recent_mean(ledger, i, n)
    bonus = noise * exploration_bonus(n, h, t, 10.0 * self.alpha * log(1.0 * t))
    return projected_mean(ledger, i, h, t) + bonus
