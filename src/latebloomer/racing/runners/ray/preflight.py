"""What can be known before the first pull: each problem is named at the start of a race."""

from __future__ import annotations

import uuid
from typing import Any

from latebloomer.cluster import Cluster
from latebloomer.errors import ClusterError, LearnerError
from latebloomer.racing.checkpoints.storage import Storage
from latebloomer.racing.runners.transfer import PackedLearners, unpack

ADVICE = (
    "checkpoints must be where every node can read and write them: give RayRunner(storage=...) a "
    "folder that all machines share, or an address such as s3://bucket/folder"
)


def need_learners(cluster: Cluster, packed: Any) -> None:
    """Raise unless every node has the modules of the learners."""
    for node, answer in cluster.ask_nodes(_count, packed).items():
        if isinstance(answer, cluster.ray.exceptions.RayError):
            raise ClusterError(
                f"node {node[:8]} of the Ray cluster cannot fetch the learners from this program "
                f"({type(answer).__name__}): open the network between them; or, if the cluster "
                "was started without tokens and there is one here, set RAY_AUTH_MODE=disabled"
            ) from answer
        if isinstance(answer, Exception):
            raise LearnerError(
                f"the learners cannot be built on node {node[:8]} of the Ray cluster "
                f"({type(answer).__name__}: {answer}): install what they import on every node, or "
                "put it into a folder that all nodes share"
            ) from answer


def _count(packed: PackedLearners) -> int:
    """Return, on a node, how many learners can be built."""
    return len(unpack(packed))


def need_shared(cluster: Cluster, storage: Storage) -> None:
    """Raise unless every node can write to the storage and sees what others wrote there."""
    mine = f"mark-{uuid.uuid4().hex[:8]}"
    where = f"the storage of checkpoints, {storage},"
    try:
        storage.leave_mark(mine)
    except Exception as error:
        raise ClusterError(
            f"{where} cannot be written from here ({type(error).__name__}: {error}): give a "
            "folder that every node can write, or an address such as s3://bucket/folder"
        ) from error
    answers = cluster.ask_nodes(_mark, storage, mine)
    seen = {node: storage.has_mark(f"{mine}-{node[:8]}", remove=True) for node in answers}
    storage.has_mark(mine, remove=True)
    for node, answer in answers.items():
        if isinstance(answer, Exception):
            raise ClusterError(
                f"node {node[:8]} of the Ray cluster cannot write to {where} "
                f"({type(answer).__name__}: {answer}): {ADVICE}"
            ) from answer
        if not (answer and seen[node]):
            raise ClusterError(
                f"node {node[:8]} of the Ray cluster writes to {where}, but that is another "
                f"folder than here: {ADVICE}"
            )


def _mark(storage: Storage, mine: str) -> bool:
    """Leave a mark of this node; return whether the driver's mark is seen."""
    import ray

    node = ray.get_runtime_context().get_node_id()
    storage.leave_mark(f"{mine}-{node[:8]}")
    return storage.has_mark(mine)
