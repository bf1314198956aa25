"""Is this ready for PyPI? `make release-check` builds it, installs it, and runs the README.

Nothing is uploaded, and nothing of the repository is changed but the folder `dist`. Light extras
are installed one after the other into one empty environment; of the heavy ones it is asked whether
they can be resolved. The last lines say what is missing.
"""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIGHT = (
    "sim",
    "plots",
    "sklearn",
    "skops",
    "optuna",
    "parquet",
    "pandas",
    "watch",
    "lightgbm",
)
HEAVY = ("ray", "storage", "xgboost", "catboost", "torch", "lightning", "transformers", "keras",
         "mlflow", "wandb", "tensorboard", "syne-tune", "tune", "gpu", "all")  # fmt: skip
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
LICENSED = {".css", ".js", ".woff", ".woff2", ".ttf", ".bib", ".npz", ".json", ".gz"}
FOREIGN = {"docs/_static/mathjax/tex-svg.js": "docs/_static/mathjax/LICENSE"}  # of the sdist
Run = Callable[..., str]


def say(text: str) -> None:
    print(text, flush=True)


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
    """What a wheel holds that is no Python, by name; that nothing is missing."""
    with zipfile.ZipFile(wheel) as held:
        files = [info for info in held.infolist() if not info.is_dir()]
    say(f"the wheel holds {len(files)} files, among them:")
    for info in files:
        if Path(info.filename).suffix in LICENSED:
            say(f"  {info.filename} ({info.file_size / 1e3:.1f} kB, ours, MIT)")
    names = {info.filename for info in files}
    needed = {"latebloomer/py.typed", "latebloomer/__main__.py", "latebloomer/refs.bib"}
    if needed - names or not any(name.endswith("LICENSE") for name in names):
        sys.exit(f"the wheel lacks {sorted(needed - names) or 'LICENSE'}")


def licenses(source: Path) -> None:
    """What others wrote lies in the sdist with its license; the wheel has nothing of theirs."""
    with tarfile.open(source) as held:
        names = {name.partition("/")[2] for name in held.getnames()}
    for file, license in FOREIGN.items():
        if not {file, license} <= names:
            sys.exit(f"{source.name} lacks {file} or its license, {license}")
        say(f"{source.name} has {file} of others, and {license}")


def missing_for_pypi(wheel: Path) -> list[str]:
    """What PyPI's page would lack."""
    with zipfile.ZipFile(wheel) as held:
        (name,) = (one for one in held.namelist() if one.endswith("METADATA"))
        text = held.read(name).decode()
    bare = re.findall(r"(!?)\[[^\]]*\]\((?!https?:|#)([^)]+)\)", text)
    found = {
        "pictures of the README that would not show": [path for mark, path in bare if mark],
        "links of the README that would lead nowhere": [path for mark, path in bare if not mark],
        "links beside the README": [] if "\nProject-URL: " in text else ["repository, changelog"],
    }
    return [f"{what}: {', '.join(dict.fromkeys(lost))}" for what, lost in found.items() if lost]


def installs(run: Run, wheel: Path) -> list[str]:
    """The base alone, then each light extra, of the wheel; the heavy ones that cannot be had."""
    run("pip", "install", "--quiet", str(wheel))
    run_code(run, FIRST_RACE)
    said = run("latebloomer", "plan", "--learners", "5", "--budget", "400")
    say(f"base: a race, and python -m latebloomer plan ({len(said.splitlines())} lines)")
    for extra in LIGHT:
        run("pip", "install", "--quiet", f"{wheel}[{extra}]")
        run_code(run, FIRST_RACE)
        say(f"[{extra}]: installed")
    unresolved = [extra for extra in HEAVY if not resolves(run, f"{wheel}[{extra}]")]
    say("can be resolved: " + ", ".join(one for one in HEAVY if one not in unresolved))
    return unresolved


def resolves(run: Run, requirement: str) -> bool:
    """Whether pip finds all that an extra needs; its error is printed where it does not."""
    try:
        run("pip", "install", "--quiet", "--dry-run", requirement)
    except subprocess.CalledProcessError:
        return False
    return True


def run_code(run: Run, code: str) -> str:
    """Run Python where there are no sources of ours beside it; what it prints."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "as_printed.py").write_text(code, encoding="utf-8")
        return run("as_printed", cwd=folder)


def readme(run: Run) -> None:
    """Run all Python of the README, in order, as printed, except blocks that say "not run"."""
    python = run_code(run, "import sys; print(sys.executable)").strip()
    subprocess.run(["sh", str(ROOT / "constraints" / "install_openmp.sh"), python], check=True)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.findall(
        r"^(<!-- not run: [^\n]+ -->\n+)?```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL
    )
    blocks = [code for not_run, code in found if not not_run]
    run_code(run, "\n".join(blocks))
    say(f"README: its {len(blocks)} blocks of Python run as printed")


def main() -> None:
    environments = runpy.run_path(str(ROOT / "constraints" / "environments.py"))
    named = environments["PROJECT"]["project"]["optional-dependencies"].keys()
    if named != {*LIGHT, *HEAVY}:
        sys.exit(f"extras that are not checked, or not there: {named ^ {*LIGHT, *HEAVY}}")
    home = os.environ.get("LATEBLOOMER_HOME")
    say(f"LATEBLOOMER_HOME is {home}" if home else "LATEBLOOMER_HOME is not set")
    dist = ROOT / "dist"
    dist.mkdir(exist_ok=True)
    with environments["environment"]() as run:
        wheel = build(run, dist)
    contents(wheel)
    licenses(next(dist.glob("*.tar.gz")))
    with environments["environment"]() as run:
        unresolved = installs(run, wheel)
        readme(run)
    lost = [f"extras that pip cannot resolve here: {', '.join(unresolved)}"] if unresolved else []
    conclude(lost + missing_for_pypi(wheel))


def conclude(missing: list[str]) -> None:
    """Whether it may go to PyPI, and what is missing where it may not."""
    if not missing:
        say(f"\nPython {sys.version.split()[0]}: nothing is missing. twine upload dist/*")
        return
    say(f"\nPython {sys.version.split()[0]}: built, installed and run. MISSING for PyPI:")
    for one in missing:
        say(f"  {one}")
    if not os.environ.get("LATEBLOOMER_HOME"):
        home = "https://github.com/OWNER/latebloomer"
        say(f"Links need the repository's address: make release-check LATEBLOOMER_HOME={home}")


if __name__ == "__main__":
    main()
