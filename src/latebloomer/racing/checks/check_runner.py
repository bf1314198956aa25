"""The contract of runners, as one check for the tests of your own runner."""

import json
import random
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from latebloomer.errors import ContractError, Interrupted
from latebloomer.racing.api import race, read_verdict, resume
from latebloomer.racing.runners.local import LocalRunner
from latebloomer.racing.runners.runner import Runner
from latebloomer.racing.verdict.verdict import Verdict
from latebloomer.session.events import ScoreReported
from latebloomer.session.policy_checks import promised

BUDGET = 120


class Rising:
    """A deterministic learner whose state is lost unless it is saved in a checkpoint."""

    def __init__(self, best: float, slow: float, fails_at: int = 0, last: int = 0) -> None:
        self.best, self.slow, self.fails_at, self.last = best, slow, fails_at, last
        self.n, self.rng = 0, random.Random(f"{best} {slow}")

    def pull(self) -> float:
        if self.n + 1 == self.fails_at:
            raise RuntimeError("as arranged")
        if self.last and self.n == self.last:
            raise StopIteration
        self.n += 1
        return self.best * self.n / (self.n + self.slow) + self.rng.gauss(0, 0.01)

    def save(self, folder: Path) -> None:
        (folder / "state.json").write_text(json.dumps([self.n, self.rng.getstate()]))

    def load(self, folder: Path) -> None:
        self.n, (version, state, gauss) = json.loads((folder / "state.json").read_text())
        self.rng.setstate((version, tuple(state), gauss))


LEARNERS = {
    "late": partial(Rising, 1.0, 20.0),
    "early": partial(Rising, 0.6, 1.0),
    "fails": partial(Rising, 0.7, 2.0, fails_at=5),
    "ends": partial(Rising, 0.5, 2.0, last=7),
}


def check_runner(make: Callable[[], Runner]) -> list[str]:
    """Raise a `ContractError` unless runners from `make` do what every runner must do.

    The check races deterministic learners, one of which fails and one of which finishes. With a
    policy with phases, the verdict and all scores must equal those of the local runner. Every
    budget must be spent exactly. A race that is stopped after some pulls and resumed by another
    runner must have the same verdict. The winner must have as many pulls as the verdict says.

    Parameters
    ----------
    make : Callable[[], Runner]
        Function that returns a new runner; it is called for each race.

    Returns
    -------
    list[str]
        One text for each thing that was checked.

    Raises
    ------
    ContractError
        A runner does something different from the local runner.

    Examples
    --------
    >>> from latebloomer import LocalRunner
    >>> len(check_runner(LocalRunner))
    4
    """
    done = []
    with tempfile.TemporaryDirectory(prefix="latebloomer-") as place:
        folder = Path(place)
        here = _race("r-sr", folder / "here.db", LocalRunner())
        there = _race("r-sr", folder / "there.db", make())
        for name in LEARNERS:
            same = here.curve(name) == there.curve(name)
            promised(same, f"the scores of {name!r} are not those of the local runner")
        promised(here.summary() == there.summary(), "the verdict is not that of the local runner")
        _check_budget(there, folder / "there.db")
        done.append(f"phases: the verdict and the {BUDGET} scores of the local runner")
        limited = make().max_in_memory is not None  # then a policy must have phases
        for policy in () if limited else ("r-ucbe", "prob-1"):
            _check_budget(_race(policy, folder / f"{policy}.db", make()), folder / f"{policy}.db")
            done.append(f"{policy}, which decides after every pull: exactly the budget")
        _check_held(here, make, folder / "held.db")
        done.append("held, then resumed by another runner: the same verdict, no pull twice")
    return done


def _race(policy: str, path: Path, runner: Runner, **more: Any) -> Verdict:
    runner.checkpoint_every = 4
    more |= {"policy": policy, "journal": path, "runner": runner, "progress": False}
    return race(LEARNERS, BUDGET, **more)


def _check_budget(verdict: Verdict, path: Path) -> None:
    promised(verdict.spent == BUDGET, f"{verdict.spent} pulls were spent of {BUDGET}")
    same = read_verdict(path).summary() == verdict.summary()
    promised(same, "its journal replays to another verdict")
    trained, own = getattr(verdict.learner, "n", None), verdict.pulls[verdict.name]
    promised(trained == own, f"the winner was returned with {trained} pulls of {own}")


def _check_held(here: Verdict, make: Callable[[], Runner], path: Path) -> None:
    runner = make()

    def hold(event: Any, view: Any) -> None:
        if isinstance(event, ScoreReported) and view.spent == BUDGET // 2:
            runner.hold()

    try:
        _race("r-sr", path, runner, callbacks=[hold])
    except Interrupted:
        pass
    else:
        raise ContractError("a runner that was stopped continued to the end")
    verdict = resume(path, LEARNERS, runner=make(), progress=False)
    promised(verdict.summary() == here.summary(), "stopped and resumed, it has another verdict")
