"""Is this ready for PyPI? `make release-check` builds it, installs it, and runs the README.

Nothing is uploaded, and nothing of the repository is changed but the folder `dist`. Light extras
are installed one after the other into one empty environment; of the heavy ones it is asked whether
they can be resolved.
"""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIGHT = ("sim", "plots", "sklearn", "skops", "optuna", "parquet", "pandas", "watch", "lightgbm")
HEAVY = ("ray", "storage", "xgboost", "catboost", "torch", "lightning", "transformers", "keras",
         "mlflow", "wandb", "tensorboard", "syne-tune")  # fmt: skip
FIRST_RACE = """
import latebloomer as lb
slow = lambda: (n / (n + 20) for n in range(1, 1000))
fast = lambda: (0.4 * n / (n + 2) for n in range(1, 1000))
verdict = lb.race({"slow": slow, "fast": fast}, budget=40, journal=None, progress=False)
assert verdict.name == "slow"
"""
VALID_CITATION = f"""
import sys
from cffconvert.cli.cli import cli
sys.argv = ["cffconvert", "--validate", "--infile", {str(ROOT / "CITATION.cff")!r}]
cli()
"""
LICENCED = {".css", ".js", ".woff", ".woff2", ".ttf", ".bib", ".npz", ".json", ".gz"}
Run = Callable[..., str]


def say(text: str) -> None:
    print(text, flush=True)


# --- building ---


def build(run: Run, dist: Path) -> Path:
    """The wheel; an sdist beside it, from which the wheel was built."""
    for old in dist.glob("latebloomer-*"):
        old.unlink()
    run("pip", "install", "--quiet", "build", "twine", "cffconvert")
    run("build", "--outdir", str(dist), str(ROOT))
    run("twine", "check", "--strict", *map(str, dist.glob("latebloomer-*")))
    run_code(run, VALID_CITATION)
    (wheel,) = dist.glob("*.whl")
    (source,) = dist.glob("*.tar.gz")
    say(f"built, and twine and cffconvert find nothing: {wheel.name} "
        f"({wheel.stat().st_size / 1e6:.2f} MB), {source.name} "
        f"({source.stat().st_size / 1e6:.2f} MB)")  # fmt: skip
    return wheel


def contents(wheel: Path) -> None:
    """What a wheel holds, by kind, and everything that is no Python by name."""
    with zipfile.ZipFile(wheel) as held:
        files = [info for info in held.infolist() if not info.is_dir()]
    count, size = Counter[str](), Counter[str]()
    for info in files:
        kind = Path(info.filename).suffix or "other"
        count[kind] += 1
        size[kind] += info.file_size
    say("the wheel holds:")
    for kind, number in count.most_common():
        say(f"  {number:4} {kind:8} {size[kind] / 1e3:8.1f} kB")
    for info in files:
        if Path(info.filename).suffix in LICENCED:
            say(f"  {info.filename} ({info.file_size / 1e3:.1f} kB, ours, MIT)")
    names = {info.filename for info in files}
    needed = {"latebloomer/py.typed", "latebloomer/__main__.py", "latebloomer/refs.bib"}
    if needed - names or not any(name.endswith("LICENSE") for name in names):
        sys.exit(f"the wheel lacks {sorted(needed - names) or 'LICENSE'}")


def page_of(wheel: Path) -> None:
    """What PyPI would show: are its links absolute?"""
    with zipfile.ZipFile(wheel) as held:
        (name,) = (one for one in held.namelist() if one.endswith("METADATA"))
        text = held.read(name).decode()
    left = re.findall(r"\]\((?!https?:|#)([^)]+)\)", text)
    if left:
        say(f"MISSING for PyPI: {len(left)} links and pictures of the README have no address; "
            "build with LATEBLOOMER_HOME=https://github.com/OWNER/latebloomer")  # fmt: skip
    else:
        say("every link and picture of the README has an address")


# --- installing ---


def installs(run: Run, wheel: Path) -> None:
    """The base alone, then each light extra; what runs is the wheel, not the sources here."""
    run("pip", "install", "--quiet", str(wheel))
    run_code(run, FIRST_RACE)
    said = run("latebloomer", "plan", "--arms", "5", "--budget", "400")
    say(f"base: a race, and python -m latebloomer plan ({len(said.splitlines())} lines)")
    for extra in LIGHT:
        run("pip", "install", "--quiet", f"{wheel}[{extra}]")
        run_code(run, FIRST_RACE)
        say(f"[{extra}]: installed")
    for extra in HEAVY:
        try:
            run("pip", "install", "--quiet", "--dry-run", f"{wheel}[{extra}]")
            say(f"[{extra}]: can be resolved")
        except subprocess.CalledProcessError as error:
            say(f"[{extra}]: CANNOT be resolved here: {error}")


def run_code(run: Run, code: str) -> None:
    """Run Python where there are no sources of ours beside it."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "as_printed.py").write_text(code, encoding="utf-8")
        run("as_printed", cwd=folder)


def readme(run: Run) -> None:
    """All Python of the README, in order, as printed."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    run_code(run, "\n".join(blocks))
    say(f"README: its {len(blocks)} blocks of Python run as printed")


def main() -> None:
    environments = runpy.run_path(str(ROOT / "constraints" / "environments.py"))
    home = os.environ.get("LATEBLOOMER_HOME")
    say(f"LATEBLOOMER_HOME is {home}" if home else "LATEBLOOMER_HOME is not set")
    dist = ROOT / "dist"
    dist.mkdir(exist_ok=True)
    with environments["environment"]() as run:
        wheel = build(run, dist)
    contents(wheel)
    page_of(wheel)
    with environments["environment"]() as run:
        installs(run, wheel)
        readme(run)


if __name__ == "__main__":
    main()
