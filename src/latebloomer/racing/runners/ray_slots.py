"""Where actors live: reserved resources, and how many pulls each machine makes at the same time.

A *slot* is a reservation (Ray's placement group) of what one pull needs. There are as many as fit
the cluster, at most one per learner. All learners keep their own process, also if there are more
of them than slots: an actor requests a small share of its slot, and the runner ensures that no
machine makes more pulls at the same time than it has slots. So a learner that waits stays in
memory, and one whose machine is lost finds room elsewhere. Learners that need the same resources
share a *kind* of slot.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NamedTuple

from latebloomer.cluster import Cluster
from latebloomer.errors import ClusterError, LearnerError, SettingError, need_number, require
from latebloomer.racing.checkpoints.storage import Storage
from latebloomer.racing.runners.learner_host import PackedLearners, unpack

KNOWN = {"num_cpus": "CPU", "num_gpus": "GPU", "memory": "memory"}
FINEST = 1e-4  # of a resource: Ray counts no smaller shares
PROMPT = 5.0  # seconds in which free resources are reserved
AGAIN = 5.0  # seconds between two checks of slots that have no machine
PATIENCE = 120.0  # seconds to wait for resources that others use
SHARED = "give RayRunner(storage=...) a folder that all machines share, or s3://bucket/folder"


def needed(resources: Any, name: str = "resources") -> dict[str, float]:
    """Return what one pull needs, by Ray's names.

    >>> needed({"num_cpus": 2, "num_gpus": 0, "tpu": 1})
    {'CPU': 2, 'tpu': 1}
    """
    if not isinstance(resources, Mapping):
        raise SettingError(
            f'{name}={resources!r}, but {name} must be a dict such as {{"num_cpus": 1, '
            '"num_gpus": 0}'
        )
    for one, amount in resources.items():
        need_number(f"{name}[{one!r}]", amount)
        require(amount >= 0, f"{name}[{one!r}]", amount, "at least 0", "it is an amount")
    return {KNOWN.get(str(one), str(one)): amount for one, amount in resources.items() if amount}


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
        needs = [tuple(sorted(one.items())) for one in wanted]
        self._kinds = [Kind(need, needs.count(need)) for need in needs]  # by arm
        self.slots: list[Slot] = []
        self._looked = 0.0

    def open(self) -> None:
        """Reserve what fits, and wait until there is a slot of each kind."""
        from ray.util.placement_group import placement_group

        counts = self._counts()
        for kind, count in counts.items():
            if kind.gpus > 1 and count < kind.learners:
                raise ClusterError(
                    f"{kind.learners} learners need {kind.gpus:g} GPU each, which they cannot "
                    f"share, but the cluster has room for {count}: race fewer, or request one GPU."
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
        counts = dict.fromkeys(self._kinds, 0)
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
                raise ClusterError(
                    f"The Ray cluster had no node with {kind} free for {PATIENCE:g} s. Wait until "
                    "resources are free, or request less per learner."
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

        if not now and (self.lanes == len(self.slots) or monotonic() - self._looked < AGAIN):
            return
        self._looked = monotonic()
        alive = {node["NodeID"] for node in self._cluster.nodes()}
        for slot in self.slots:
            state = placement_group_table(slot.group)
            node = state.get("bundles_to_node_id", {}).get(0)
            there = state.get("state") == "CREATED" and node in alive
            slot.node = node if there else None

    # --- which arm lives where, and which may train ---

    @property
    def lanes(self) -> int:
        """Number of pulls that can be made at the same time."""
        return sum(slot.node is not None for slot in self.slots)

    def kind_of(self, arm: int) -> Kind:
        """Return what an arm needs."""
        return self._kinds[arm]

    def _there(self, kind: Kind) -> list[Slot]:
        return [slot for slot in self.slots if slot.kind == kind and slot.node is not None]

    def _open(self, kind: Kind) -> list[Slot]:
        return [slot for slot in self._there(kind) if not (kind.gpus > 1 and slot.arms)]

    def assign(self, arm: int, avoid: Slot | None = None) -> Slot | None:
        """Return the slot with the fewest arms, preferably not `avoid`; None without a machine."""
        found = self._open(self._kinds[arm])
        if not found:
            return None
        slot = min(found, key=lambda slot: (slot is avoid, len(slot.arms), slot.number))
        slot.arms.add(arm)
        return slot

    def is_full(self, arm: int) -> bool:
        """Return whether an arm finds no slot, though there are machines."""
        kind = self._kinds[arm]
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
            "num_cpus": share.pop("CPU", 0), "num_gpus": share.pop("GPU", 0),
            "memory": int(share.pop("memory", 0)) or None, "resources": share or None,
            "scheduling_strategy": PlacementGroupSchedulingStrategy(slot.group, 0),
            "runtime_env": own,
        }  # fmt: skip

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


# --- before the first pull ---


def check_nodes(cluster: Cluster, packed: Any, storage: Storage) -> None:
    """Raise unless every node has the learners' modules, and all write to the same storage."""
    mark = f"mark-{uuid.uuid4().hex[:8]}"
    where = f"the storage of checkpoints, {storage},"
    try:
        storage.keep(f"{mark}/here", _leave_mark)
    except Exception as error:
        raise ClusterError(
            f"{where} cannot be written from here ({type(error).__name__}: {error}): {SHARED}"
        ) from error
    answers = cluster.ask_nodes(_check_node, packed, storage, mark)
    seen = {node: storage.has(f"{mark}/{node}") for node in answers}
    storage.drop(mark)
    for node, answer in answers.items():
        who = f"node {node[:8]} of the Ray cluster"
        if isinstance(answer, Exception):
            raise ClusterError(
                f"{who} cannot fetch the learners from this program ({type(answer).__name__}): "
                "open the network between them; or, if the cluster was started without tokens "
                "and there is one here, set RAY_AUTH_MODE=disabled"
            ) from answer
        of_learners, wrong = answer
        if of_learners:
            raise LearnerError(
                f"the learners cannot be built on {who} ({wrong}): install what they import on "
                "every node, or put it into a folder that all nodes share"
            )
        if wrong or not seen[node]:
            wrong = wrong or "that is another folder than here"
            raise ClusterError(f"{who} does not share {where} ({wrong}): {SHARED}")


def _check_node(packed: PackedLearners, storage: Storage, mark: str) -> tuple[bool, str]:
    """Return, on a node, what is wrong there, and whether with the learners or the storage."""
    import ray

    try:
        unpack(packed)
    except Exception as error:
        return True, f"{type(error).__name__}: {error}"
    try:
        storage.keep(f"{mark}/{ray.get_runtime_context().get_node_id()}", _leave_mark)
        return False, "" if storage.has(f"{mark}/here") else "that is another folder than here"
    except Exception as error:
        return False, f"{type(error).__name__}: {error}"


def _leave_mark(folder: Path) -> None:
    (folder / "mark").touch()
