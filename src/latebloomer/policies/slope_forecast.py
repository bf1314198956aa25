r"""The expected gain of an arm: the area under its slope, if that falls further as before.

The docstring of `Foresight` has the formulas.

*Why 4.* With exponent 4 the remaining gain is at most :math:`b_2 c_2 / 3`, whatever the horizon
(:math:`\int_1^\infty t^{-4} dt = 1/3`), so a larger exponent would hardly change a forecast.
Without a limit, one slope near 0 could give an arm an exponent of any size, with unlimited noise.

*Why the mean of two exponents.* An arm's own exponent is right if curves differ in shape, but it
is the difference of two noisy logarithms. The shared exponent has less noise, but it is wrong for
arms whose shape differs. `docs/research-log.md` has measurements with each exponent alone, under
"Constants of Foresight".
"""

from math import exp, expm1, log

from latebloomer.core.history import late_slope
from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import RACERS, Ledger

EARLY, LATE, GAIN = range(3)  # cells of `Ledger.arm`: slopes b1 and b2, and gain (see `Foresight`)
FIRST = 8  # pulls needed to estimate two successive slopes (two rewards per quarter)
STEEPEST = 4.0  # largest exponent of a falling slope


@kernel
def note_slopes(ledger: Ledger, n: int, step: float) -> float:
    """Store both slopes of each arm at pull n; return the exponent of the summed slopes."""
    a = n // 4
    all_early, all_late = 0.0, 0.0
    for place in range(ledger.cursor[RACERS]):
        i = ledger.racing[place]
        if ledger.repeats_scores[i] == 0:
            early = late_slope(ledger, i, n - 2 * a, 2 * a)
            late = late_slope(ledger, i, n, 2 * a)
            ledger.arm[i][EARLY], ledger.arm[i][LATE] = early, late
            all_early += max(0.0, early)
            all_late += max(0.0, late)
    return exponent(all_early, all_late, step)


@kernel
def step_at(n: int) -> float:
    """Return the distance in log t between the centers of the two slopes at pull n."""
    a = n // 4
    return log((n - a) / (n - 3 * a))


@kernel
def exponent(early: float, late: float, step: float) -> float:
    """Return k of a slope that falls as t^-k from `early` to `late`, `step` apart in log t."""
    if late <= 0.0:
        return STEEPEST if early > 0.0 else 0.0
    if early <= late:
        return 0.0
    return min(STEEPEST, log(early / late) / step)


@kernel
def forecast_gain(
    ledger: Ledger, i: int, n: int, step: float, shared: float, near: float, far: float
) -> float:
    """Return G of arm i from the slopes stored at pull n; `near` and `far` are as in `gain`."""
    early, late = ledger.arm[i][EARLY], ledger.arm[i][LATE]
    k = 0.5 * (exponent(early, late, step) + shared)
    return gain((n - n // 4) * late, k, near, far)


@kernel
def gain(late: float, k: float, near: float, far: float) -> float:
    """Return the area under a slope that is `late` at t = 1 and falls as t^-k.

    It starts at log t = `near` and extends over `far` in log t.
    """
    if late <= 0.0:
        return 0.0
    p = k - 1.0
    if p == 0.0:
        return late * far
    return late * exp(-p * near) * (-expm1(-p * far) / p)
