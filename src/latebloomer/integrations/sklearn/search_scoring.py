"""What a search scores by: one metric that the race goes by, and others that are only recorded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import check_scoring

from latebloomer._util.text import brief
from latebloomer.errors import SettingError, require
from latebloomer.integrations.sklearn.sklearn_learner import (
    need_scoring,
    score_range_of,
    scorer_for,
)

ONE = "score"  # what a metric is called where there is no other
FoldScores = dict[str, list[float]]  # of each metric, by fold


class Metrics(NamedTuple):
    """The metrics of a search."""

    scoring: Any  # as given, or a dict of them where there are several
    leading: str  # the one that the race goes by

    @property
    def several(self) -> bool:
        """Whether there are several, as far as it is known before they are computed."""
        return isinstance(self.scoring, dict)

    def scorer(self, estimator: Any) -> Any:
        """What scores an estimator; with several metrics it returns a dict."""
        if self.several:
            return check_scoring(estimator, scoring=self.scoring)
        return scorer_for(estimator, self.scoring)

    def scorers(self, estimator: Any) -> Any:
        """`scorer_`: the scorer, or a dict of them."""
        if self.several:
            return {name: scorer_for(estimator, one) for name, one in self.scoring.items()}
        return scorer_for(estimator, self.scoring)

    def range_of(self, estimator: Any) -> tuple[float | None, float | None] | None:
        """What the leading metric cannot leave, where that is known."""
        leading = self.scoring[self.leading] if self.several else self.scoring
        return score_range_of(estimator, leading)

    def by_fold(self, scored: list[Any]) -> FoldScores:
        """The scores on each fold by metric, of what a scorer returned for each."""
        if not isinstance(scored[0], Mapping):
            return {ONE: [float(one) for one in scored]}
        if self.leading not in scored[0]:
            raise SettingError(
                f"scoring returns {', '.join(map(repr, scored[0]))}, but a race goes by one of "
                f"them: name it, as refit={next(iter(scored[0]), 'accuracy')!r}"
            )
        return {name: [float(one[name]) for one in scored] for name in scored[0]}


def metrics_of(scoring: Any, refit: Any) -> Metrics:
    """The metrics of a search by its settings, checked.

    >>> metrics_of(["accuracy", "f1"], "f1")
    Metrics(scoring={'accuracy': 'accuracy', 'f1': 'f1'}, leading='f1')
    >>> metrics_of(["accuracy", "f1"], True)
    Traceback (most recent call last):
    latebloomer.errors.SettingError: refit=True with 2 metrics, but a race goes by one of them: ...
    """
    if isinstance(scoring, list | tuple | set | Mapping):
        named = dict(scoring) if isinstance(scoring, Mapping) else _named(scoring)
        for one in named.values():
            need_scoring(one)
        if refit not in named or isinstance(refit, bool):
            raise SettingError(
                f"refit={brief(refit)} with {len(named)} metrics, but a race goes by one of them: "
                f"refit must be {' or '.join(map(repr, named)) or 'the name of one'}"
            )
        return Metrics(named, refit)
    if scoring is not None:
        need_scoring(scoring)
    if isinstance(refit, str) and callable(scoring):  # it may return a dict
        return Metrics(scoring, refit)
    require(isinstance(refit, bool | np.bool_), "refit", refit, "True or False",
            "a name is for several metrics, as scoring=['accuracy', 'f1'], refit='f1'; "
            "extra_refit=True spends the refit on top of the budget")  # fmt: skip
    return Metrics(scoring, ONE)


def _named(scoring: Any) -> dict[str, Any]:
    for one in scoring:
        if not isinstance(one, str):
            raise SettingError(
                f"scoring has {brief(one)}, but a list must have metrics' names: a function needs "
                "one, as scoring={'mine': function}"
            )
    return {one: one for one in scoring}


class LastScores:
    """The newest scores of each candidate on each fold, in memory and in a folder where given.

    A candidate in another process, or one of a race that goes on after a crash, is known by its
    file.
    """

    def __init__(self, names: list[str], folder: Path | None) -> None:
        self._numbers = {name: number for number, name in enumerate(names)}
        self._folder, self._noted = folder, dict[str, FoldScores]()

    def note(self, name: str, scores: FoldScores) -> None:
        """A candidate was scored."""
        self._noted[name] = scores
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._file(name).write_text(json.dumps(scores), encoding="utf-8")

    def of(self, name: str) -> FoldScores:
        """A candidate's newest scores; nothing where none are known."""
        if name in self._noted or self._folder is None or not self._file(name).exists():
            return self._noted.get(name, {})
        found: FoldScores = json.loads(self._file(name).read_text(encoding="utf-8"))
        return found

    def _file(self, name: str) -> Path:
        return Path(self._folder or ".") / f"{self._numbers[name]}.json"
