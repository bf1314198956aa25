"""Generator learners share a process, not its random numbers nor PyTorch's modes."""

import gc
import os
import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import repeat

import numpy as np
import pytest

from latebloomer import LocalRunner, race, resume
from tests.helpers.libraries import library

torch = library("torch")
torch.set_num_threads(1)


def line(rate):
    """A net that learns the number 3; it yields where gradients are switched off."""

    def train(seed):
        torch.manual_seed(seed)
        net = torch.nn.Linear(1, 1)
        optimizer = torch.optim.SGD(net.parameters(), rate)
        while True:
            loss = (net(torch.ones(1, 1)) - 3).pow(2).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                yield -loss.item(), net

    return train


def test_a_generator_that_yields_without_gradients_leaves_them_on_for_the_others():
    with torch.set_grad_enabled(True):
        verdict = race({"a": line(0.01), "b": line(0.1)}, 20, journal=None, progress=False)
        assert verdict["b"].state != "failed"
        assert verdict.name == "b" and torch.is_grad_enabled()


DRAWS = [random.random, np.random.random, lambda: torch.rand(1).item()]


@pytest.mark.parametrize("draw", DRAWS, ids=["random", "numpy", "torch"])
def test_curves_do_not_depend_on_the_order_of_learners(draw):
    def noisy(seed):
        random.seed(seed)
        np.random.seed(seed % 2**32)
        torch.manual_seed(seed)
        while True:
            yield draw()

    names = ["one", "two", "three"]
    there = race(dict.fromkeys(names, noisy), 15, journal=None, progress=False)
    back = race(dict.fromkeys(names[::-1], noisy), 15, journal=None, progress=False)
    for name in names:
        shared = min(there.pulls[name], back.pulls[name])
        assert there.curve(name)[:shared] == back.curve(name)[:shared]


@contextmanager
def double_precision():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


CHANGES = [torch.no_grad, torch.inference_mode, partial(torch.autocast, "cpu"), double_precision]


def modes():
    return (
        torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.get_default_dtype(),
        torch.is_autocast_enabled("cpu"),
    )  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=["grad", "inference", "autocast", "dtype"])
def test_a_learner_keeps_the_modes_that_it_sets_and_no_other_has_them(change):
    seen = {"changes": [], "plain": []}

    def changes():
        with change():
            while True:
                seen["changes"].append(modes())
                yield 0.5

    def plain():
        while True:
            seen["plain"].append(modes())
            yield 0.5

    before = modes()
    race({"changes": changes, "plain": plain}, 8, policy="rr-sw", journal=None, progress=False)
    assert set(seen["plain"]) == {before} == {modes()}
    (own,) = set(seen["changes"])
    assert len(seen["changes"]) == 4 and own != before


def test_a_generator_that_is_dropped_leaves_the_modes_of_the_others_alone():
    def learner(rate):
        def train():
            weight = torch.zeros(1, requires_grad=True)
            with torch.no_grad():
                while True:
                    with torch.enable_grad():
                        (slope,) = torch.autograd.grad((weight - 3).pow(2).sum(), weight)
                    weight -= rate * slope  # an error if gradients are on
                    yield -abs(weight.item() - 3)

        return train

    rates = {str(rate): learner(rate) for rate in (0.001, 0.01, 0.1, 0.2)}
    verdict = race(rates, 60, journal=None, progress=False)
    assert not any(one.failures for one in verdict.learners)


def test_copies_of_weights_within_autocast_are_not_kept_for_other_learners():
    def rounded():
        with torch.autocast("cpu"):
            yield from repeat(-5.0)

    def net(seed):
        torch.manual_seed(seed)
        layer = torch.nn.Linear(1, 1)
        optimizer = torch.optim.SGD(layer.parameters(), 0.1)
        while True:
            with torch.autocast("cpu"):
                loss = (layer(torch.ones(1, 1)) - 3).pow(2).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            yield -loss.item()

    own = {"policy": "rr-sw", "journal": None, "progress": False}
    alone = race({"net": net, "b": net}, 8, **own)
    beside = race({"net": net, "b": net, "rounded": rounded}, 12, **own)
    assert alone.curve("net") == beside.curve("net")
    with torch.autocast("cpu"):
        assert race({"net": net, "b": net}, 8, **own).curve("net") == alone.curve("net")


@pytest.mark.parametrize("runner", [LocalRunner(), LocalRunner(timeout=60)])
@pytest.mark.parametrize("change", CHANGES[:3], ids=["grad", "inference", "autocast"])
def test_modes_of_the_program_are_as_they_were(change, runner):
    with change():
        before = modes()
        learners = {name: partial(iter, [0.1, 0.2, 0.3]) for name in "ab"}
        race(learners, 4, runner=runner, journal=None, progress=False)
        assert modes() == before


def test_a_winner_that_waits_in_a_mode_leaves_the_program_as_it_was():
    def waits():
        with torch.inference_mode():
            yield from repeat(0.5)

    before = modes()
    verdict = race({"waits": waits, "b": waits}, 8, journal=None, progress=False)
    gc.collect()
    assert modes() == before
    del verdict
    gc.collect()
    assert modes() == before


class Drawing:
    """Saves its pulls alone."""

    n = 0

    def pull(self):
        self.n += 1
        return self.n + torch.rand(1).item()

    def save(self, folder):
        torch.rand(3)
        (folder / "n").write_text(str(self.n))

    def load(self, folder):
        self.n = int((folder / "n").read_text())


def test_a_checkpoint_holds_pytorchs_random_numbers(tmp_path):
    def stop(event, view):
        torch.rand(1)  # of the program's own
        if view.spent == 13 and interrupted:
            raise KeyboardInterrupt

    learners, runner = {"a": Drawing, "b": Drawing}, LocalRunner(checkpoint_every=2)
    interrupted = []
    calm = race(learners, 30, journal=None, progress=False, runner=runner)
    interrupted.append(True)
    with pytest.raises(KeyboardInterrupt):
        race(learners, 30, journal=tmp_path / "race.db", progress=False, runner=runner,
             callbacks=[stop])  # fmt: skip
    again = resume(tmp_path / "race.db", learners, progress=False)
    assert [again.curve(name) for name in "ab"] == [calm.curve(name) for name in "ab"]


@pytest.mark.parametrize("timeout", [None, 60])
def test_races_in_several_threads_keep_numbers_and_modes_apart(timeout):
    """The modes belong to threads, the numbers to the process."""

    def scores(name):
        learners = {"net": line(0.01), "draws": Drawing, "third": Drawing}
        runner = LocalRunner(timeout=timeout)
        verdict = race(learners, 30, journal=None, progress=False, runner=runner)
        return [verdict.curve(name) for name in learners], modes()

    alone = scores(0)
    with ThreadPoolExecutor(3) as threads:
        assert list(threads.map(scores, range(6))) == [alone] * 6


def test_keras_settings_of_a_learner_are_not_those_of_the_next():
    os.environ.setdefault("KERAS_BACKEND", "torch")
    keras = library("keras")
    seen = {}

    def learner(name, policy):
        def build():
            if policy is not None:
                keras.config.set_dtype_policy(policy)
                keras.config.set_floatx("float64")
            for n in range(10):
                now = keras.config.dtype_policy().name, keras.config.floatx()
                seen.setdefault(name, set()).add(now)
                yield n / 10

        return build

    for order in (("plain", "mixed"), ("mixed", "plain")):
        seen.clear()
        policies = {"plain": None, "mixed": "mixed_bfloat16"}
        race(
            {name: learner(name, policies[name]) for name in order},
            12,
            journal=None,
            progress=False,
        )
        assert seen == {
            "plain": {("float32", "float32")},
            "mixed": {("mixed_bfloat16", "float64")},
        }
        assert (keras.config.dtype_policy().name, keras.config.floatx()) == ("float32", "float32")


def test_steps_of_an_accumulation_are_each_learner_s_own():
    accelerate = library("accelerate", "transformers")

    def learner(steps):
        def build():
            own = accelerate.Accelerator(gradient_accumulation_steps=steps, cpu=True)
            while True:
                yield own.gradient_accumulation_steps

        return build

    for order in ((1, 4), (4, 1)):
        verdict = race(
            {str(steps): learner(steps) for steps in order},
            12,
            policy="rr",
            journal=None,
            progress=False,
        )
        assert {name: set(verdict.curve(name)) for name in "14"} == {"1": {1.0}, "4": {4.0}}
        assert verdict.warnings == ()  # no pull failed for what was put aside
