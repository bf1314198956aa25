"""The compilers: which `jit` makes which target's code."""

from __future__ import annotations

from functools import cache
from typing import Any

from latebloomer.errors import extra

# What a CPU kernel is compiled with, and why:
CPU_OPTIONS = {
    "cache": True,  # a second process starts at once
    "nogil": True,  # threads play runs side by side
    "error_model": "numpy",  # no check for zero before each division: 70 -> 47 ns per pull
    "forceinline": True,  # a run becomes one function: 229 -> 70 ns per pull (R-UCBE, T = 3200)
    "_nrt": False,  # kernels allocate nothing, so no array is reference-counted: 1227 -> 229 ns
}
# A kernel that only kernels call needs no door to Python or C: 43 -> 29 s to compile 11 policies.
INNER_OPTIONS = CPU_OPTIONS | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


@cache
def cpu_jit() -> Any:
    """numba's compiler for the CPU; `lower` takes its `inner` for what only kernels call."""
    jit: Any = _compiler(CPU_OPTIONS)
    jit.inner = _compiler(INNER_OPTIONS)
    return jit


@cache
def inner_jit() -> Any:
    """The same for kernels that are called as machine code, of which Python needs no wrapper."""
    jit: Any = _compiler(INNER_OPTIONS | {"cache": False})
    jit.inner = _compiler(INNER_OPTIONS)
    return jit


def _compiler(options: dict[str, Any]) -> Any:
    numba = extra("numba", "simulations", "sim")
    cached, uncached = numba.njit(**options), numba.njit(**options | {"cache": False})

    def jit(fn: Any) -> Any:
        try:
            return cached(fn)
        except RuntimeError:
            # numba keeps compiled code beside its source file. A policy that was typed in, or
            # sent from the machine where its file is, has none here: each process compiles it.
            return uncached(fn)

    return jit
