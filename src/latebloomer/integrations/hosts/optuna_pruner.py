"""Our policies as an Optuna pruner, for objectives with `report` and `should_prune`."""

from __future__ import annotations

from importlib import import_module
from math import ceil, isfinite
from typing import Any

from latebloomer.integrations.hosts.hosted_race import need_phases
from latebloomer.integrations.library_learner import library
from latebloomer.policies.base import Policy
from latebloomer.session.session import Session

__all__ = ["LatebloomerPruner"]

try:
    Base: Any = import_module("optuna.pruners").BasePruner
except ImportError:  # the first pruner that is made raises the error
    Base = object


class LatebloomerPruner(Base):  # type: ignore[misc]
    """Prune trials by our policies, without the promise of a fixed total.

    Optuna runs one trial to its end before the next starts, so a trial is compared with those
    before it: at each level of the policy's plan it continues if its estimate is among the share
    of trials that the plan keeps there. The first trials meet few others and train further than
    later ones. `race_study` compares all at once and spends exactly its budget.

    Parameters
    ----------
    budget : int
        Number of reports that the plan is made for, over all trials. The total may differ.
    n_trials : int
        Number of trials of the study.
    full_steps : int
        Number of reports of a trial that is not pruned.
    policy : Policy | str
        Policy with phases, as in `race`.

    Raises
    ------
    MissingExtra
        Optuna is not installed, or too old.
    SettingError
        The policy has no phases.
    BudgetError
        The budget is too small for the trials.

    Examples
    --------
    ::

        import optuna
        from latebloomer.integrations.hosts.optuna_pruner import LatebloomerPruner

        def objective(trial):
            slow = trial.suggest_float("slow", 1, 50)
            for step in range(1, 28):
                value = (0.5 + slow / 100) * step / (step + slow)
                trial.report(value, step)
                if trial.should_prune():
                    raise optuna.TrialPruned
            return value

        pruner = LatebloomerPruner(budget=300, n_trials=30, full_steps=27)
        study = optuna.create_study(direction="maximize", pruner=pruner)
        study.optimize(objective, n_trials=30)
    """

    def __init__(
        self, budget: int, n_trials: int, full_steps: int, policy: Policy | str = "auto"
    ) -> None:
        library("optuna", "pruners", "optuna")
        session = Session(policy, n_trials, budget, full_steps)
        need_phases(session)
        self._policy, self._full = session.policy, full_steps
        plan = self._policy.plan(n_trials, budget, full_steps)
        keep, upto = plan.keep.tolist(), plan.upto.tolist()
        # The share of all trials that continues after each level.
        self._shares = {n: k / n_trials for n, k in zip(upto, keep[1:], strict=False)}

    def prune(self, study: Any, trial: Any) -> bool:
        """Return whether a trial ends here, by the values that it and others have reported."""
        values = _curve(trial)
        level = max((n for n in self._shares if n <= len(values)), default=0)
        if not all(map(isfinite, values)):
            return True
        trials = [one for one in study.get_trials(deepcopy=False) if one.number != trial.number]
        curves = [_curve(one)[:level] for one in trials]
        others = [one for one in curves if len(one) == level and all(map(isfinite, one))]
        if not level or not others:
            return False
        ended = sum(one.state.is_finished() and len(_curve(one)) < level for one in trials)
        rank = self._rank([values[:level], *others], study.direction.name == "MAXIMIZE")
        return rank >= ceil((1 + len(others) + ended) * self._shares[level])

    def _rank(self, curves: list[list[float]], maximize: bool) -> int:
        """Return how many curves have a better estimate than the first."""
        count, level = len(curves), len(curves[0])
        # A race that ends at this level, where the policy rates all that are in it.
        session = Session(
            self._policy, count, count * level, self._full, maximize=maximize, min_pulls=level
        )
        for step in range(level):
            for arm in range(count):
                session.tell(arm, curves[arm][step])
        return [row.arm for row in session.standings()].index(0)


def _curve(trial: Any) -> list[float]:
    return [value for _, value in sorted(trial.intermediate_values.items())]
