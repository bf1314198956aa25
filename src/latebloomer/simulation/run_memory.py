"""What runs will take of this machine's memory, reckoned before any of it is taken."""

from __future__ import annotations

from latebloomer._util.memory import SMALL, free_memory, need_memory
from latebloomer.core.moves import ledger_bytes, past_lengths
from latebloomer.core.prefix_sums import PrefixSums
from latebloomer.policies.base import Policy
from latebloomer.simulation.cpu import lanes_of
from latebloomer.simulation.experiment import Experiment

FLOAT_IN_A_LIST = 32  # bytes: the number, and where it is
COPIES = 4  # of the prefix sums of a formula, while an array is made of them


def threads_that_fit(experiment: Experiment, runs: int, threads: int = 1) -> int:
    """As many of `threads` as there is memory for; a `ChunkError` where there is none for one.

    Each thread has ledgers of its own, with a place for every pull that an arm may have.
    """
    chunk, of_run = min(runs, experiment.runs_of_chunk), _outcome_bytes(experiment)
    shared, each = _shared_bytes(experiment), _thread_bytes(experiment)
    if shared + threads * each + chunk * of_run <= SMALL:
        return threads
    free = free_memory()
    longest = experiment.means.longest
    what = f"a run over {experiment.arms} arms, each of which may be pulled {longest} times,"
    advice = "set a smaller budget or horizon, or give fewer arms or fewer policies at a time"
    need_memory(shared + each + of_run, what, advice, free)
    left = free.size - shared - each
    advice = f"give a smaller chunk, for example chunk={max(1, left // of_run // 8)}"
    need_memory(shared + each + chunk * of_run, f"a chunk of {chunk} runs", advice, free)
    return max(1, min(threads, (left + each - chunk * of_run) // each))


def _shared_bytes(experiment: Experiment) -> int:
    """The means and, where runs are played by sums, what is drawn between breakpoints."""
    means = 0 if experiment.means.is_made else experiment.means.size
    points = 0 if experiment.breakpoints is None else len(experiment.breakpoints)
    return means + 3 * 8 * experiment.arms * points


def _outcome_bytes(experiment: Experiment) -> int:
    """What one run of every policy leaves: the recommended arm and how often each was pulled."""
    return 4 * (experiment.arms + 1) * len(experiment.policies)


def _thread_bytes(experiment: Experiment) -> int:
    """A player of each policy; on a GPU their memory is the card's."""
    if experiment.target == "gpu":
        return 1
    return sum(_player_bytes(experiment, policy) for policy in experiment.policies.values())


def _player_bytes(experiment: Experiment, policy: Policy) -> int:
    arms, longest = experiment.arms, experiment.most_pulls(policy)
    settings = policy.settings(arms, experiment.budget, experiment.horizon)
    made = sum(8 * value.last for value in settings if isinstance(value, PrefixSums))
    if experiment.target == "python":
        return FLOAT_IN_A_LIST * (arms * sum(past_lengths(policy, longest)) + made // 8)
    return lanes_of(experiment, policy) * ledger_bytes(policy, arms, longest) + COPIES * made
