r"""Leads on new rows: whether a model that leads on validation rows is better on new ones.

Two models scored on the same n rows have row scores :math:`\psi_a, \psi_b` (`row_scores.py`). The
standard error of the lead is the standard error of their paired differences d, with the step u of
one row added:

.. math:: SE^2 = \frac{\sum_i (d_i - \bar d)^2 + u^2}{n^2}.

The winner was *selected* among several models, so its lead on the validation rows is larger than
its lead on new rows. The *selection multiplier* of the standard error accounts for that. It is
computed from 1,000 draws Z from N(0, C), where C is the covariance of the scores: it is the 95 %
quantile of :math:`|Z_w - Z_j| / SE_{wj}` over all rivals j, where w is the best model of each
draw.

Rows are never stored. `SignSums` stores 256 sums of the centered row scores with random signs,
which take 1 kB. The mean square of the differences of such sums estimates the sum of squared
differences of rows, with an error of 4 % in SE. Signs depend only on the number of the row, so
that folds can be added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latebloomer.core.statistics import Z, student
from latebloomer.errors import SettingError
from latebloomer.theory.row_scores import RowScores, mixed

SIGNS = 256  # random-sign sums: their mean square has a relative error of sqrt(2 / 256) = 9 %
DRAWS = 1000  # number of draws of the scores, for the selection multiplier
AT_ONCE = 4096  # rows whose signs are in memory at the same time: 8 MB


@dataclass(frozen=True)
class SignSums:
    """The sums that are stored of the row scores of one model.

    Attributes
    ----------
    score : float
        Score on the validation rows; higher is better.
    rows : int
        Number of validation rows.
    units : int
        Number of groups or blocks that were drawn independently; 0: the rows themselves.
    folds : int
        Number of folds over which the score is averaged.
    step : float
        Largest jump of the part of one row.
    same_rows : int
        Fingerprint of the rows and units: it is equal for two models only if these are equal.
    sums : tuple[float, ...]
        Sums of the centered row scores with random signs.
    """

    score: float
    rows: int
    units: int
    folds: int
    step: float
    same_rows: int
    sums: tuple[float, ...]


class Lead(NamedTuple):
    """The lead of the winner over one rival, for new rows."""

    rival: int
    lead: float
    margin: float  # the ± of the lead, which accounts for the selection of the winner
    error: float  # standard error of the lead

    @property
    def is_better(self) -> bool:
        """True if the winner is better than this rival on new rows, with 95 % probability."""
        return self.lead > self.margin

    @property
    def is_better_among_all(self) -> bool:
        """True if the lead is above 1.96 standard errors, as required to be the best of all."""
        return self.lead > Z * self.error


def sign_sums(folds: Sequence[RowScores]) -> SignSums:
    """Return the sums to store of a model's row scores; `folds` has one for each fold."""
    rows = sum(len(fold.rows) for fold in folds)
    _need_distinct_rows(folds)
    sums = np.zeros(SIGNS)
    for fold in folds:  # the score is the mean over folds, whatever their numbers of rows
        weight = rows / (len(folds) * len(fold.rows))
        ids, totals = _unit_totals(fold)
        sums += weight * _signed(ids, totals)
    units = 0
    if any(fold.units is not None for fold in folds):
        units = len({int(unit) for fold in folds for unit in _unit_ids(fold)})
    return SignSums(
        score=float(np.mean([fold.score for fold in folds])),
        rows=rows,
        units=units,
        folds=len(folds),
        step=max(fold.step for fold in folds),
        same_rows=_fingerprint(folds),
        sums=tuple(sums.astype(np.float32).tolist()),
    )


def _need_distinct_rows(folds: Sequence[RowScores]) -> None:
    numbers = np.concatenate([fold.rows for fold in folds])
    if len(np.unique(numbers)) < len(numbers):
        raise SettingError(
            "A validation row occurs twice, as in repeated or overlapping folds. Row scores need "
            "folds that do not overlap: omit the row scores, or validate each row once."
        )


def _unit_ids(fold: RowScores) -> NDArray[np.int64]:
    return fold.rows if fold.units is None else fold.units


def _unit_totals(fold: RowScores) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the units of a fold, and the sum of the centered row scores of each unit."""
    centered = fold.parts - fold.parts.mean()
    if fold.units is None:
        return fold.rows, centered
    ids, place = np.unique(fold.units, return_inverse=True)
    return ids, np.bincount(place, centered).astype(np.float64)


def _signed(ids: NDArray[np.int64], totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return `SIGNS` sums of the totals, each with other random signs of the units."""
    sums = np.zeros(SIGNS)
    for first in range(0, len(ids), AT_ONCE):
        part = slice(first, first + AT_ONCE)
        words = [mixed(ids[part], salt) for salt in range(SIGNS // 64)]
        bits = np.unpackbits(np.stack(words, axis=1).astype("<u8").view(np.uint8), axis=1)
        sums += totals[part] @ (2.0 * bits - 1.0)
    return sums


def _fingerprint(folds: Sequence[RowScores]) -> int:
    """Return a fingerprint of rows, units and folds with 53 bits."""
    total = np.uint64(len(folds))
    for place, fold in enumerate(folds):
        pair = mixed(fold.rows, 1000 + place) ^ mixed(_unit_ids(fold), 2000)
        total ^= np.bitwise_xor.reduce(mixed(pair.astype(np.int64)))
    return int(total >> np.uint64(11))


def leads(winner: int, kept: Sequence[SignSums | None]) -> dict[int, Lead]:
    """Return the lead of the winner over each rival that was scored on the same rows.

    Parameters
    ----------
    winner : int
        Index of the winner in `kept`.
    kept : sequence of SignSums or None
        The stored sums of each model; None for a model without row scores.

    Returns
    -------
    dict[int, Lead]
        The lead over each rival with row scores on the same rows, by the rival's index.
    """
    own = kept[winner]
    if own is None:
        return {}
    same = [
        k for k, model in enumerate(kept) if model is not None and model.same_rows == own.same_rows
    ]
    models = [model for model in (kept[k] for k in same) if model is not None]
    table = np.array([model.sums for model in models])
    steps = np.array([model.step for model in models])
    plain = _plain_errors(table, steps) / own.rows
    multiplier = _selection_multiplier(table / own.rows, steps / own.rows, plain)
    errors = plain * _widening(own)
    place = same.index(winner)
    return {
        rival: Lead(
            rival,
            own.score - models[j].score,
            float(multiplier * errors[place, j]),
            float(errors[place, j]),
        )
        for j, rival in enumerate(same)
        if rival != winner
    }


def _plain_errors(table: NDArray[np.float64], steps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return, for each pair of models, the root mean square of the differences of their sums."""
    squares = np.array([np.square(table - row).mean(axis=1) for row in table])
    return np.asarray(np.sqrt(squares + np.maximum.outer(steps, steps) ** 2))


def _widening(own: SignSums) -> float:
    """Return the factor by which standard errors are multiplied.

    Because a refit on all rows differs from the k models of the folds, it has the factor sqrt(1 +
    k / (k - 1)). Because G groups or blocks are few, it has the factor sqrt(G / (G - 1)) and the
    ratio of Student's quantile to the normal one.
    """
    widening = 1.0
    if own.folds > 1:
        widening *= sqrt(1 + own.folds / (own.folds - 1))
    if own.units > 1:
        widening *= sqrt(own.units / (own.units - 1)) * student(own.units - 1) / Z
    return widening


def _selection_multiplier(
    table: NDArray[np.float64], steps: NDArray[np.float64], errors: NDArray[np.float64]
) -> float:
    """Return the 95 % quantile of (Z_w - Z_j) / SE over draws of all scores and rivals j."""
    count, signs = table.shape
    if count < 2 or not errors.any():
        return Z
    rng = np.random.default_rng(0)
    drawn = rng.standard_normal((DRAWS, signs)) @ table.T / sqrt(signs)
    drawn += rng.standard_normal((DRAWS, count)) * steps / sqrt(2)
    best = drawn.argmax(axis=1)
    gaps = drawn[np.arange(DRAWS), best][:, None] - drawn
    scale = errors[best]
    rivals = (np.arange(count) != best[:, None]) & (scale > 0)
    return float(np.quantile(gaps[rivals] / scale[rivals], 0.95)) if rivals.any() else Z
