"""One text, several targets: what `lower` hands out."""

import dis

from latebloomer.core import moves
from latebloomer.core.compiling import cpu_jit
from latebloomer.core.kernel import globals_of, kernel, lower, plain


@kernel
def twice(x: float) -> float:
    return 2.0 * x


@kernel
def four_times(x: float) -> float:
    return twice(twice(x))


def test_a_kernel_is_the_same_function_on_every_target():
    for jit in (plain, cpu_jit()):
        assert lower(four_times, jit)(3.0) == four_times(3.0) == 12.0


def test_a_kernel_under_others_can_be_called_from_python_too():
    """In the cache on disk they are two: the one that only kernels call has no door to Python."""
    inner = lower(four_times, cpu_jit()).py_func.__globals__["twice"].py_func
    outer = lower(twice, cpu_jit())
    assert inner.__qualname__ != outer.py_func.__qualname__
    assert outer(3.0) == 6.0


def test_the_name_of_a_copy_changes_with_the_code_under_it():
    @kernel
    def thrice(x: float) -> float:
        return 3.0 * x

    assert lower(four_times, plain).__qualname__ == lower(four_times, plain).__qualname__
    other = lower(four_times, plain, twice=thrice)
    assert other(3.0) == 27.0 and other.__qualname__ != lower(four_times, plain).__qualname__


def test_the_globals_of_a_function_are_those_that_python_says():
    """Also beyond 256 names, and never what is only an attribute."""
    attributes = " + ".join(f"x.y{k}" for k in range(300))
    written = {}
    exec(f"def many(x):\n    return {attributes} + late(x.early)\n", written)
    functions = [written["many"], lower, four_times]
    functions += [fn for fn in vars(moves).values() if getattr(fn, "__kernel__", False)]
    assert globals_of(written["many"]) == {"late"} and len(functions) > 8
    for fn in functions:
        instructions = dis.get_instructions(fn)
        said = {one.argval for one in instructions if one.opname == "LOAD_GLOBAL"}
        assert globals_of(fn) == said
