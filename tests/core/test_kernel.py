"""One text, several targets: what `lower` returns, and what a kernel may use."""

import math
import os
import subprocess
import sys
import types
from functools import cache
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


def compiled_name(fn, **bound):
    """The name under which the cache on disk has the compiled copy."""
    return lower(fn, lambda copy: copy, **bound).__qualname__


def test_a_kernel_is_the_same_function_on_every_target():
    for jit in (plain, cpu_jit()):
        assert lower(scaled, jit)(4.0) == scaled(4.0) == 11.0


def test_a_kernel_under_others_can_be_called_from_python_too():
    """In the cache on disk they are two: Python cannot call the one that only kernels call."""
    inner = lower(scaled, cpu_jit()).py_func.__globals__["step"].py_func
    outer = lower(step, cpu_jit())
    assert inner.__qualname__ != outer.py_func.__qualname__
    assert outer(3.0) == 4.0


def test_a_bound_kernel_takes_the_place_of_the_one_that_is_named():
    assert lower(scaled, plain, step=kernel(lambda x: 0.0))(4.0) == 2.0


# --- the digest ---


def other_code(x, by=1.0):
    return x - by


def other_default(x, by=2.0):
    return x + by


@pytest.mark.parametrize("other", [other_code, other_default])
def test_changed_code_under_a_kernel_changes_its_name(other):
    assert compiled_name(scaled) == compiled_name(scaled)
    assert compiled_name(scaled, step=kernel(other)) != compiled_name(scaled)


@kernel
def uses_number(x):
    return x + NUMBER


@kernel
def uses_pair(x):
    return x + PAIR[0][1]


@kernel
def makes_point(x):
    return Point(x).y


class OtherPoint(NamedTuple):
    x: float
    y: float = 2.0


OtherPoint.__qualname__ = "Point"


@pytest.mark.parametrize(
    ("fn", "name", "value"),
    [
        (scaled, "SCALE", 4.0),
        (scaled, "SCALE", 3),  # an integer is compiled to other code
        (uses_number, "NUMBER", np.int64(4)),
        (uses_number, "NUMBER", np.int32(3)),
        (uses_pair, "PAIR", (np.array([1.0, 2.5]), 5)),
        (makes_point, "Point", OtherPoint),
    ],
)
def test_a_changed_constant_changes_the_name(monkeypatch, fn, name, value):
    before = compiled_name(fn)
    monkeypatch.setitem(globals(), name, value)
    assert compiled_name(fn) != before


@kernel
def of_a_policy(game, x):
    return x


def test_a_kernel_that_takes_a_policys_numbers_is_named_after_the_policy():
    one, other = (compiled_name(of_a_policy, owner=owner) for owner in ("one", "other"))
    assert one != other
    assert compiled_name(step, owner="one") == compiled_name(step, owner="other")


def test_a_kernel_that_calls_one_that_moved_has_another_name(monkeypatch):
    before = compiled_name(scaled)
    monkeypatch.setattr(step, "__module__", "elsewhere")
    assert compiled_name(scaled) != before  # its cache file refers to the module of `step`


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


# --- what a kernel may use ---


def unmarked(x):
    return x


@kernel
def uses_function(x):
    return unmarked(x)


@kernel
def uses_class(x):
    return types.SimpleNamespace(x=x)


@kernel
def uses_dict(x):
    return TABLE["a"]


@kernel
def uses_numpy(x):
    return np.sqrt(x)


@kernel
def uses_builtin(x):
    return sorted(x)


@kernel
def uses_cached(x):
    return remembered(x)


@cache
def remembered(x):
    return x


@pytest.mark.parametrize(
    ("fn", "used"),
    [
        (uses_function, r"unmarked \(function\)"),
        (uses_class, r"types \(module\)"),
        (uses_dict, r"TABLE \(dict\)"),
        (uses_numpy, r"np \(module\)"),
        (uses_builtin, r"sorted \(builtin\)"),
        (uses_cached, r"remembered \(_lru_cache_wrapper\)"),
    ],
)
def test_what_the_digest_cannot_cover_is_refused_when_compiled(fn, used):
    with pytest.raises(ContractError, match=f"Kernel {fn.__name__} uses {used}.*@kernel"):
        compiled_name(fn)
    lower(fn, plain)


def test_numpy_is_for_kernels_of_one_target():
    assert lower(numpy_kernel(lambda x: np.sqrt(x)), cpu_jit())(4.0) == 2.0


def closure():
    factor = 2.0
    return kernel(lambda x: factor * x)


@kernel
def comprehends(x):
    return sum([y for y in x])


@kernel
def defaults_to_text(x, how="up"):
    return x


@pytest.mark.parametrize("fn", [closure(), comprehends, defaults_to_text])
def test_code_and_values_around_a_kernel_are_refused(fn):
    with pytest.raises(ContractError, match="Use loops and kernels of a module"):
        compiled_name(fn)


@kernel
def recursive(x):
    return recursive(x - 1)


@pytest.mark.parametrize("jit", [plain, lambda copy: copy])
def test_a_kernel_that_calls_itself_is_refused(jit):
    with pytest.raises(ContractError, match="recursive calls itself"):
        lower(recursive, jit)


@kernel
def reads_attributes(x):
    return x.unmarked + x.sorted + x.reads_attributes


def test_attributes_may_have_any_name():
    found = lower(reads_attributes, lambda copy: copy)
    assert found(types.SimpleNamespace(unmarked=1, sorted=2, reads_attributes=3)) == 6


def test_without_numba_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    cpu_jit.cache_clear()
    with pytest.raises(MissingExtra, match=r"pip install 'latebloomer\[sim\]'"):
        cpu_jit()
