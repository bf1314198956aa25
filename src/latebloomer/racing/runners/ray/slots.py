"""Where actors live: reserved resources, and how many pulls each machine makes at once.

A *slot* is a reservation (Ray's placement group) of what one pull needs. There are as many as fit
the cluster, at most one per learner. All learners keep a process each, also where there are more
of them than slots: an actor asks for a small share of its slot, and the runner sees to it that no
machine makes more pulls at once than it has slots. So a learner that waits its turn stays in
memory, and one whose machine is lost finds room elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic, sleep
from typing import Any

from latebloomer.cluster import Cluster
from latebloomer.errors import ClusterError, SettingError, need_number, require

KNOWN = {"num_cpus": "CPU", "num_gpus": "GPU", "memory": "memory"}
FINEST = 1e-4  # of a resource: Ray counts no smaller shares
PROMPT = 5.0  # seconds in which what is free is reserved
AGAIN = 5.0  # seconds between two looks for slots that have no machine
PATIENCE = 120.0  # seconds to wait for resources that others use


def needed(resources: Mapping[str, float]) -> dict[str, float]:
    """What one pull needs, by Ray's names.

    >>> needed({"num_cpus": 2, "num_gpus": 0, "tpu": 1})
    {'CPU': 2, 'tpu': 1}
    """
    if not isinstance(resources, Mapping):
        raise SettingError(
            f"resources={resources!r}, but resources must be a dict such as "
            '{"num_cpus": 1, "num_gpus": 0}'
        )
    for name, amount in resources.items():
        need_number(f"resources[{name!r}]", amount)
        require(amount >= 0, f"resources[{name!r}]", amount, "at least 0", "it is an amount")
    return {KNOWN.get(name, name): amount for name, amount in resources.items() if amount}


@dataclass(eq=False)
class Slot:
    """A reservation; `node` is None while it has no machine."""

    group: Any
    number: int
    node: str | None = None
    arms: set[int] = field(default_factory=set)


class Slots:
    """The slots of one race."""

    def __init__(self, cluster: Cluster, wanted: Mapping[str, float], learners: int) -> None:
        self._cluster, self._wanted, self._learners = cluster, dict(wanted), learners
        # A GPU belongs to its slot; cores are shared out by the operating system.
        self._apart = bool(wanted.get("GPU"))
        self._alone = wanted.get("GPU", 0) > 1  # several GPUs cannot be shared
        self.slots: list[Slot] = []
        self._looked = 0.0

    def open(self) -> None:
        """Reserve what fits, and wait until something is there."""
        from ray.util.placement_group import placement_group

        count = min(self._learners, self._cluster.room(self._wanted))
        if self._wanted.get("GPU", 0) > 1 and count < self._learners:
            raise ClusterError(
                f"{self._learners} learners ask for {self._wanted['GPU']:g} GPU each, and the "
                f"cluster has room for {count}: several GPUs cannot be shared in turns; race "
                "fewer learners, or ask for at most one GPU each"
            )
        bundle = dict(self._wanted) or {"CPU": FINEST}
        self.slots = [Slot(placement_group([bundle]), k) for k in range(count)]
        until = monotonic() + PROMPT
        for slot in self.slots:
            slot.group.wait(timeout_seconds=max(0.0, until - monotonic()))
        self.need_one()

    def need_one(self, patience: float = PATIENCE) -> None:
        """Wait for a slot that has a machine; an error where there is none in time."""
        until = monotonic() + patience
        while not self.look() and monotonic() < until:
            self.wait(min(1.0, patience))
        if not self.lanes:
            free = self._cluster.ray.available_resources()
            have = ", ".join(f"{free.get(name, 0):g} {name}" for name in self._wanted)
            asked = ", ".join(f"{amount:g} {name}" for name, amount in self._wanted.items())
            raise ClusterError(
                f"one learner asks for {asked or 'a machine'}, and for {patience:g} s the Ray "
                f"cluster has had no such place free (free now: {have or 'no node'}): wait until "
                "others are done or machines are back, or ask for less"
            )

    def wait(self, seconds: float) -> None:
        """Wait for a slot that has no machine to get one."""
        without = [slot for slot in self.slots if slot.node is None]
        if without:
            without[0].group.wait(timeout_seconds=seconds)
        else:  # each has one, but no room: that ends with another learner's turn
            sleep(min(seconds, 0.1))
        self.look()

    def look(self) -> bool:
        """See which slots have a machine; whether any has."""
        from ray.util.placement_group import placement_group_table

        self._looked = monotonic()
        alive = {node["NodeID"] for node in self._cluster.nodes()}
        for slot in self.slots:
            state = placement_group_table(slot.group)
            node = state.get("bundles_to_node_id", {}).get(0)
            there = state.get("state") == "CREATED" and node in alive
            slot.node = node if there else None
        return any(slot.node for slot in self.slots)

    def look_for_more(self) -> None:
        """See now and then whether slots without a machine have got one."""
        if self.lanes < len(self.slots) and monotonic() - self._looked > AGAIN:
            self.look()

    # --- who lives where, and who may train ---

    @property
    def lanes(self) -> int:
        """Pulls that can be made at once."""
        return sum(slot.node is not None for slot in self.slots)

    def assign(self, arm: int, avoid: Slot | None = None) -> Slot | None:
        """The slot with the fewest arms, another one than `avoid`; None without a machine."""
        there = self._open()
        if not there:
            return None
        slot = min(there, key=lambda slot: (slot is avoid, len(slot.arms), slot.number))
        slot.arms.add(arm)
        return slot

    def _open(self) -> list[Slot]:
        there = [slot for slot in self.slots if slot.node is not None]
        return [slot for slot in there if not (self._alone and slot.arms)]

    def full_steps(self) -> bool:
        """Whether a learner finds no slot, though there are machines."""
        return bool(self.lanes) and not self._open()

    def vacate(self, arm: int) -> None:
        """An arm lives nowhere any more."""
        for slot in self.slots:
            slot.arms.discard(arm)

    def key(self, slot: Slot) -> Any:
        """What shares its pulls: a machine, or a slot where it has a GPU of its own."""
        return slot.number if self._apart else slot.node

    def free(self, busy: Iterable[Slot]) -> Counter[Any]:
        """How many more pulls each machine, or slot, may make at once."""
        room = Counter(self.key(slot) for slot in self.slots if slot.node is not None)
        room.subtract(self.key(slot) for slot in busy)
        return room

    def options(self, slot: Slot) -> dict[str, Any]:
        """How an actor asks for its share of a slot."""
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        share = {name: self._share(name, amount) for name, amount in self._wanted.items()}
        options: dict[str, Any] = {
            "num_cpus": share.pop("CPU", 0),
            "num_gpus": share.pop("GPU", 0),
            "memory": int(share.pop("memory", 0)) or None,
            "resources": share or None,
            "scheduling_strategy": PlacementGroupSchedulingStrategy(slot.group, 0),
        }
        threads = int(self._wanted.get("CPU", 1))
        if threads > 1:  # Ray would allow one thread to a process with a share of a core
            options["runtime_env"] = {"env_vars": {"OMP_NUM_THREADS": str(threads)}}
        return options

    def _share(self, name: str, amount: float) -> float:
        if name == "GPU" and amount > 1:
            return amount
        if name == "memory":
            return amount / self._learners
        return max(FINEST, int(amount / self._learners / FINEST) * FINEST)

    def close(self) -> None:
        """Give the reservations back."""
        from ray.util.placement_group import remove_placement_group

        for slot in self.slots:
            with suppress(Exception):  # one that cannot be given back keeps no other
                remove_placement_group(slot.group)
        self.slots = []
