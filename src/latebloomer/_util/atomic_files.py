"""Functions that write files completely or not at all: a complete new file replaces the old one.

All files that this library writes for users are written here. So an error while writing (no
folder, no permission, a full disk) is an `OutputError` and leaves the old file unchanged.
"""

import csv
import errno
import io
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from latebloomer.errors import OutputError

File = str | os.PathLike[str]
NEW = 0o666  # permissions of a new file, before the user's umask
FULL = (errno.ENOSPC, errno.EDQUOT)
FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
# Maximum characters of the file name in a draft's name, which must not be too long.
MOST_OF_NAME = 40


def write_file(path: File, data: bytes | str) -> Path:
    """Write a draft next to `path` and then move it there, so that the file is always complete.

    The permissions of the old file are kept, and links are followed. Text is written as UTF-8.
    """
    target = Path(path)
    content = data if isinstance(data, bytes) else data.encode("utf-8", "backslashreplace")
    with _explained(target):
        if _is_stream(target):
            target.write_bytes(content)
            return target
        with _draft(target) as draft:
            draft.write(content)
            draft.flush()
            os.fsync(draft.fileno())
            draft.close()
            os.replace(draft.name, os.path.realpath(target))
    return target


def write_csv(path: File, lines: Iterable[Iterable[Any]]) -> Path:
    """Write a table as CSV, with the names of its columns first."""
    text = io.StringIO(newline="")
    csv.writer(text).writerows(lines)
    return write_file(path, text.getvalue())


def make_folder(path: File) -> Path:
    """Create a folder if it does not exist, and return its path."""
    with _explained(Path(path), folder=True):
        os.makedirs(path, exist_ok=True)
    return Path(path)


# --- checks before the work whose result will be written ---


def need_writable(path: File) -> None:
    """Raise an `OutputError` if a file cannot be written; an existing file is unchanged."""
    target = Path(path)
    with _explained(target):
        if not _is_stream(target):
            with _draft(target):
                pass


def need_folder(path: File) -> None:
    """Raise an `OutputError` if files cannot be written in a folder, or it cannot be created."""
    target = Path(path).absolute()
    nearest = next(folder for folder in (target, *target.parents) if os.path.exists(folder))
    with _explained(Path(path), folder=True), _draft(nearest / os.urandom(6).hex()):
        pass


def need_different(files: Mapping[str, File | None]) -> None:
    """Raise an `OutputError` if two options name the same file, which one would overwrite.

    >>> need_different({"--report": "race.html", "--save": "./race.html"})
    Traceback (most recent call last):
    latebloomer.errors.OutputError: --report and --save are both 'race.html': give two files
    """
    seen: dict[str, str] = {}
    for option, file in files.items():
        if file is None or _is_stream(Path(file)):
            continue
        other = seen.setdefault(os.path.realpath(file), option)
        if other != option:
            name = os.path.normpath(file)
            raise OutputError(f"{other} and {option} are both {name!r}: give two files")


# --- writing ---


def _is_stream(path: Path) -> bool:
    """Return whether a path is a device, a pipe or this process's output, not replaceable."""
    if not os.path.exists(path) or os.path.isdir(path):
        return False
    for handle in (1, 2):
        with suppress(OSError):  # closed
            if os.path.samestat(os.stat(path), os.fstat(handle)):
                return True
    return not os.path.isfile(path)


@contextmanager
def _draft(path: Path) -> Iterator[BinaryIO]:
    """Yield a new file next to `path` with its permissions; remove it if it was not moved."""
    target = Path(os.path.realpath(path))
    mode = _mode(target)
    # Set from the start, because a winner may be confidential.
    private = NEW if mode is None else mode
    name = target.with_name(f".{target.name[:MOST_OF_NAME]}.{os.urandom(6).hex()}")
    try:
        with open(name, "xb", opener=partial(os.open, mode=private)) as draft:
            if mode is not None:
                os.chmod(name, mode)  # the umask may have removed some
            yield draft
    finally:
        with suppress(OSError):
            os.unlink(name)


def _mode(target: Path) -> int | None:
    """Return the permissions of the file to be replaced; None if there is none."""
    if not target.exists():
        return None
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return target.stat().st_mode & 0o777


# --- errors ---


@contextmanager
def _explained(path: Path, folder: bool = False) -> Iterator[None]:
    """Turn an `OSError` in the block into an `OutputError` that says what to do."""
    try:
        yield
    except OSError as error:
        problem = f"Cannot make or write in the folder {path} ({error.strerror}). Give another."
        failed = OutputError(problem if folder else f"Cannot write {path}{_reason(path, error)}")
        failed.errno = error.errno
        raise failed from error


def _reason(path: Path, error: OSError) -> str:
    reason = f" ({error.strerror or error})."
    if os.path.isdir(path):
        return ", because it is a folder. Give the name of a file."
    if not os.path.isdir(path.parent):
        return f", because there is no folder {path.parent}. Make it, or give another path."
    if error.errno in FORBIDDEN:
        return f"{reason} Give a path that you may write to, or change its permissions."
    full = "Make room, or give a path on another disk."
    advice = full if error.errno in FULL else "Give another path."
    return f"{reason} Existing files are unchanged. {advice}"
