"""Fresh environments: renew the versions known to be good, try the newest and the oldest allowed.

    python constraints/environments.py upgrade dev constraints/dev-py311.txt
    python constraints/environments.py test dev
    .venv-integrations/bin/python constraints/environments.py install integrations FILE

The first argument is a command, the second a dependency group of pyproject.toml. Nothing but
Python is needed: what is made lies in a temporary folder and goes with it. `install` alone changes
the environment of the Python that runs it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

# What is tried with other versions: every import, the arithmetic, a race, the libraries' adapters.
QUICK_TESTS = (
    "tests/test_package.py", "tests/core", "tests/theory", "tests/problems", "tests/policies",
    "tests/session", "tests/racing/test_race.py", "tests/integrations",
)  # fmt: skip


# --- what pyproject.toml says ---


def requirements(group: str) -> list[str]:
    """What a group needs, the base install and the extras that it names included."""
    return sorted({*PROJECT["project"]["dependencies"], *_of(PROJECT["dependency-groups"][group])})


def _of(lines: Iterable[str]) -> Iterator[str]:
    """The lines, and those of our own extras that they name."""
    for line in lines:
        extras = _own_extras(line)
        if not extras:
            yield line
        for extra in extras:
            yield from _of(PROJECT["project"]["optional-dependencies"][extra])


def _own_extras(line: str) -> list[str]:
    """The extras of this package that a requirement names; none of another package's."""
    own = re.fullmatch(rf"{PROJECT['project']['name']}\[(.+)\]", line)
    return [name.strip() for name in own[1].split(",")] if own else []


def lower_bounds(group: str) -> list[str]:
    """Constraints that hold each requirement at the oldest version allowed."""
    return [re.sub(r"(\[.+\])?>=", "==", line) for line in requirements(group)]


# --- environments ---


@contextmanager
def environment() -> Iterator[Callable[..., str]]:
    """A new environment with pip; what runs a module in it and returns what that prints."""
    with tempfile.TemporaryDirectory(prefix="latebloomer-") as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / ("Scripts" if os.name == "nt" else "bin") / "python"
        # Compiled code that numba keeps is of one version: not that of the other environments.
        own = os.environ | {"NUMBA_CACHE_DIR": f"{folder}/numba", "PYTHONPATH": ""}

        def run(*words: str, show: bool = False, cwd: str | Path = ROOT) -> str:
            command = [str(python), "-m", *words]
            output = None if show else subprocess.PIPE
            return subprocess.run(
                command, cwd=cwd, env=own, stdout=output, text=True, check=True
            ).stdout

        run("pip", "install", "--quiet", "--upgrade", "pip")
        yield run


def upgrade(group: str, file: str, *others: str) -> None:
    """Install the newest versions allowed, or `others`, and write down which those are."""
    with environment() as run:
        tools = [*PROJECT["build-system"]["requires"], "editables"]  # what builds the package
        run("pip", "install", "--quiet", "--editable", ".", "--group", group, *tools, *others)
        listed = run("pip", "list", "--format=freeze", "--exclude-editable")
    version = ".".join(map(str, sys.version_info[:2]))
    head = f"# Versions known to be good with Python {version}, made by `make upgrade`."
    (ROOT / file).write_text("\n".join([head, *pins(listed)]) + "\n", encoding="utf-8")
    print(f"wrote {file}: make test shows whether these versions are good")


def pins(listed: str) -> list[str]:
    """Sorted constraints of what pip lists; what only one index has (`+cpu`) is left out of them.

    >>> pins("torch==2.13.0+cpu\\nsetuptools==65.5.0\\nPyYAML==6.0.3\\n")
    ['PyYAML==6.0.3', 'torch==2.13.0']
    """
    lines = [line.partition("+")[0] for line in listed.split()]
    kept = [line for line in lines if not line.startswith("setuptools==")]  # Python brought it
    return sorted(kept, key=str.lower)


def test(group: str) -> None:
    """Run the quick tests with the newest versions allowed and with the oldest."""
    # Of old versions that the world has left behind a warning is no surprise; of new ones it is.
    tries = {"newest": ([], []), "oldest": (lower_bounds(group), ["-W", "default"])}
    failed = [name for name, (held, options) in tries.items() if not _passes(group, held, options)]
    if failed:
        sys.exit(f"the quick tests fail with the {' and the '.join(failed)} versions allowed")
    print("the quick tests pass with the newest and with the oldest versions allowed")


def _passes(group: str, held: list[str], options: list[str]) -> bool:
    with environment() as run, tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "constraints.txt"
        file.write_text("\n".join(held), encoding="utf-8")
        try:
            wanted = ["--constraint", str(file), "--editable", ".", "--group", group]
            run("pip", "install", "--quiet", *wanted)
            print(run("pip", "list", "--format=freeze"), flush=True)
            run("pytest", "--numprocesses", "auto", "--dist", "loadfile", *options, *QUICK_TESTS,
                show=True)  # fmt: skip
        except subprocess.CalledProcessError as error:
            print(error.stdout or "", error, sep="\n")
            return False
        return True


# --- an environment with all of the libraries that can be had ---


def install(
    group: str, file: str = "", *others: str, pip: Callable[..., str] | None = None
) -> None:
    """Install a group here; where that cannot be, as many of the extras that it names as can.

    `file` has the versions known to be good, if there is one; `others` are requirements that go
    before, such as another build of PyTorch, whose version then counts. `pip` installs.
    """
    pip = pip or _pip
    with tempfile.TemporaryDirectory() as folder:
        held = Path(folder) / "constraints.txt"
        held.write_text(_held(file, others), encoding="utf-8")
        known = ["--constraint", str(held)]
        pip("--upgrade", *known, "pip>=25.1")
        known += ["--build-constraint", str(held)] if file else []
        failed = _install_all(group, known, others, pip)
    lines = [f"{name}: {why}\n" for name, why in failed.items()]
    count = f"{len(lines)} extras could not be installed here\n" if lines else ""
    said = Path(sys.prefix) / "not-installed.txt"
    said.write_text("".join([*lines, count]), encoding="utf-8")


def _install_all(
    group: str, known: list[str], others: Iterable[str], pip: Callable[..., str]
) -> dict[str, str]:
    """All at once if that can be, else one by one; the extras that cannot be had, and why."""
    if others:
        pip(*known, *others)
    if not pip(*known, "--editable", ".", "--group", group, check=False):
        return {}
    lines = PROJECT["dependency-groups"][group]
    named = [extra for line in lines for extra in _own_extras(line)]
    own = [line for line in lines if not _own_extras(line)]
    pip(*known, "--editable", ".", *own)
    tried = {one: pip(*known, "--editable", f".[{one}]", check=False) for one in named}
    return {one: why for one, why in tried.items() if why}


def _held(file: str, others: Iterable[str]) -> str:
    """The constraints, without those of what `others` ask for."""
    if not file:
        return ""
    names = {re.split(r"[^\w.]", Path(one).name.lower())[0] for one in others}
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines(keepends=True)
    return "".join(line for line in lines if line.partition("==")[0].lower() not in names)


def _pip(*words: str, check: bool = True) -> str:
    """Install with pip; nothing where that went well, else its error in one line."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", *words]
    ran = subprocess.run(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    if ran.returncode == 0:
        return ""
    errors = [line for line in ran.stderr.splitlines() if line.startswith("ERROR: ")]
    why = (errors or ran.stderr.splitlines() or ["no reason"])[-1].removeprefix("ERROR: ")
    if check:
        sys.exit(f"pip install {' '.join(words)}: {why}")
    return why


if __name__ == "__main__":
    {"upgrade": upgrade, "test": test, "install": install}[sys.argv[1]](*sys.argv[2:])
