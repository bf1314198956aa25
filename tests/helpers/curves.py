"""Tables of expected rewards that tests of the theory share."""

import numpy as np

from latebloomer.problems import problem


def setting_a(length: int) -> np.ndarray:
    """[Mussi24, App. G]."""
    return problem("paper-a").means(length)


def curves_to(ends: list[float], budget: int, beta: float, c: float) -> np.ndarray:
    """Curves with increments exactly c n^-beta that end at mu_i(budget) = ends[i]."""
    rise = np.concatenate([[0.0], np.cumsum(c * np.arange(1, budget) ** -beta)])
    return np.array(ends)[:, None] + (rise - rise[-1])
