"""A pruner that uses this library's policies on trials that run one after the other."""

from math import ceil, isfinite
from typing import Any

from latebloomer.integrations.hosted_race import need_phases, need_several
from latebloomer.integrations.library_learner import at_least_1, base_class, library
from latebloomer.policies.base import Policy
from latebloomer.session.session import Session


class LatebloomerPruner(base_class("optuna.pruners", "BasePruner")):  # type: ignore[misc]
    """Prune trials by a policy of this library; the total number of reports is not fixed.

    Optuna runs each trial to its end before the next one starts, so a trial is compared with
    earlier trials. At each level of the policy's plan, it continues if its estimate is in the best
    share of trials that the plan keeps at this level. The first trials are compared with few
    others, so they are trained further than later ones. `race_study` compares all trials at the
    same time and spends exactly its budget.

    Parameters
    ----------
    budget : int
        Number of reports, over all trials, for which the plan is made. The actual total may
        differ.
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
        from latebloomer.integrations.optuna import LatebloomerPruner

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
        need_several("n_trials", n_trials)
        at_least_1("full_steps", full_steps, "it is the number of reports of a trial")
        session = Session(policy, n_trials, budget, full_steps)
        need_phases(session)
        self._policy, self._full = session.policy, full_steps
        plan = self._policy.plan(n_trials, budget, full_steps)
        keep, upto = plan.keep.tolist(), plan.upto.tolist()
        # Share of all trials that continues after each level.
        self._shares = {n: k / n_trials for n, k in zip(upto, keep[1:], strict=False)}

    def prune(self, study: Any, trial: Any) -> bool:
        """Return whether a trial is pruned now, by its own values and those of other trials."""
        values = _curve(trial)
        level = max((n for n in self._shares if n <= len(values)), default=0)
        if not all(map(isfinite, values)):
            return True
        trials = [
            other for other in study.get_trials(deepcopy=False) if other.number != trial.number
        ]
        curves = [_curve(other)[:level] for other in trials]
        others = [curve for curve in curves if len(curve) == level and all(map(isfinite, curve))]
        if not level or not others:
            return False
        ended = sum(other.state.is_finished() and len(_curve(other)) < level for other in trials)
        rank = self._rank([values[:level], *others], study.direction.name == "MAXIMIZE")
        return rank >= ceil((1 + len(others) + ended) * self._shares[level])

    def _rank(self, curves: list[list[float]], maximize: bool) -> int:
        """Return the number of curves with a better estimate than the first one."""
        count, level = len(curves), len(curves[0])
        # Simulate a race that ends at this level, where the policy rates all curves.
        own: dict[str, Any] = {"maximize": maximize, "min_pulls": level}
        session = Session(self._policy, count, count * level, self._full, **own)
        for step in range(level):
            for arm, curve in enumerate(curves):
                session.tell(arm, curve[step])
        return [row.arm for row in session.standings()].index(0)


def _curve(trial: Any) -> list[float]:
    return [value for _, value in sorted(trial.intermediate_values.items())]
