"""Slots: the places of a race's learners on a Ray cluster.

A *slot* is a reservation (a placement group of Ray) of the resources for one pull. There are as
many slots as fit the cluster, and at most one per learner. Learners that need the same resources
share a *kind* of slot.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic, sleep
from typing import Any, NamedTuple

from latebloomer.cluster import Cluster
from latebloomer.errors import ClusterError, need_in, require

KNOWN = {"num_cpus": "CPU", "num_gpus": "GPU", "memory": "memory"}
FINEST = 1e-4  # smallest share of a resource in Ray
PROMPT = 5.0  # seconds to wait for resources that are free
AGAIN = 5.0  # seconds between two checks of slots that have no machine
PATIENCE = 120.0  # seconds to wait for resources that other programs use


def needed(resources: Any, name: str = "resources") -> dict[str, float]:
    """Return the resources of one pull, by Ray's names.

    >>> needed({"num_cpus": 2, "num_gpus": 0, "tpu": 1})
    {'CPU': 2, 'tpu': 1}
    """
    require(
        isinstance(resources, Mapping),
        name,
        resources,
        'a dict such as {"num_cpus": 1, "num_gpus": 0}',
        "a pull takes that",
    )
    for resource, amount in resources.items():
        need_in(f"{name}[{resource!r}]", amount, "[0, inf)", "it is an amount")
    return {
        KNOWN.get(str(resource), str(resource)): amount
        for resource, amount in resources.items()
        if amount
    }


class Kind(NamedTuple):
    """A kind of slot: the resources for a pull, and the number of learners that need them."""

    wanted: tuple[tuple[str, float], ...]
    learners: int

    @property
    def gpus(self) -> float:
        """Number of GPUs per pull. Learners that need more than one cannot share a slot."""
        return dict(self.wanted).get("GPU", 0)

    def share(self, name: str, amount: float) -> float:
        """Return the share that an actor requests, so that all learners fit into one slot."""
        if name == "GPU" and amount > 1:
            return amount
        return max(FINEST, int(amount / self.learners / FINEST) * FINEST)

    def __str__(self) -> str:
        return ", ".join(f"{amount:g} {name}" for name, amount in self.wanted) or "a machine"


@dataclass(eq=False)
class Slot:
    """A reservation; `node` is None while the slot has no machine."""

    group: Any
    number: int
    kind: Kind
    node: str | None = None
    arms: set[int] = field(default_factory=set)

    @property
    def key(self) -> Any:
        """The unit in which slots are shared: a machine, or a slot with its own GPU."""
        return self.number if self.kind.gpus else (self.kind, self.node)


class Slots:
    """The slots of one race; `wanted` has the resources of each arm."""

    def __init__(self, cluster: Cluster, wanted: Sequence[Mapping[str, float]]) -> None:
        self._cluster = cluster
        needs = [tuple(sorted(amounts.items())) for amounts in wanted]
        self.kinds = [Kind(need, needs.count(need)) for need in needs]  # by arm
        self.slots: list[Slot] = []
        self._looked = 0.0

    def open(self) -> None:
        """Reserve as many slots as fit, and wait until there is a slot of each kind."""
        from ray.util.placement_group import placement_group

        counts = self._counts()
        for kind, count in counts.items():
            if kind.gpus > 1 and count < kind.learners:
                raise ClusterError(
                    f"{kind.learners} learners need {kind.gpus:g} GPU each, but the cluster has "
                    f"room for {count} that do not share: race fewer, or request one GPU."
                )
            bundle = dict(kind.wanted) or {"CPU": FINEST}
            first = len(self.slots)
            self.slots += [Slot(placement_group([bundle]), first + k, kind) for k in range(count)]
        until = monotonic() + PROMPT
        for slot in self.slots:
            slot.group.wait(timeout_seconds=max(0.0, until - monotonic()))
        for kind in counts:
            self.need_one(kind)

    def _counts(self) -> dict[Kind, int]:
        """Return how many slots of each kind fit together; one of each is added in turn."""
        counts = dict.fromkeys(self.kinds, 0)
        free = [dict(node["Resources"]) for node in self._cluster.nodes()]
        while grown := [k for k in counts if counts[k] < k.learners and _take(free, k)]:
            for kind in grown:
                counts[kind] += 1
        for kind, count in counts.items():
            if not count:
                self._cluster.room(dict(kind.wanted))  # raises an error if it fits on no node
                raise ClusterError(
                    f"The Ray cluster has no room for a learner that needs {kind} next to the "
                    "others: request less with resources= or learner_resources=."
                )
        return counts

    def need_one(self, kind: Kind) -> None:
        """Wait for a slot with a machine; raise an error if there is none in time."""
        until = monotonic() + PATIENCE
        self.look()
        while not self._there(kind):
            if monotonic() > until:
                problem = f"The Ray cluster had no node with {kind} free for {PATIENCE:g} s"
                raise ClusterError(
                    f"{problem}. Wait until one is free, or request less per learner."
                )
            self.wait(1.0)

    def wait(self, seconds: float) -> None:
        """Wait until a slot without a machine gets one, at most `seconds`."""
        without = [slot for slot in self.slots if slot.node is None]
        if without:
            without[0].group.wait(timeout_seconds=seconds)
        else:  # all slots have a machine but no room: wait for the pulls of another learner
            sleep(min(seconds, 0.1))
        self.look()

    def look(self, now: bool = True) -> None:
        """Check which slots have a machine; unless `now`, only from time to time."""
        from ray.util.placement_group import placement_group_table

        if not now and (
            self.parallel_pulls == len(self.slots) or monotonic() - self._looked < AGAIN
        ):
            return
        self._looked = monotonic()
        alive = {node["NodeID"] for node in self._cluster.nodes()}
        for slot in self.slots:
            state = placement_group_table(slot.group)
            node = state.get("bundles_to_node_id", {}).get(0)
            slot.node = node if state.get("state") == "CREATED" and node in alive else None

    # --- the slots of arms ---

    @property
    def parallel_pulls(self) -> int:
        """Number of pulls that can be made at the same time."""
        return sum(slot.node is not None for slot in self.slots)

    def _there(self, kind: Kind) -> list[Slot]:
        return [slot for slot in self.slots if slot.kind == kind and slot.node is not None]

    def _open(self, kind: Kind) -> list[Slot]:
        return [slot for slot in self._there(kind) if not (kind.gpus > 1 and slot.arms)]

    def assign(self, arm: int, avoid: Slot | None = None) -> Slot | None:
        """Return the slot with the fewest arms, preferably not `avoid`; None without a machine."""
        slots = self._open(self.kinds[arm])
        if not slots:
            return None
        slot = min(slots, key=lambda slot: (slot is avoid, len(slot.arms), slot.number))
        slot.arms.add(arm)
        return slot

    def is_full(self, arm: int) -> bool:
        """Return whether an arm has no slot although there are machines."""
        kind = self.kinds[arm]
        return bool(self._there(kind)) and not self._open(kind)

    def vacate(self, arm: int) -> None:
        """Remove an arm from its slot."""
        for slot in self.slots:
            slot.arms.discard(arm)

    def free(self, busy: Iterable[Slot]) -> Counter[Any]:
        """Return how many more pulls each machine or slot may make now."""
        room = Counter(slot.key for slot in self.slots if slot.node is not None)
        room.subtract(slot.key for slot in busy)
        return room

    def options(self, slot: Slot) -> dict[str, Any]:
        """Return the Ray options with which an actor requests its share of a slot."""
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        kind = slot.kind
        share = {name: kind.share(name, amount) for name, amount in kind.wanted}
        threads = int(dict(kind.wanted).get("CPU", 1))
        # By default, Ray limits a process with a share of a core to one thread.
        own = {"env_vars": {"OMP_NUM_THREADS": str(threads)}} if threads > 1 else None
        return {
            "num_cpus": share.pop("CPU", 0),
            "num_gpus": share.pop("GPU", 0),
            "memory": int(share.pop("memory", 0)) or None,
            "resources": share or None,
            "scheduling_strategy": PlacementGroupSchedulingStrategy(slot.group, 0),
            "runtime_env": own,
        }

    def close(self) -> None:
        """Release the reservations."""
        from ray.util.placement_group import remove_placement_group

        for slot in self.slots:
            # An error for one slot must not prevent the release of others.
            with suppress(Exception):
                remove_placement_group(slot.group)
        self.slots = []


def _take(free: list[dict[str, float]], kind: Kind) -> bool:
    """Take the resources of a slot from the first node that has them; return whether one has."""
    for node in free:
        if all(node.get(name, 0) >= amount - 1e-9 for name, amount in kind.wanted):
            for name, amount in kind.wanted:
                node[name] -= amount
            return True
    return False
