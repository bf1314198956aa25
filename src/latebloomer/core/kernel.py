"""Kernels: one definition for plain Python, numba on the CPU and numba-cuda on the GPU.

Kernel Python is the subset that all three share: numbers, tuples, indexing, loops, `math`, and
calls of other kernels by plain name. `@kernel` only marks a function, so it can be debugged,
covered and doctested as plain Python. `lower` copies it for one target and binds each kernel that
it calls to the copy for this target. So no algorithm is written twice.
"""

import builtins
import dis
import hashlib
import inspect
import math
import types
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeAlias, TypeVar

import numpy as np

from latebloomer.errors import ContractError, extra

F = TypeVar("F", bound=Callable[..., Any])
Jit = Callable[[Any], Any]
Owners: TypeAlias = Mapping[str, str]  # by parameter name: the class from which its types are

NOTHING: Mapping[Any, Any] = types.MappingProxyType({})
# Builtins that both numba and numba-cuda support; `NotImplementedError` marks unbound kernels.
BUILTINS = (
    "abs", "bool", "enumerate", "float", "int", "len", "max", "min", "NotImplementedError", "pow",
    "range", "round", "zip",
)  # fmt: skip


def kernel(fn: F) -> F:
    """Mark `fn` as kernel Python; it is still called as ordinary Python."""
    fn.__kernel__ = (math,)  # type: ignore[attr-defined]
    return fn


def numpy_kernel(fn: F) -> F:
    """Mark `fn` as a kernel for one target only, which may use NumPy as well as `math`."""
    fn.__kernel__ = (math, np)  # type: ignore[attr-defined]
    return fn


def plain(fn: F) -> F:
    """Return `fn` unchanged; this is the compiler for plain Python."""
    return fn


# --- the compilers of the CPU ---

CPU_OPTIONS = {
    "cache": True,  # a second process reads the compiled code from disk
    "nogil": True,  # threads simulate runs at the same time
    "error_model": "numpy",  # no check for zero before each division: 70 -> 47 ns per pull
    "forceinline": True,  # a run becomes one function: 229 -> 70 ns per pull (R-UCBE, T = 3200)
    "_nrt": False,  # no reference counts of arrays, as kernels allocate nothing: 1227 -> 229 ns
}
# A kernel that is only called by kernels needs no entry point from Python: compiling 11 policies
# takes 29 s instead of 43 s.
INNER_OPTIONS = CPU_OPTIONS | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


@cache
def cpu_jit() -> Any:
    """Return numba's compiler for the CPU; its `inner` is for kernels called only by kernels."""
    jit: Any = _compiler(CPU_OPTIONS)
    jit.inner = _compiler(INNER_OPTIONS)
    return jit


def _compiler(options: dict[str, Any]) -> Jit:
    numba = extra("numba", "simulations", "sim")
    cached, uncached = numba.njit(**options), numba.njit(**options | {"cache": False})

    def jit(fn: Any) -> Any:
        try:
            return cached(fn)
        except RuntimeError:
            # numba stores compiled code next to the source file. A policy that was typed in, or
            # sent from another machine, has no such file here: each process compiles it.
            return uncached(fn)

    return jit


# --- a kernel for one target ---


def lower(
    fn: Callable[..., Any],
    jit: Jit,
    bound: Mapping[Any, Any] = NOTHING,
    *,
    owners: Owners = NOTHING,
) -> Any:
    """Return `fn` for the target of `jit`; `bound` maps kernels to their replacements.

    If `jit` has an attribute `inner`, it compiles the kernels that `fn` calls; then only kernels
    can call them.

    The name of a compiled copy ends in a digest of all code and constants that it uses. numba's
    disk cache is keyed by name, so it never returns code that was edited since; if a kernel uses
    something that the digest cannot cover, a `ContractError` is raised. A cache file refers to all
    types for which a kernel was compiled, and a process without one of these types could not read
    it. So `owners` gives, by parameter name, the class from which the types of a parameter are;
    the digest of a kernel with such a parameter includes this class. A kernel with `*args` could
    get any type, so it raises an error.
    """
    return _lower(fn, jit, bound, owners, {})


def _lower(
    fn: Callable[..., Any],
    jit: Jit,
    bound: Mapping[Any, Any],
    owners: Owners,
    done: dict[Any, Any],
) -> Any:
    if fn in done:  # one copy per kernel, however many kernels call it
        return done[fn]
    done[fn] = None  # marks a copy in progress
    scope, code = dict(fn.__globals__), fn.__code__
    for name in scope.keys() & set(code.co_names):  # some are only names of attributes
        callee = scope[name]
        if hasattr(callee, "__kernel__"):
            callee = bound.get(callee, callee)
            scope[name] = _lower(callee, getattr(jit, "inner", jit), bound, owners, done)
            if scope[name] is None and _reads(fn, name):
                raise ContractError(f"Kernel {fn.__qualname__} calls itself. Use a loop instead.")
    copy: Any = types.FunctionType(code, scope, fn.__name__, fn.__defaults__, fn.__closure__)
    copy.__module__, copy.__doc__, copy.__qualname__ = fn.__module__, fn.__doc__, fn.__qualname__
    copy.__kernel__ = fn.__kernel__  # type: ignore[attr-defined]
    if jit is not plain:
        of_owners = [owners.get(name, "") for name in code.co_varnames[: code.co_argcount]]
        # The digest includes whether Python can call the kernel, because such kernels are compiled
        # differently. It includes modules, because cache files refer to modules: after a kernel
        # has moved, its old cache files cannot be read.
        salt = (fn.__module__, of_owners, hasattr(jit, "inner"))
        copy.__qualname__ += f"_{_digest(copy, salt)}"
    done[fn] = jit(copy)
    return done[fn]


def _reads(fn: Callable[..., Any], name: str) -> bool:
    """Return whether a function reads a name as a global, not only as an attribute's name."""
    instructions = dis.get_instructions(fn)
    return any(
        instruction.opname == "LOAD_GLOBAL" and instruction.argval == name
        for instruction in instructions
    )


def numbers_read(fn: Callable[..., Any]) -> set[str]:
    """Return the names of the attributes of `self` that a kernel reads.

    >>> numbers_read(lambda self, i: self.window * i)
    {'window'}
    """
    names: set[str] = set()
    before = None
    for instruction in dis.get_instructions(fn):
        # If one instruction loads two variables, `self` is the second.
        last = before.argval[-1] if before and isinstance(before.argval, tuple) else None
        if instruction.opname == "LOAD_ATTR" and before and "self" in (before.argval, last):
            names.add(str(instruction.argval))
        before = instruction
    return names


def _digest(fn: Any, salt: object) -> str:
    """Return a digest of all that affects compiled code, which docstrings do not.

    It includes other kernels by their names, which end in their own digests.
    """
    code = fn.__code__
    constants = code.co_consts[1:] if fn.__doc__ else code.co_consts
    defaults = _frozen(fn.__defaults__ or ())
    inner = any(isinstance(value, types.CodeType) for value in constants)
    if code.co_freevars or inner or defaults is None or code.co_flags & inspect.CO_VARARGS:
        raise ContractError(
            f"Kernel {fn.__qualname__} uses variables of the function around it, contains a "
            "lambda, a comprehension or a function, takes *args, or has a default that is not a "
            "number. Use loops, named parameters and kernels of a module instead."
        )
    used = [(name, _used(fn, name)) for name in sorted(set(code.co_names))]
    text = (code.co_code, code.co_names, code.co_varnames, constants, defaults)
    return hashlib.sha256(repr((salt, text, used)).encode()).hexdigest()[:12]


def _used(fn: Any, name: str) -> object:
    """Return the value of a name for the digest; None for builtins and names of attributes."""
    if name not in fn.__globals__:
        allowed = name in BUILTINS or not hasattr(builtins, name)
        constant, kind = None, "builtin"
    else:
        value = fn.__globals__[name]
        constant, kind = _frozen(value), type(value).__name__
        allowed = constant is not None or any(value is module for module in fn.__kernel__)
    if not allowed and _reads(fn, name):
        raise ContractError(
            f"Kernel {fn.__qualname__} uses {name} ({kind}), which compiled code cannot contain. "
            "A kernel may use other kernels, math, constants (numbers, arrays, tuples), named "
            f"tuples and the builtins {', '.join(BUILTINS)}. Mark a function with "
            "@kernel; make a value that changes a setting of the policy."
        )
    return constant


def _frozen(value: Any) -> object:
    """Return an object whose `repr` identifies a value in a kernel; None if it is not allowed."""
    kind = type(value)
    if hasattr(value, "__kernel__"):
        return value.__qualname__
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, tuple):
        parts = [_frozen(part) for part in value]
        return None if None in parts else (kind.__qualname__, parts)
    if isinstance(value, int | float | np.generic):
        return kind.__name__, repr(value)
    if kind is types.BuiltinFunctionType and value.__module__ == "math":
        return value.__name__
    if kind is type and issubclass(value, tuple) and hasattr(value, "_fields"):
        return value.__module__, value.__qualname__, value._fields, repr(value._field_defaults)
    return None
