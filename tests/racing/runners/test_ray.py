"""Races on Ray: the same race as here, and every problem named at the start."""

import os
import pickle
import random
import signal
import sys
import threading
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from latebloomer import race, read_verdict, resume
from latebloomer.cluster import Cluster
from latebloomer.errors import ClusterError, LearnerError, SettingError
from latebloomer.racing.checkpoints.storage import Folder, Remote
from latebloomer.racing.checks.check_runner import Rising, check_runner
from latebloomer.racing.displays.display import NoDisplay
from latebloomer.racing.runners import ray_actors, ray_runner, ray_slots
from latebloomer.racing.runners.learner_host import Call
from latebloomer.racing.runners.process_state import NUMBERS
from latebloomer.racing.runners.ray_runner import RayRunner
from latebloomer.racing.runners.runner import RunnerContext
from latebloomer.session.events import Waiting
from tests.helpers.journals import rows
from tests.helpers.learners import acts, rising

pytestmark = [
    pytest.mark.ray,
    pytest.mark.filterwarnings("default"),  # Ray's own code warns of what it does
]


@pytest.fixture(scope="module")
def ray():
    """One Ray for the module: a runner without an address uses the program's own connection."""
    with Cluster(cores=4) as cluster:
        yield cluster.ray


def kept(best, slow):
    return partial(Rising, best, slow)


def stream(best, slow):
    def scores(seed):
        rng = random.Random(seed)
        for n in count(1):
            yield best * n / (n + slow) + rng.gauss(0, 0.01), n

    return scores


# Few: each is a process, which takes most of a second of a core to start.
LEARNERS = {"late": kept(1.0, 20), "middle": stream(0.8, 6), "early": kept(0.6, 1)}
PAIR = {"a": kept(1.0, 3), "b": kept(0.5, 3)}


def run(learners, budget, path, how=None, **settings):
    settings = {"policy": "r-sr", "progress": False} | settings
    return race(learners, budget, journal=path, runner=how or RayRunner(), **settings)


POLICIES = ["sh", "adaptive-rejects", "rr-sw", "rest-sure", "hyperband", "r-sr"]


@pytest.mark.parametrize("policy", POLICIES)
def test_verdict_and_rewards_are_those_of_the_local_runner(ray, tmp_path, policy):
    share = 0.3 if policy == "r-sr" else 0.0  # without one: see the contract of runners
    how = {"policy": policy, "winner_share": share}
    here = run(LEARNERS, 150, tmp_path / "here.db", "local", **how)
    there = run(LEARNERS, 150, tmp_path / "there.db", **how)
    if policy != "hyperband":  # it decides after every pull: other pulls are recorded
        assert there.summary() == here.summary()
        assert rows(tmp_path / "there.db") == rows(tmp_path / "here.db")
    assert there.spent == here.spent
    assert read_verdict(tmp_path / "there.db").summary() == there.summary()


def test_few_learners_at_once_are_few_actors(ray, tmp_path, monkeypatch):
    learners = {f"{k}": kept(0.5 + k / 10, 4 + k) for k in range(4)}
    most, start = [], ray_actors.ActorPool.start

    def starting(pool, *words):
        start(pool, *words)
        most.append(len(pool.workers))

    monkeypatch.setattr(ray_actors.ActorPool, "start", starting)
    here = run(learners, 60, tmp_path / "here.db", "local", horizon=99)
    there = run(learners, 60, tmp_path / "there.db", RayRunner(max_in_memory=2), horizon=99)
    assert there.summary() == here.summary() and max(most) == 2
    assert rows(tmp_path / "there.db") == rows(tmp_path / "here.db")
    more = {"budget": 100, "add": {"new": kept(0.95, 3)}, "progress": False}
    want = resume(tmp_path / "here.db", learners, **more)
    have = resume(tmp_path / "there.db", learners, **more)
    assert have.summary() == want.summary() and max(most) == 2 and have.spent == 100


def test_it_keeps_the_contract_of_runners(ray):
    assert len(check_runner(RayRunner)) == 4


@pytest.mark.parametrize("policy", ["r-ucbe", "ucb-e:exploration=1", "prob-1"])
def test_index_policies_keep_several_arms_busy(ray, path, policy):
    verdict = run(LEARNERS, 90, path, RayRunner(batch=2), policy=policy)
    assert verdict.spent == 90 and read_verdict(path).summary() == verdict.summary()
    first = "kind = 'BatchIssued' AND NOT json_extract(data, '$.more')"
    assert {size for (size,) in rows(path, f"SELECT value FROM changes WHERE {first}")} == {2}


def test_an_index_policy_does_not_wait_for_the_slowest(ray, tmp_path):
    gate, path = tmp_path / "gate", tmp_path / "race.db"
    os.mkfifo(gate)
    slow = acts(5, gate.read_text, 0.9)  # until another learner is far ahead
    quick = acts(30, lambda: gate.write_text("go"), 1.0)
    learners = {"slow": slow, "quick": quick, "low": stream(0.3, 3)}
    how, policy = RayRunner(batch=2, timeout=60), "r-ucbe:noise=0.01,exploration=1"
    verdict = run(learners, 100, path, how, policy=policy)
    assert verdict.spent == 100 and read_verdict(path).summary() == verdict.summary()
    assert not [arm for arm in verdict.learners if arm.state == "failed"]
    assert rows(path, "SELECT count(*) FROM changes WHERE json_extract(data, '$.more')")[0][0] > 20


def test_the_winner_comes_back_and_objects_and_a_ray_that_runs_are_left_alone(ray, tmp_path):
    learners = {"a": Rising(1.0, 3), "b": Rising(0.5, 3)}
    verdict = run(learners, 40, tmp_path / "race.db")
    assert verdict.name == "a" and verdict.learner.n == verdict.pulls["a"]
    assert learners["a"].n == 0 and verdict.learner is not learners["a"]
    assert ray.is_initialized()
    whole = RayRunner(resources={"num_cpus": 4})  # there is room once the first has given back
    assert run(learners, 60, tmp_path / "other.db", whole).spent == 60


class Homesick(Rising):
    """Cannot be pickled where it was trained or, as with a GPU, unpickled here."""

    def __init__(self, best, home, savable=True):
        super().__init__(best, 3)
        self.home, self.save = home, self.save if savable else None

    def __getstate__(self):
        if self.home is None:
            raise TypeError("not picklable")
        return vars(self) | {"save": None}

    def __setstate__(self, state):
        if os.getpid() == state["home"]:
            raise RuntimeError("no such device")


@pytest.mark.parametrize("stuck, savable", [(False, True), (True, True), (True, False)])
def test_a_winner_that_cannot_be_pickled_is_restored(ray, tmp_path, stuck, savable):
    home = os.getpid() if stuck else None
    learners = {f"{best}": partial(Homesick, best, home, savable) for best in (1.0, 0.5)}
    verdict = run(learners, 40, tmp_path / "race.db")
    assert verdict.name == "1.0" and verdict.spent == 40
    if savable:
        assert verdict.learner.n == verdict.pulls["1.0"]
    else:
        assert verdict.learner is None
        said = read_verdict(tmp_path / "race.db").warnings
        assert any("cannot be returned (RuntimeError: no such" in text for text in said)


def test_a_winner_that_cannot_come_back_is_said(ray, tmp_path):
    verdict = run({"a": rising(1.0), "b": rising(0.5)}, 40, tmp_path / "race.db")
    assert verdict.learner is None and verdict.name == "a"
    first, second, last = rows(tmp_path / "race.db", "SELECT why, t FROM changes")
    for why, pulls in (first, second):  # long before the budget is spent
        assert "it yields only scores" in why and pulls < 40
    assert "cannot be returned (TypeError: cannot pickle 'generator' object)" in last[0]


def test_a_pull_that_takes_too_long_is_ended_with_its_process(ray, tmp_path, monkeypatch):
    monkeypatch.setattr(ray_actors, "GRACE", 0.5)
    hangs = acts(4, lambda: threading.Event().wait())
    learners = {"a": hangs, "b": stream(0.5, 3), "c": stream(0.4, 3)}
    verdict = run(learners, 60, tmp_path / "race.db", RayRunner(timeout=0.5, retries=0))
    assert verdict["a"].state == "failed" and verdict["a"].pulls == 3 and verdict.spent == 60
    assert verdict["a"].why == "pull 4 failed once: a pull took longer than timeout=0.5 s"


def test_a_timeout_covers_building_pulls_and_saving_but_not_the_start_of_a_process():
    context = RunnerContext((), None, None, None)
    pool = ray_actors.ActorPool(None, None, context, None, RayRunner(timeout=60))
    calls = (Call.START, Call.RESTORE, Call.TRAIN, Call.SAVE)
    for arm, call in enumerate(calls):
        pool.workers[arm] = ray_actors.Worker(arm, None, None, 0, call=call, sent=-1e9)
    assert [worker.call for worker, _, _ in pool.overdue()] == list(calls[1:])


def test_a_learner_that_exits_or_dies_is_out_and_the_race_goes_on(ray, tmp_path):
    learners = {
        "stays": kept(1.0, 3),
        "exits": acts(2, lambda: sys.exit(3)),
        "dies": acts(2, lambda: os.kill(os.getpid(), signal.SIGKILL)),
    }
    verdict = run(learners, 120, tmp_path / "race.db", RayRunner(retries=0))
    assert verdict["exits"].why == "pull 2 failed once: SystemExit: 3"
    assert verdict["dies"].why == "pull 2 failed 6 times: its process was lost (ActorDiedError)"
    assert verdict.spent == 120


def test_a_phase_says_who_it_waits_for(ray, tmp_path, monkeypatch):
    gate, said = tmp_path / "gate", []
    os.mkfifo(gate)

    def waits(self, event):
        if isinstance(event, Waiting) and event.arms == (0,) and not said:
            said.append("a")
            threading.Thread(target=gate.write_text, args=("go",)).start()  # ends when it is read

    monkeypatch.setattr(NoDisplay, "on_event", waits)
    monkeypatch.setattr(ray_actors, "LATE", 0.1)
    for name, value in (("TICK", 0.05), ("EVERY", 0.0)):
        monkeypatch.setattr(ray_runner, name, value)
    learners = {"a": acts(5, gate.read_text), "b": stream(0.5, 3), "c": stream(0.4, 3)}
    assert run(learners, 60, tmp_path / "race.db").spent == 60 and said == ["a"]


class Elsewhere:
    """A cluster of one node with eight GPUs and twelve cores."""

    def nodes(self):
        return [{"Resources": {"CPU": 12.0, "GPU": 8.0}}]

    def room(self, wanted):
        return 1


def slots_for(*wanted):
    found = ray_slots.Slots(Elsewhere(), wanted)
    for kind, fit in found._counts().items():
        first = len(found.slots)
        found.slots += [ray_slots.Slot(None, first + k, kind, "n") for k in range(fit)]
    return found


def test_several_gpus_have_one_learner_and_one_gpu_is_shared_in_turns():
    found = slots_for(*[{"CPU": 1, "GPU": 4}] * 3)
    first, second = found.assign(0), found.assign(1)
    assert first is not second and found.is_full(2) and found.assign(2) is None
    found.vacate(0)
    assert found.assign(0, avoid=first) is first  # the only one that is free
    found = slots_for(*[{"CPU": 6, "GPU": 1}] * 4)
    given = [found.assign(arm) for arm in range(4)]
    assert [slot.number for slot in given] == [0, 1, 0, 1]
    found.vacate(0)
    assert found.assign(0, avoid=given[0]).number == 1  # one that was lost goes elsewhere
    room = found.free([given[1]])
    assert room[given[0].key] == 1 and room[given[1].key] == 0


def test_learners_with_their_own_resources_have_their_own_slots():
    small, big = {"CPU": 1}, {"CPU": 4, "GPU": 1}
    found = slots_for(*[small] * 9, big, big)
    assert {kind.gpus: count for kind, count in found._counts().items()} == {0: 4, 1: 2}
    assert {found.assign(arm).kind.gpus for arm in range(9)} == {0}
    assert {found.assign(arm).kind.gpus for arm in (9, 10)} == {1}
    with pytest.raises(ClusterError, match="no room for a learner that needs 5 CPU next to the"):
        slots_for({"CPU": 9}, {"CPU": 5})
    for learners, share in ((1, 1.0), (3, 0.3333), (8, 0.125), (20_000, 1e-4)):
        found = ray_slots.Kind((("CPU", 1),), learners).share("CPU", 1)  # all fit into one slot
        assert found == pytest.approx(share) and (found * learners <= 1 or learners > 10_000)


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_checkpoints_go_to_the_storage_and_come_back_from_it(ray, tmp_path, scheme):
    place, path = tmp_path / "shared", tmp_path / "race.db"
    storage = f"{scheme}{place}"
    first = run(PAIR, 60, path, RayRunner(storage=storage, checkpoint_every=5))
    assert len(list(place.iterdir())) == 1  # the race's id
    assert not Path(f"{path}.checkpoints").exists()
    assert {file.name for file in place.rglob("*.json")} == {"state.json", NUMBERS}
    saved = rows(path, "SELECT arm, n FROM checkpoints ORDER BY arm")
    assert (first.history.names.index("a"), first.pulls["a"]) in saved
    again = resume(path, PAIR, runner=RayRunner(storage=storage), progress=False)
    assert pickle.dumps(again.learner) == pickle.dumps(first.learner)


@pytest.mark.parametrize(
    "storage",
    [
        Folder,
        lambda root: Remote(f"file://{root}"),  # pyarrow's own
        lambda root: Remote(f"memory://{root}"),  # fsspec's
    ],
    ids=["folder", "pyarrow", "fsspec"],
)
def test_a_storage_keeps_folders_whole_or_not_at_all(tmp_path, storage):
    store = storage(str(tmp_path / "store"))

    def fill(folder):
        (folder / "deep").mkdir()
        (folder / "deep" / "a").write_bytes(b"12")
        (folder / "b").write_bytes(b"3")

    def fails(folder):
        (folder / "half").write_bytes(b"1")
        raise OSError("no space left on device")

    stored = store.keep("0001/5", fill)
    with store.fetched("0001/5", stored.digest) as folder:
        assert stored.size == 3 and (folder / "deep" / "a").read_bytes() == b"12"
    with store.fetched("0001/5", "another") as folder:
        assert folder is None
    with pytest.raises(OSError, match="no space"):
        store.keep("0001/6", fails)
    store.keep("0001/7", fill)
    assert [store.has(f"0001/{n}") for n in (5, 6, 7)] == [True, False, True]
    store.drop_all_but("0001/7")
    assert [store.has(f"0001/{n}") for n in (5, 7)] == [False, True]
    store.drop("0001")
    assert not store.has("0001/7")


@pytest.mark.parametrize(
    "how, error, text",
    [
        ({}, LearnerError, "'locked' cannot be sent to another process"),
        ({"resources": {"num_cpus": 64}}, ClusterError, "asks for 64 CPU, but no node"),
        ({"resources": {"num_cpus": 1, "num_gpus": 1}}, ClusterError, "4 CPU, 0 GPU"),
        ({"storage": "/proc/nowhere"}, ClusterError, "/proc/nowhere/.*, cannot be written from"),
        ({"storage": "no-such://x"}, ClusterError, "no-such://x/.*, cannot be written from"),
        ({"address": "127.0.0.1:9"}, ClusterError, "this program is connected to Ray at"),
        ({"learner_resources": {"big": {"num_gpus": 1}}}, SettingError, "names big, but"),
    ],
)
def test_what_cannot_work_is_said_before_the_first_pull(ray, tmp_path, how, error, text):
    lock = threading.Lock()
    learners = LEARNERS if how else LEARNERS | {"locked": lambda: lock}
    with pytest.raises(error, match=text):
        run(learners, 60, tmp_path / "race.db", RayRunner(**how))
    assert rows(tmp_path / "race.db") == []  # so that the next race may use the file


@pytest.mark.parametrize(
    "settings, text",
    [
        ({"resources": 3}, "resources=3, but resources must be a dict"),
        ({"resources": {"num_cpus": -1}}, r"resources\['num_cpus'\]=-1, .* must be at least 0"),
        ({"storage": ""}, "storage='', but storage must be a folder"),
        ({"batch": 0}, "batch=0, but batch must be at least 1"),
        ({"cores": 0}, "cores=0, but cores must be at least 1"),
        ({"address": " "}, "address=' ', but address must be None, 'auto' or like"),
        ({"learner_resources": {"big": 1}}, r"learner_resources\['big'\]=1, but"),
        ({"learner_resources": ["big"]}, "learner_resources must be a dict of names"),
        ({"learner_resources": {"big": {"num_gpus": -1}}}, "must be at least 0"),
    ],
)
def test_settings_out_of_range(settings, text):
    with pytest.raises(SettingError, match=text):
        RayRunner(**settings)
