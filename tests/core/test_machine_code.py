"""Compiled code on disk: found again, never when it is of other sources, left out where unfit."""

import os
import subprocess
import sys
import types
from functools import partial
from math import sqrt

import numpy as np
import pytest

from latebloomer.core import machine_code
from latebloomer.core.kernel import kernel, lower, plain
from latebloomer.core.machine_code import CodeFile, MachineCode
from latebloomer.errors import MissingExtra

SCALE = 3.0
NUMBER = np.int64(3)
PAIR = (np.array([1.0, 2.0]), 5)
MODULE = types.ModuleType("settings")
MODULE.SCALE = 3.0
LARGE = np.arange(200_000.0)  # numba takes it by its address in this process


@kernel
def step(x, by=1.0):
    return x + by


@kernel
def fill(out, x):
    for i in range(len(out)):
        out[i] = SCALE * step(sqrt(x))


@kernel
def fill_from_large(out, x):
    out[:] = LARGE[int(x)]


@kernel
def fill_from_many(out, many):
    out[:] = many[999]


@kernel
def fill_or_raise(out, x):
    if x < 0.0:
        raise ValueError("below zero")
    out[:] = x


def code_of(fn, **bound):
    return MachineCode(partial(lower, fn, **bound))


def filled(code, x=4.0):
    out = np.zeros(3)
    code(out, x)
    return out.tolist()


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """Folders of this test's own; what is in them."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(machine_code.Path, "home", lambda: tmp_path / "home")
    return lambda: sorted(tmp_path.rglob("*.code"))


@pytest.fixture
def no_numba(monkeypatch):
    """From here on nothing is compiled, and nothing is left to numba."""

    def forbid():
        def forbidden():
            pytest.fail("asked numba")

        monkeypatch.setattr(machine_code, "inner_jit", forbidden)
        monkeypatch.setattr(machine_code, "cpu_jit", forbidden)

    return forbid


def test_what_was_compiled_once_is_found_and_does_the_same(cache, no_numba):
    assert filled(code_of(fill)) == [9.0] * 3
    no_numba()
    code = code_of(fill)
    assert filled(code) == filled(code) == [9.0] * 3 and len(cache()) == 1
    out = np.zeros(2)
    code.with_first(out)(0.0)
    assert out.tolist() == [3.0] * 2


def other_step(x, by=1.0):
    return x - by


def other_default(x, by=2.0):
    return x + by


@pytest.mark.parametrize(("other", "expected"), [(other_step, 3.0), (other_default, 12.0)])
def test_a_changed_kernel_under_it_is_compiled_anew(cache, other, expected):
    filled(code_of(fill))
    assert filled(code_of(fill, step=kernel(other))) == [expected] * 3 and len(cache()) == 2


@kernel
def fill_with_number(out, x):
    out[:] = NUMBER


@kernel
def fill_with_pair(out, x):
    out[:] = PAIR[0][1]


@kernel
def fill_with_attribute(out, x):
    out[:] = MODULE.SCALE


@pytest.mark.parametrize(
    ("fn", "name", "value"),
    [
        (fill, "SCALE", 4.0),
        (fill_with_number, "NUMBER", np.int64(4)),
        (fill_with_pair, "PAIR", (np.array([1.0, 2.5]), 5)),
    ],
)
def test_a_changed_constant_gives_another_name(monkeypatch, fn, name, value):
    before = lower(fn, plain).__qualname__
    monkeypatch.setitem(globals(), name, value)
    assert lower(fn, plain).__qualname__ != before


def test_so_does_a_changed_constant_of_a_module(monkeypatch):
    before = lower(fill_with_attribute, plain).__qualname__
    monkeypatch.setattr(MODULE, "SCALE", 4.0)
    assert lower(fill_with_attribute, plain).__qualname__ != before


OWN = """
import numpy as np
from latebloomer.core.kernel import kernel, lower
from latebloomer.core.machine_code import MachineCode

@kernel
def step(x):
    return x + 1.0

@kernel
def fill(out, x):
    out[0] = step(x)

out = np.zeros(1)
MachineCode(lambda jit: lower(fill, jit))(out, 4.0)
import sys
print(out[0], "numba" in sys.modules)
"""


def test_an_edited_file_of_a_users_is_never_run_from_old_code(tmp_path):
    """Though neither its size nor its time tells that it was edited."""
    own = tmp_path / "own.py"
    said = []
    for text in (OWN, OWN, OWN.replace("x + 1.0", "x - 1.0"), OWN):
        own.write_text(text)
        os.utime(own, (1e9, 1e9))
        ran = subprocess.run([sys.executable, own], capture_output=True, text=True, check=True)
        said.append(ran.stdout.strip())
    assert said == ["5.0 True", "5.0 False", "3.0 True", "5.0 False"]


def test_other_types_are_other_code(cache):
    code = code_of(fill)
    for kind in (np.float64, np.float32):
        out = np.zeros(6, kind)[::2]
        code(out, 4.0)
        code(out.copy(), 4)
        assert out.tolist() == [9.0] * 3
    assert len(cache()) == 4


@pytest.mark.parametrize("variable", ["NUMBA_OPT", "NUMBA_NUM_THREADS"])
def test_settings_of_numbas_that_change_code_are_other_code(monkeypatch, cache, variable):
    filled(code_of(fill))
    monkeypatch.setenv(variable, "1")
    filled(code_of(fill))
    assert len(cache()) == (2 if variable == "NUMBA_OPT" else 1)


def test_another_version_of_numba_is_other_code(monkeypatch, cache):
    filled(code_of(fill))
    monkeypatch.setattr(machine_code, "_numba_version", lambda: b"another")
    filled(code_of(fill))
    assert len(cache()) == 2


@pytest.mark.parametrize("left", [0, 9, -9])
def test_a_damaged_file_is_compiled_anew(cache, no_numba, left):
    filled(code_of(fill))
    (file,) = cache()
    file.write_bytes(file.read_bytes()[:left])
    assert filled(code_of(fill)) == [9.0] * 3
    assert CodeFile.from_bytes(file.read_bytes()) is not None
    no_numba()
    assert filled(code_of(fill)) == [9.0] * 3


def test_where_no_folder_can_be_written_code_is_compiled_all_the_same(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    monkeypatch.setattr(machine_code.Path, "home", lambda: tmp_path / "file")
    assert filled(code_of(fill)) == [9.0] * 3


def test_what_the_sources_folder_cannot_hold_is_in_the_users(monkeypatch, cache, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    filled(code_of(fill))
    assert [file.parent for file in cache()] == [tmp_path / "home" / ".cache" / "latebloomer"]


def test_an_error_in_a_kernel_is_an_error(cache):
    code = code_of(fill_or_raise)
    assert filled(code) == [4.0] * 3
    with pytest.raises(ValueError, match="below zero"):
        filled(code, -1.0)
    assert filled(code, 2.0) == [2.0] * 3


@pytest.mark.filterwarnings("ignore:Cannot cache compiled function")
def test_addresses_of_this_process_are_in_no_file(cache):
    assert filled(code_of(fill_from_large)) == [4.0] * 3
    assert cache() == []


def test_other_arguments_are_left_to_numba(cache):
    code = code_of(fill_or_raise)
    assert filled(code, np.float32(4.0)) == [4.0] * 3
    assert filled(code, True) == [1.0] * 3
    assert filled(code, 2**63) == [2.0**63] * 3
    assert filled(code_of(fill_from_many), tuple(range(1000))) == [999.0] * 3
    assert cache() == []


def test_a_numba_that_passes_arguments_otherwise_is_left_alone(cache, monkeypatch):
    taken = machine_code._words_taken
    monkeypatch.setattr(machine_code, "_words_taken", lambda function: taken(function)[::-1])
    assert filled(code_of(fill)) == [9.0] * 3
    assert cache() == []


def test_code_that_calls_what_is_not_there_is_left_to_numba(cache, monkeypatch):
    """LLVM would end the process."""
    filled(code_of(fill))
    (file,) = cache()
    found = CodeFile.from_bytes(file.read_bytes())
    file.write_bytes(found._replace(calls=["no_such_function"]).to_bytes())
    assert filled(code_of(fill)) == [9.0] * 3


def test_without_numba_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(MissingExtra, match=r"pip install 'latebloomer\[sim\]'"):
        filled(code_of(fill))


def test_where_numba_does_not_compile_nothing_is_kept(monkeypatch, cache):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert filled(code_of(fill)) == [9.0] * 3 and cache() == []
