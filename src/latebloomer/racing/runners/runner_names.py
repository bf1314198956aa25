"""The runner for a name in a call or a journal, and the check of its memory limit."""

from collections.abc import Mapping, Sequence
from inspect import isgeneratorfunction
from pathlib import Path
from typing import Any

from latebloomer._util.text import near
from latebloomer.errors import LearnerError, SettingError
from latebloomer.racing.journal.event_log import resume_call
from latebloomer.racing.journal.journal_file import resolved
from latebloomer.racing.learners.entries import Entry
from latebloomer.racing.runners.runner import WITHOUT, Runner, cannot_let_go
from latebloomer.racing.settings import Settings
from latebloomer.session.session import Session


def make_runner(runner: str | Runner) -> Runner:
    """Return the runner for a name such as "ray"; return a runner unchanged."""
    if isinstance(runner, Runner):
        return runner
    if runner in ("local", "ray"):
        return recorded_runner({"name": runner})
    if runner == "isolated":
        return recorded_runner({"name": "local", "isolate": True})
    needed = "'local', 'isolated', 'ray' or a Runner such as LocalRunner(timeout=60)"
    raise SettingError(f"runner={runner!r}, but runner must be {needed}")


def recorded_runner(settings: Mapping[str, Any]) -> Runner:
    """Return a runner with settings that `Runner.as_dict` returned."""
    from latebloomer.racing.runners.local import LocalRunner
    from latebloomer.racing.runners.ray_runner import RayRunner

    values = dict(settings)
    name = values.pop("name")
    if name in ("local", "ray"):
        return LocalRunner(**values) if name == "local" else RayRunner(**values)
    way = "Pass it again with resume(..., runner=...), or resume with runner='local'."
    raise SettingError(f"This race was run by {name}, not by a runner of this library. {way}")


def runner_of(settings: Mapping[str, Any], journal: Path) -> Runner:
    """Return the runner that a journal names, unless it uses other places than the journal.

    Raises
    ------
    SettingError
        The runner would unpickle learners from another place or send them to a cluster. A journal
        may come from anywhere, so the caller must name such places.
    """
    again = runner_to_name(settings, journal)
    if again:
        raise SettingError(
            f"The journal {near(journal)} names the runner {again}. A journal may come from "
            "anywhere, and such a runner loads learners from there, which can run any code. If "
            f"the race is yours, name its runner again: {resume_call(journal, again)}."
        )
    return recorded_runner(settings)


def runner_to_name(settings: Mapping[str, Any], journal: Path | None) -> str:
    """Return Python text for the recorded runner if a resume must name it again, else "".

    >>> runner_to_name({"name": "ray", "storage": "s3://bucket/races"}, Path("race.db"))
    "RayRunner(storage='s3://bucket/races')"
    >>> runner_to_name({"name": "local", "timeout": 60.0}, Path("race.db"))
    ''
    """
    storage, address = settings.get("storage"), settings.get("address")
    if storage is not None and journal is not None and "://" not in str(storage):
        inside = resolved(str(storage)).is_relative_to(resolved(journal).parent)
        storage = None if inside else storage
    places = {"address": address, "storage": storage}
    named = ", ".join(f"{name}={value!r}" for name, value in places.items() if value is not None)
    return f"RayRunner({named})" if named else ""


def check_memory_limit(
    most: int | None, entries: Sequence[Entry], session: Session, settings: Settings
) -> None:
    """Raise an error if a race with at most `most` of these learners in memory is impossible.

    With a policy with phases, the number of pulls of each learner before the next decision is
    known, so pulls can be made learner by learner. The other learners wait in their checkpoints.
    """
    if most is None or most >= len(entries):
        return
    setting, policy, wrong = f"max_in_memory={most}", session.policy, ""
    if session.decides_every_pull or policy.decides_after_sweeps():
        after = "pull" if session.decides_every_pull else "sweep"
        wrong = f"needs a policy with phases (auto, r-sr): {policy!r} decides after every {after}"
    elif settings.seconds is not None:
        wrong = f"cannot be combined with seconds={settings.seconds:g}, only with budget=..."
    if wrong:
        raise SettingError(f"{setting} {wrong}. Change that, {WITHOUT}.")
    for entry in entries:
        if not entry.rebuilds:
            problem = (
                f"{setting}, but learner {entry.name!r} is an object, which is in memory anyway"
            )
            raise LearnerError(f"{problem}. Pass a function that builds it, {WITHOUT}.")
        if isgeneratorfunction(entry.passed):
            raise cannot_let_go(entry, "it is a generator")
