"""One definition, three targets: plain Python, numba on CPU, numba-cuda on GPU.

Kernel Python is the subset that all three share: numbers, tuples, indexing, loops, `math`, and
calls of other kernels by plain name. `@kernel` only marks a function, so it is debugged, covered
and doctested as the plain Python it is; `lower` copies it for one target, binding each kernel it
names to that target's copy. No algorithm is written twice.
"""

from __future__ import annotations

import dis
import hashlib
import types
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])
Jit = Callable[[Any], Any]
LOAD_GLOBAL = dis.opmap["LOAD_GLOBAL"]


def kernel(fn: F) -> F:
    """Mark `fn` as kernel Python; calling it stays an ordinary Python call."""
    fn.__kernel__ = True  # type: ignore[attr-defined]
    return fn


def plain(fn: F) -> F:
    """The compiler of the interactive session: none."""
    return fn


OWNED = frozenset(("self", "game"))  # parameters whose types belong to one policy


def lower(fn: Callable[..., Any], jit: Jit, *, owner: str = "", **bound: Any) -> Any:
    """Return `fn` for the target of `jit`, with the kernels named in `bound` replaced.

    Where `jit` has an attribute `inner`, that compiles the kernels under `fn`, which nothing but
    kernels can call then.

    The copy's name ends in a digest of all the code under it: numba's disk cache, which is
    keyed by name, then never serves a rule that has since been edited. The digest of a kernel
    that takes a policy's numbers has the policy, `owner`, in it too: one file of the cache names
    all types it was compiled for, and a process that lacks one of them could not read it.
    """
    return _lower(fn, jit, bound, owner, {})


def _lower(
    fn: Callable[..., Any],
    jit: Jit,
    bound: dict[str, Callable[..., Any]],
    owner: str,
    done: dict[Callable[..., Any], Any],
) -> Any:
    if fn in done:  # one copy of a kernel, however many others call it
        return done[fn]
    scope, digest = dict(fn.__globals__), hashlib.sha256(repr(_essence(fn)).encode())
    if OWNED.intersection(fn.__code__.co_varnames[: fn.__code__.co_argcount]):
        digest.update(owner.encode())
    if hasattr(jit, "inner"):  # what Python can call is another file of the cache
        digest.update(b"entry")
    for name in sorted(globals_of(fn)):
        callee: Any = bound.get(name, scope.get(name))
        if getattr(callee, "__kernel__", False):
            scope[name] = _lower(callee, getattr(jit, "inner", jit), bound, owner, done)
            digest.update(scope[name].__qualname__.encode())
        else:
            digest.update(_constant(callee, fn.__code__.co_names))
    copy = types.FunctionType(fn.__code__, scope, fn.__name__, fn.__defaults__)
    copy.__module__, copy.__doc__ = fn.__module__, fn.__doc__
    copy.__kernel__ = True  # type: ignore[attr-defined]
    copy.__qualname__ = f"{fn.__qualname__}_{digest.hexdigest()[:12]}"
    done[fn] = jit(copy)
    return done[fn]


def globals_of(fn: Callable[..., Any]) -> set[str]:
    """The global names that a function uses, in a tenth of the time of `dis.get_instructions`.

    A session reads 40 kernels before its first pull.
    """
    code, found, extended = fn.__code__.co_code, set(), 0
    for operation, argument in zip(code[::2], code[1::2], strict=True):
        argument |= extended
        if operation == LOAD_GLOBAL:
            found.add(fn.__code__.co_names[argument >> 1])
        extended = argument << 8 if operation == dis.EXTENDED_ARG else 0
    return found


def _constant(value: Any, names: tuple[str, ...] = ()) -> bytes:
    """What of a global would be compiled in; `names` are those that may be a module's."""
    if isinstance(value, types.ModuleType):
        return b"".join(_constant(vars(value).get(name)) for name in names)
    if isinstance(value, tuple):
        return b"".join(map(_constant, value)) + b"%d" % len(value)
    if isinstance(value, np.ndarray):
        return repr((value.dtype, value.shape)).encode() + value.tobytes()
    return repr(value).encode() if isinstance(value, int | float | np.generic) else b""


def _essence(fn: Callable[..., Any]) -> tuple[Any, ...]:
    """The code without its docstring and line numbers."""
    code = fn.__code__
    constants = code.co_consts[1:] if fn.__doc__ else code.co_consts
    return code.co_code, code.co_names, code.co_varnames, constants, fn.__defaults__
