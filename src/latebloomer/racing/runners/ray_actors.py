"""The actors of a race, the call that each is making, and where they live.

A *slot* is a reservation (Ray's placement group) of what one pull needs. There are as many as fit
the cluster, at most one per learner. All learners keep their own process, also if there are more
of them than slots: an actor requests a small share of its slot, and the runner ensures that no
machine makes more pulls at the same time than it has slots. So a learner that waits stays in
memory, and one whose machine is lost finds room elsewhere. Learners that need the same resources
share a *kind* of slot.
"""

import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NamedTuple

from latebloomer._util.text import reason_of
from latebloomer.cluster import Cluster
from latebloomer.errors import ClusterError, LearnerError, need_in, require
from latebloomer.racing.checkpoints.storage import Storage
from latebloomer.racing.runners import learner_host
from latebloomer.racing.runners.contract import Order, Runner, RunnerContext
from latebloomer.racing.runners.learner_host import LearnerHost, PackedLearners, unpack
from latebloomer.session.events import INTERRUPTED

NONE, START, RESTORE, TRAIN, SAVE = "", "hello", "prepare", "pull", "save"  # kinds of call
GRACE = 2.0  # seconds that a call may take in addition to training
LATE = 10.0  # seconds after which a learner that is not built yet may be on a lost machine


@dataclass(eq=False)
class Worker:
    """A learner in a process somewhere, and its call that is under way, one at a time."""

    arm: int
    actor: Any
    slot: "Slot"
    done: int  # pulls that it has had, as far as the race knows, or is brought to
    ready: bool = False  # its learner is built
    since: float = field(default_factory=monotonic)  # when its process was asked for
    call: str = NONE
    ref: Any = None  # what the call will return
    sent: float = 0.0
    pulls: int = 0  # to be made by the call
    ends_phase: bool = False  # whether a phase ends with the last of them

    def send(self, call: str, ref: Any, pulls: int = 0, ends_phase: bool = False) -> None:
        """Note a call that was made."""
        self.call, self.ref, self.sent = call, ref, monotonic()
        self.pulls, self.ends_phase = pulls, ends_phase


class ActorPool:
    """Starts processes, calls them, and ends them."""

    def __init__(
        self, ray: Any, slots: "Slots", context: RunnerContext, packed: Any, runner: Runner
    ) -> None:
        self._ray, self._slots, self._context, self._packed = ray, slots, context, packed
        self._timeout, self._pickles = runner.timeout, runner.max_in_memory is not None
        self.workers: dict[int, Worker] = {}
        self._avoid: dict[int, Slot] = {}  # where one that was lost had been
        self._careful: dict[int, int] = {}  # arm: up to which pull it makes one per call

    # --- what is under way ---

    @property
    def calling(self) -> list[Worker]:
        """The workers with a call under way."""
        return [worker for worker in self.workers.values() if worker.call]

    def idle(self, arm: int) -> bool:
        """Return whether an arm has a process that can be called."""
        return arm in self.workers and not self.workers[arm].call

    def returned(self, timeout: float) -> list[Worker]:
        """Return a worker whose call has ended; none after `timeout` seconds."""
        refs = {worker.ref: worker for worker in self.calling}
        ready, _ = self._ray.wait(list(refs), num_returns=1, timeout=timeout)
        return [refs[ref] for ref in ready]

    # --- calling ---

    def start(self, arm: int, done: int) -> None:
        """Start a process for a learner that has had `done` pulls, where there is a machine."""
        slot = self._slots.assign(arm, self._avoid.pop(arm, None))
        if slot is not None:
            kind = self._ray.remote(max_restarts=0, max_task_retries=0)(LearnerHost)
            actor = kind.options(**self._slots.options(slot)).remote(arm, self._packed)
            worker = self.workers[arm] = Worker(arm, actor, slot, done)
            worker.send(START, actor.hello.remote())

    def prepare(self, worker: Worker) -> Any:
        """Let a learner be built and brought to its pulls; return what will be answered."""
        at = self._context.states.restorable(worker.arm, worker.done, seen=False)
        return worker.actor.prepare.remote(at)

    def train(self, worker: Worker, order: Order) -> None:
        """Let a learner make the pulls of an order, up to the next checkpoint."""
        count, every = order.pulls, self._context.schedule.every
        if worker.done < self._careful.get(worker.arm, 0):
            count = 1
        elif every is not None:
            count = min(count, every - worker.done % every)
        ref = worker.actor.train.remote(worker.done, count)
        worker.send(TRAIN, ref, count, order.ends_phase and count == order.pulls)

    def save(self, worker: Worker) -> Any:
        """Let a learner save its state; return what will be answered."""
        return worker.actor.save.remote(self._context.states.storage, self._pickles)

    # --- ending ---

    def end(self, arm: int) -> None:
        """End a learner's process; what it was doing is not heard of any more."""
        worker = self.workers.pop(arm, None)
        if worker is not None:
            self._slots.vacate(arm)
            with suppress(Exception):  # it may be dead already, or its machine
                self._ray.kill(worker.actor)

    def end_all(self) -> None:
        """End all processes."""
        for arm in list(self.workers):
            self.end(arm)

    def end_and_retry(self, worker: Worker) -> None:
        """End a process. Its pulls are made again one by one, to know in which it goes wrong."""
        self.end(worker.arm)
        self._avoid[worker.arm] = worker.slot
        if worker.call == TRAIN:
            self._careful[worker.arm] = worker.done + worker.pulls

    def overdue(self) -> Iterator[tuple[Worker, str, str]]:
        """Return workers whose call takes too long, with the kind of failure and why."""
        out_of_time, timeout = self._context.seconds_left() < 0, self._timeout
        for worker in self.calling:
            if worker.call == START:
                continue
            took = monotonic() - worker.sent
            own = 1 + (worker.done if worker.call == RESTORE else 0)  # each repeated pull has one
            if timeout is not None and took > timeout * own + learner_host.SLICE + GRACE:
                yield worker, *learner_host.took_longer(worker.call, timeout)
            elif out_of_time and took > self._context.grace:
                yield worker, INTERRUPTED, learner_host.OUT_OF_TIME

    def leave_lost_machines(self) -> None:
        """End what is on machines that have left, unless it has a call that will say so.

        An idle learner has none, and one that is to be built there would wait for ever.
        """
        for arm, worker in list(self.workers.items()):
            waits = worker.call in (START, RESTORE) and monotonic() - worker.sent > LATE
            if worker.slot.node is None and (waits or not worker.call):
                self.end(arm)

    def let_go(self, spare: Collection[Worker]) -> None:
        """End processes that have nothing to do in this phase, once they are saved."""
        for worker in spare:
            saved = self._context.states.newest(worker.arm, worker.done)
            if not worker.ready or (saved is not None and saved.n == worker.done):
                self.end(worker.arm)
            else:
                worker.send(SAVE, self.save(worker))


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
    require(isinstance(resources, Mapping), name, resources,
            'a dict such as {"num_cpus": 1, "num_gpus": 0}', "a pull takes that")  # fmt: skip
    for one, amount in resources.items():
        need_in(f"{name}[{one!r}]", amount, "[0, inf)", "it is an amount")
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
                said = f"The Ray cluster had no node with {kind} free for {PATIENCE:g} s"
                raise ClusterError(f"{said}. Wait until one is free, or request less per learner.")
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
            slot.node = node if state.get("state") == "CREATED" and node in alive else None

    # --- which arm lives where, and which may train ---

    @property
    def lanes(self) -> int:
        """Number of pulls that can be made at the same time."""
        return sum(slot.node is not None for slot in self.slots)

    def _there(self, kind: Kind) -> list[Slot]:
        return [slot for slot in self.slots if slot.kind == kind and slot.node is not None]

    def _open(self, kind: Kind) -> list[Slot]:
        return [slot for slot in self._there(kind) if not (kind.gpus > 1 and slot.arms)]

    def assign(self, arm: int, avoid: Slot | None = None) -> Slot | None:
        """Return the slot with the fewest arms, preferably not `avoid`; None without a machine."""
        found = self._open(self.kinds[arm])
        if not found:
            return None
        slot = min(found, key=lambda slot: (slot is avoid, len(slot.arms), slot.number))
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
        text = f"{where} cannot be written from here ({reason_of(error)}): {SHARED}"
        raise ClusterError(text) from error
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
        of_learners, of_storage = answer
        if of_learners:
            raise LearnerError(
                f"the learners cannot be built on {who} ({of_learners}): install what they import "
                "on every node, or put it into a folder that all nodes share"
            )
        if of_storage or not seen[node]:
            wrong = of_storage or "that is another folder than here"
            raise ClusterError(f"{who} does not share {where} ({wrong}): {SHARED}")


def _check_node(packed: PackedLearners, storage: Storage, mark: str) -> tuple[str, str]:
    """Return, on a node, what is wrong there with the learners, and with the storage."""
    import ray

    try:
        unpack(packed)
    except Exception as error:
        return reason_of(error), ""
    try:
        storage.keep(f"{mark}/{ray.get_runtime_context().get_node_id()}", _leave_mark)
        return "", "" if storage.has(f"{mark}/here") else "that is another folder than here"
    except Exception as error:
        return "", reason_of(error)


def _leave_mark(folder: Path) -> None:
    (folder / "mark").touch()
