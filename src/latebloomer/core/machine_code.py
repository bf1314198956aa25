"""Kernels as machine code that is kept on disk, so that a new process plays at once.

numba makes one function of a kernel and all kernels under it. To import numba and have it find
that function in its own cache takes 0.7 s of a new process, most of it for types and functions
that numba makes ready and nobody uses. So the function itself is kept in a file, and loaded by
LLVM alone (llvmlite, which numba brings along), which takes 0.06 s.

All but two things here are public in numba and llvmlite: how a function of numba's takes its
arguments (`spread`), and whether it has addresses of this process in it (`_emit`). Both are of
numba's version, which is in the name of the file. The first is compared with the function that
numba has made (`words_of`): where a version takes other words, it is left to numba.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from latebloomer._util.atomic_files import make_folder, write_file
from latebloomer.core.compiling import CPU_OPTIONS, INNER_OPTIONS, cpu_jit, inner_jit
from latebloomer.core.kernel import Jit, plain
from latebloomer.core.moves import moves_of
from latebloomer.errors import OutputError, extra

# Of the environment, what does not change the code that numba makes.
HARMLESS = ("NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS", "NUMBA_THREADING_LAYER")
# What a file's code may call: the C library, which every process has. Code that calls anything
# else, such as numba's own helpers or Python's, is left to numba.
C_LIBRARY = (
    "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 "
    "fabs floor fmax fmin fmod frexp hypot ldexp lgamma log log10 log1p log2 memcpy memmove "
    "memset nextafter pow rint round sin sinh sqrt tan tanh tgamma trunc"
)
MOST_WORDS = 1000  # ctypes calls no function with more than 1,024 arguments
LARGEST = 2**63 - 1  # a larger whole number is of another type for numba


class CodeFile(NamedTuple):
    """A function's machine code, its name there, and what of the C library it calls."""

    symbol: str
    calls: list[str]
    code: bytes

    def to_bytes(self) -> bytes:
        body = f"{self.symbol}\n{' '.join(self.calls)}\n".encode() + self.code
        return hashlib.sha256(body).digest() + body

    @classmethod
    def from_bytes(cls, data: bytes) -> CodeFile | None:
        """None where the file is damaged."""
        if hashlib.sha256(data[32:]).digest() != data[:32]:
            return None
        symbol, calls, code = data[32:].split(b"\n", 2)
        return cls(symbol.decode(), calls.decode().split(), code)


class MachineCode:
    """A kernel that returns nothing, as machine code for this CPU.

    `lowered` makes the kernel for a compiler. Its name ends in a digest of all code under it
    (`kernel.lower`), and so does what names the file: code that was edited is another file.
    Where there is none, numba compiles it. numba also plays what has to be its own: arguments
    that are neither numbers, arrays nor tuples of them, and kernels that raise.
    """

    def __init__(self, lowered: Callable[[Jit], Any]) -> None:
        self._lowered = lowered
        self._functions: dict[tuple[Any, ...], Callable[..., int]] = {}
        self._lock = Lock()  # threads that begin together find or compile it once

    def __call__(self, *args: Any) -> None:
        self.with_first()(*args)

    def with_first(self, *fixed: Any) -> Callable[..., None]:
        """The kernel with its first arguments given, which are then taken apart only once."""
        first_kinds, first_words = spread(fixed)

        def call(*args: Any) -> None:
            kinds, words = spread(args)
            results = (ctypes.c_void_p * 2)()  # where the value and the error of a call would go
            start = ctypes.addressof(results)
            words = [start, start + ctypes.sizeof(ctypes.c_void_p), *first_words, *words]
            kind = (*first_kinds, *kinds)
            function = self._functions.get(kind)
            if function is None:
                function = self._make_ready(kind, (*fixed, *args), words)
            if function(*words) != 0:
                self._lowered(cpu_jit())(*fixed, *args)

        return call

    def _make_ready(
        self, kinds: tuple[Any, ...], args: tuple[Any, ...], words: list[Any]
    ) -> Callable[..., int]:
        with self._lock:
            if kinds not in self._functions:
                unfit = None in kinds or len(words) > MOST_WORDS
                found = None if unfit else self._found(kinds, args)
                self._functions[kinds] = _left_to_numba if found is None else _load(found, words)
            return self._functions[kinds]

    def _found(self, kinds: tuple[Any, ...], args: tuple[Any, ...]) -> CodeFile | None:
        """From a file, or compiled and written to one; None where it cannot be in a file."""
        if not _can_be_kept():
            return None
        name = self._file_name(kinds)
        found = next(filter(None, (_read(folder / name) for folder in folders())), None)
        if found is None:
            found = _compiled(self._lowered(inner_jit()), args, words_of(kinds))
            if found is not None:
                _write(name, found)
        return found

    def _file_name(self, kinds: tuple[Any, ...]) -> str:
        text = self._lowered(plain)
        what = (text.__module__, text.__qualname__, kinds, CPU_OPTIONS, INNER_OPTIONS, _maker())
        digest = hashlib.sha256(repr(what).encode()).hexdigest()
        return f"{text.__name__}-{digest[:32]}.code"


@cache
def compiled_moves(
    policy: Any, fn: Callable[..., None], **also: Callable[..., Any]
) -> MachineCode:
    """`moves_of` as machine code: `fn` plays by a policy's rules, `also` binds more names."""
    return MachineCode(partial(moves_of, policy, fn, **also))


# --- arguments, as numba's functions take them ---


def spread(args: tuple[Any, ...]) -> tuple[list[Any], list[Any]]:
    """What decides the types of the arguments, and the numbers that they are made of.

    >>> spread((7, (0.5, 2)))
    ([<class 'int'>, ('builtins', 'tuple', 2), <class 'float'>, <class 'int'>], [7, 0.5, 2])
    """
    kinds: list[Any] = []
    words: list[Any] = []
    for value in args:
        _spread(value, kinds, words)
    return kinds, words


def _spread(value: Any, kinds: list[Any], words: list[Any]) -> None:
    """The same for one value; None is the kind of what only numba can take.

    The function of a kernel takes words of 8 bytes. A tuple is its entries, one after the other;
    an array is its owner (twice; none here, as nothing is reference-counted), size, bytes of an
    entry, address, shape and strides.
    """
    if isinstance(value, np.ndarray):
        flags = value.flags
        layout = (flags.c_contiguous, flags.f_contiguous and not flags.c_contiguous)
        kinds.append((value.dtype.str, value.ndim, *layout, flags.aligned, flags.writeable))
        address = value.__array_interface__["data"][0]
        words += (0, 0, value.size, value.itemsize, address, *value.shape, *value.strides)
    elif isinstance(value, tuple):
        kind = type(value)
        kinds.append((kind.__module__, kind.__qualname__, getattr(kind, "_fields", len(value))))
        for entry in value:
            _spread(entry, kinds, words)
    elif isinstance(value, float):
        kinds.append(float)
        words.append(float(value))
    elif isinstance(value, int | np.int64) and not isinstance(value, bool) and value <= LARGEST:
        kinds.append(int)
        words.append(int(value))
    else:
        kinds.append(None)


def words_of(kinds: tuple[Any, ...]) -> list[str]:
    """The types of the words of arguments of these kinds, results first, as LLVM calls them.

    >>> words_of((int, ("<f8", 1, True, False, True, True), float))
    ['ptr', 'ptr', 'i64', 'ptr', 'ptr', 'i64', 'i64', 'ptr', 'i64', 'i64', 'double']
    """
    found = ["ptr", "ptr"]
    for kind in kinds:
        if kind in (int, float):
            found.append("i64" if kind is int else "double")
        elif len(kind) == 6:  # an array
            found += ["ptr", "ptr", "i64", "i64", "ptr", *["i64"] * (2 * kind[1])]
    return found


def _words_taken(function: Any) -> list[str]:
    """The types of the words that a function takes; LLVM 14 writes addresses with a star."""
    names = [str(argument.type) for argument in function.arguments]
    return ["ptr" if name.endswith("*") else name for name in names]


def _left_to_numba(*_: Any) -> int:
    """In the place of a function that cannot be in a file."""
    return 1


# --- compiling ---


def _can_be_kept() -> bool:
    """Words are of 8 bytes, and numba compiles at all."""
    return sys.maxsize > 2**32 and os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"


def _compiled(dispatcher: Any, args: tuple[Any, ...], words: list[str]) -> CodeFile | None:
    typeof = extra("numba", "simulations", "sim").typeof
    signature = tuple(map(typeof, args))
    dispatcher.compile(signature)
    return _emit(dispatcher, signature, words)


def _emit(dispatcher: Any, signature: tuple[Any, ...], words: list[str]) -> CodeFile | None:
    """What numba has made, as a file.

    None where it holds for this process alone, or takes its arguments as other words.
    """
    if dispatcher.overloads[signature].library.has_dynamic_globals:
        return None
    llvm = _llvm()
    module = llvm.parse_assembly(dispatcher.inspect_llvm(signature))
    functions = [some for some in module.functions if not some.name.startswith("llvm.")]
    calls = [some.name for some in functions if some.is_declaration]
    made = [some for some in functions if not some.is_declaration]
    entry = [some for some in made if some.linkage == llvm.Linkage.external]
    if len(entry) != 1 or not set(calls) <= set(C_LIBRARY.split()):
        return None
    if _words_taken(entry[0]) != words:
        return None
    return CodeFile(entry[0].name, calls, _machine().emit_object(module))


# --- loading ---


@cache
def _llvm() -> Any:
    llvm = extra("llvmlite.binding", "simulations", "sim")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


def _machine() -> Any:
    """This machine, with the options that numba compiles for it with."""
    llvm = _llvm()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=3,
        reloc="static" if target.name.startswith("x86") else "default",
        codemodel="jitdefault",
        jit=True,
    )


def _maker() -> tuple[Any, ...]:
    """All but the sources that the code depends on: Python, numba, LLVM, the CPU, settings."""
    llvm = _llvm()
    settings = sorted(item for item in os.environ.items() if _changes_code(item[0]))
    host = (llvm.get_process_triple(), llvm.get_host_cpu_name(), _features())
    return (sys.version, _numba_version(), llvm.llvm_version_info, host, settings)


def _features() -> str:
    return str(_llvm().get_host_cpu_features().flatten())


def _changes_code(variable: str) -> bool:
    return variable.startswith("NUMBA_") and variable not in HARMLESS and "CUDA" not in variable


def _numba_version() -> bytes:
    """As its files say, so that it need not be imported."""
    found = find_spec("numba")
    if found is None or found.origin is None:
        extra("numba", "simulations", "sim")
        return b""
    return (Path(found.origin).parent / "_version.py").read_bytes()


def _load(file: CodeFile, words: list[Any]) -> Callable[..., int]:
    llvm = _llvm()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine())
    if not all(map(llvm.address_of_symbol, file.calls)):  # which would end the process
        return _left_to_numba
    engine.add_object_file(llvm.ObjectFileRef.from_data(file.code))
    engine.finalize_object()
    types = [ctypes.c_double if isinstance(word, float) else ctypes.c_int64 for word in words]
    function: Any = ctypes.CFUNCTYPE(ctypes.c_int32, *types)(
        engine.get_function_address(file.symbol)
    )
    function.engine = engine  # lives as long as its code is used
    return function  # without the interpreter's lock, as all that ctypes calls


# --- files ---


def folders() -> Iterator[Path]:
    """Where compiled code is: as numba's, and in a place of the user's where that cannot be."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    yield Path(chosen) / "latebloomer" if chosen else Path(__file__).parent / "__pycache__"
    with suppress(RuntimeError):  # nobody's home
        yield Path.home() / ".cache" / "latebloomer"


def _read(path: Path) -> CodeFile | None:
    try:
        return CodeFile.from_bytes(path.read_bytes())
    except OSError:
        return None


def _write(name: str, file: CodeFile) -> None:
    """In the first place that can be written to; where there is none, each process compiles."""
    for folder in folders():
        with suppress(OutputError):
            write_file(make_folder(folder) / name, file.to_bytes())
            return
