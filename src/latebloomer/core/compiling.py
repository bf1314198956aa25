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


@cache
def cpu_jit() -> Any:
    """numba's compiler for the CPU."""
    numba = extra("numba", "simulations", "sim")
    kept, fleeting = numba.njit(**CPU_OPTIONS), numba.njit(**CPU_OPTIONS | {"cache": False})

    def jit(fn: Any) -> Any:
        try:
            return kept(fn)
        except RuntimeError:
            # numba keeps compiled code beside its source file. A policy that was typed in, or
            # sent from the machine where its file is, has none here: each process compiles it.
            return fleeting(fn)

    return jit
