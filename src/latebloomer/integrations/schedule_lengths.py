"""A check that the length of a learning-rate schedule fits the number of its steps."""

from typing import Any

from latebloomer.errors import SettingError

NEAR = 0.75, 1.34  # allowed ratios of a schedule's length to a number of steps


def check_length(scheduler: Any, by: str, epochs: float | None, batches: float | None) -> None:
    """Raise an error if a schedule for batches is stepped after epochs, or vice versa.

    `epochs` and `batches` are their numbers in a full training. A schedule of unknown length, or
    of a length that fits neither number, is accepted.
    """
    length = length_of(scheduler)
    if length is None or epochs is None or batches is None:
        return
    steps, others = (epochs, batches) if by == "epoch" else (batches, epochs)
    if _fits(length, steps) or not _fits(length, others):
        return
    other = "batch" if by == "epoch" else "epoch"
    name = type(scheduler).__name__
    raise SettingError(
        f"the scheduler {name} is {length:g} steps long, but schedule_by={by!r} steps it "
        f"{steps:g} times in a full training: learners would not be compared at the learning rate "
        f"of its end. Give schedule_by={other!r}, which steps it {others:g} times."
    )


def _fits(length: float, steps: float) -> bool:
    return NEAR[0] <= length / steps <= NEAR[1]


def length_of(scheduler: Any) -> float | None:
    """Return the number of steps of a schedule of `torch.optim`; None if that is not known."""
    if scheduler is None:
        return None
    # SequentialLR and ChainedScheduler have no public attribute for their parts.
    parts = getattr(scheduler, "_schedulers", None)
    if parts:
        lengths = [length for part in parts if (length := length_of(part)) is not None]
        # Steps at which the parts of a sequence begin.
        if begins := getattr(scheduler, "_milestones", None):
            last = length_of(parts[-1])
            return None if last is None else begins[-1] + last
        return max(lengths, default=None)
    for name in ("total_steps", "T_max", "total_iters"):
        if isinstance(value := getattr(scheduler, name, None), int | float):
            return float(value)
    return None
