"""Checks, before the first pull, that every machine of a cluster can train and save learners."""

import uuid
from pathlib import Path
from typing import Any

from latebloomer._util.text import reason_of
from latebloomer.cluster import Cluster
from latebloomer.errors import ClusterError, LearnerError
from latebloomer.racing.checkpoints.storage import Storage
from latebloomer.racing.runners.packing import PackedLearners, unpack

SHARED = "give RayRunner(storage=...) a folder that all machines share, or s3://bucket/folder"


def check_nodes(cluster: Cluster, packed: Any, storage: Storage) -> None:
    """Raise an error unless all nodes have the learners' modules and share the storage."""
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
    """Return text about what is wrong on this node with the learners, and with the storage."""
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
