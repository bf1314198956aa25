"""Where the learners of a race find room on a Ray cluster.

A *slot* is a reservation (Ray's placement group) of what one pull needs. There are as many as fit
the cluster, at most one per learner. Learners that need the same resources share a *kind* of slot.
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
FINEST = 1e-4  # of a resource: Ray counts no smaller shares
PROMPT = 5.0  # seconds in which free resources are reserved
AGAIN = 5.0  # seconds between two checks of slots that have no machine
PATIENCE = 120.0  # seconds to wait for resources that others use


def needed(resources: Any, name: str = "resources") -> dict[str, float]:
    """Return what one pull needs, by Ray's names.

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
    """What each of several learners needs for a pull."""

    wanted: tuple[tuple[str, float], ...]
    learners: int

    @property
    def gpus(self) -> float:
        """GPUs per pull. One belongs to its slot; more than one cannot be shared in turns."""
        return dict(self.wanted).get("GPU", 0)

    def share(self, name: str, amount: float) -> float:
        """Return what an actor requests of its slot, so that all learners fit into one."""
        if name == "GPU" and amount > 1:
            return amount
        return max(FINEST, int(amount / self.learners / FINEST) * FINEST)

    def __str__(self) -> str:
        return ", ".join(f"{amount:g} {name}" for name, amount in self.wanted) or "a machine"


@dataclass(eq=False)
class Slot:
    """A reservation; `node` is None while it has no machine."""

    group: Any
    number: int
    kind: Kind
    node: str | None = None
    arms: set[int] = field(default_factory=set)

    @property
    def key(self) -> Any:
        """The unit that shares its pulls: a machine, or a slot that has its own GPU."""
        return self.number if self.kind.gpus else (self.kind, self.node)


class Slots:
    """The slots of one race; `wanted` is what each arm needs."""

    def __init__(self, cluster: Cluster, wanted: Sequence[Mapping[str, float]]) -> None:
        self._cluster = cluster
        needs = [tuple(sorted(amounts.items())) for amounts in wanted]
        self.kinds = [Kind(need, needs.count(need)) for need in needs]  # by arm
        self.slots: list[Slot] = []
        self._looked = 0.0

    def open(self) -> None:
        """Reserve what fits, and wait until there is a slot of each kind."""
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
        """Return how many slots of each kind fit together, in turns one of each."""
        counts = dict.fromkeys(self.kinds, 0)
        free = [dict(node["Resources"]) for node in self._cluster.nodes()]
        while grown := [k for k in counts if counts[k] < k.learners and _take(free, k)]:
            for kind in grown:
                counts[kind] += 1
        for kind, count in counts.items():
            if not count:
                self._cluster.room(dict(kind.wanted))  # raises an error if it fits nowhere
                raise ClusterError(
                    f"The Ray cluster has no room for a learner that needs {kind} next to the "
                    "others: request less with resources= or learner_resources=."
                )
        return counts

    def need_one(self, kind: Kind) -> None:
        """Wait for a slot that has a machine; raise an error if there is none in time."""
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
        """Wait for a slot that has no machine to get one."""
        without = [slot for slot in self.slots if slot.node is None]
        if without:
            without[0].group.wait(timeout_seconds=seconds)
        else:  # each has one, but no room: that ends with another learner's pulls
            sleep(min(seconds, 0.1))
        self.look()

    def look(self, now: bool = True) -> None:
        """Check which slots have a machine; unless `now`, only now and then, if some have none."""
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

    # --- which arm lives where, and which may train ---

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
        """Return whether an arm finds no slot, though there are machines."""
        kind = self.kinds[arm]
        return bool(self._there(kind)) and not self._open(kind)

    def vacate(self, arm: int) -> None:
        """Remove an arm from its slot."""
        for slot in self.slots:
            slot.arms.discard(arm)

    def free(self, busy: Iterable[Slot]) -> Counter[Any]:
        """Return how many more pulls each machine, or slot, may make at the same time."""
        room = Counter(slot.key for slot in self.slots if slot.node is not None)
        room.subtract(slot.key for slot in busy)
        return room

    def options(self, slot: Slot) -> dict[str, Any]:
        """Return how an actor requests its share of a slot."""
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        kind = slot.kind
        share = {name: kind.share(name, amount) for name, amount in kind.wanted}
        threads = int(dict(kind.wanted).get("CPU", 1))
        # Ray would allow one thread to a process with a share of a core.
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
        """Give the reservations back."""
        from ray.util.placement_group import remove_placement_group

        for slot in self.slots:
            with suppress(Exception):  # one that cannot be given back keeps no other
                remove_placement_group(slot.group)
        self.slots = []


def _take(free: list[dict[str, float]], kind: Kind) -> bool:
    """Take one slot's resources from the first node that has them; return whether one has."""
    for node in free:
        if all(node.get(name, 0) >= amount - 1e-9 for name, amount in kind.wanted):
            for name, amount in kind.wanted:
                node[name] -= amount
            return True
    return False
