"""One text, several targets: what `lower` returns, and what a kernel may use."""

import math
import os
import subprocess
import sys
import types
from math import sqrt
from typing import NamedTuple

import numpy as np
import pytest

from latebloomer.core.kernel import cpu_jit, kernel, lower, numpy_kernel, plain
from latebloomer.errors import ContractError, MissingExtra


class Point(NamedTuple):
    x: float
    y: float = 1.0


SCALE = 3.0
NUMBER = np.int64(3)
PAIR = (np.array([1.0, 2.0]), 5)
TABLE = {"a": 1.0}


@kernel
def step(x, by=1.0):
    return x + by


@kernel
def scaled(x):
    return SCALE * step(math.sqrt(x)) + sqrt(x)


def compiled_name(fn, bound=None, **owners):
    """The name under which the cache on disk has the compiled copy."""
    return lower(fn, lambda copy: copy, bound or {}, owners=owners).__qualname__


def test_a_kernel_is_the_same_function_on_every_target():
    for jit in (plain, cpu_jit()):
        assert lower(scaled, jit)(4.0) == scaled(4.0) == 11.0
    assert lower(scaled, plain, {step: kernel(lambda x: 0.0)})(4.0) == 2.0  # bound in its place
    assert lower(numpy_kernel(lambda x: np.sqrt(x)), cpu_jit())(4.0) == 2.0
    # In the cache on disk they are two: Python cannot call the one that only kernels call.
    inner = lower(scaled, cpu_jit()).py_func.__globals__["step"].py_func
    outer = lower(step, cpu_jit())
    assert inner.__qualname__ != outer.py_func.__qualname__
    assert outer(3.0) == 4.0


@pytest.mark.parametrize("other", [lambda x, by=1.0: x - by, lambda x, by=2.0: x + by])
def test_changed_code_under_a_kernel_changes_its_name(other, monkeypatch):
    before = compiled_name(scaled)
    assert compiled_name(scaled) == before
    assert compiled_name(scaled, {step: kernel(other)}) != before
    monkeypatch.setattr(step, "__module__", "elsewhere")
    assert compiled_name(scaled) != before  # its cache file refers to the module of `step`


class OtherPoint(NamedTuple):
    x: float
    y: float = 2.0


OtherPoint.__qualname__ = "Point"


@pytest.mark.parametrize(
    ("fn", "name", "value"),
    [
        (scaled, "SCALE", 4.0),
        (scaled, "SCALE", 3),  # an integer is compiled to other code
        (lambda x: x + NUMBER, "NUMBER", np.int64(4)),
        (lambda x: x + NUMBER, "NUMBER", np.int32(3)),
        (lambda x: x + PAIR[0][1], "PAIR", (np.array([1.0, 2.5]), 5)),
        (lambda x: Point(x).y, "Point", OtherPoint),
    ],
)
def test_a_changed_constant_changes_the_name(monkeypatch, fn, name, value):
    before = compiled_name(kernel(fn))
    monkeypatch.setitem(globals(), name, value)
    assert compiled_name(fn) != before


def test_a_kernel_that_takes_a_policys_numbers_is_named_after_the_policy():
    takes_game = kernel(lambda game, x: x)
    assert compiled_name(takes_game, game="one") != compiled_name(takes_game, game="other")
    assert compiled_name(step, game="one") == compiled_name(step, game="other")


HELPER = """
from latebloomer.core.kernel import kernel

@kernel
def helper(x):
    return x + 1.0
"""
PROGRAM = """
from helpers import helper
from latebloomer.core.kernel import cpu_jit, kernel, lower

@kernel
def called(x):
    return helper(x)

called = lower(called, cpu_jit())
print(called(4.0), len(called.stats.cache_hits))
"""


def test_an_edited_helper_in_another_module_is_never_run_from_old_code(tmp_path):
    """Though neither its size nor its time tells that it was edited."""
    (tmp_path / "program.py").write_text(PROGRAM)
    said = []
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    for text in (HELPER, HELPER.replace("x + 1.0", "x - 1.0"), HELPER):
        helpers = tmp_path / "helpers.py"
        helpers.write_text(text)
        os.utime(helpers, (1e9, 1e9))
        command = [sys.executable, tmp_path / "program.py"]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        said.append(ran.stdout.strip())
    assert said == ["5.0 0", "3.0 0", "5.0 1"]


def unmarked(x):
    return x


recursive = kernel(lambda x: recursive(x - 1))


def closure(factor):
    return lambda x: factor * x


REFUSED = {
    r"uses unmarked \(function\).*@kernel": lambda x: unmarked(x),
    r"uses types \(module\)": lambda x: types.SimpleNamespace(x=x),
    r"uses TABLE \(dict\)": lambda x: TABLE["a"],
    r"uses np \(module\)": lambda x: np.sqrt(x),
    r"uses sorted \(builtin\)": lambda x: sorted(x),
    r"uses compiled_name \(": lambda x: compiled_name(x),
    r"lambda> uses variables .* Use loops, named parameters and kernels of a module": closure(2.0),
    r"takes \*args": lambda *values: values[0],
    r"a comprehension .* Use loops": lambda x: sum([y for y in x]),
    r"a default that is not a number": lambda x, how="up": x,
    "calls itself": recursive,
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_the_digest_cannot_cover_is_refused_when_compiled(words):
    with pytest.raises(ContractError, match=words):
        compiled_name(kernel(REFUSED[words]))


def test_attributes_may_have_any_name():
    found = lower(kernel(lambda x: x.unmarked + x.sorted + x.step), lambda copy: copy)
    assert found(types.SimpleNamespace(unmarked=1, sorted=2, step=3)) == 6


def test_without_numba_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    cpu_jit.cache_clear()
    with pytest.raises(MissingExtra, match=r"pip install .*\[sim\]'"):
        cpu_jit()
