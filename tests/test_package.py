"""What the package promises as a whole: names, imports, references, the demo."""

import inspect
import re
import runpy
import subprocess
import sys
import types

import pytest

import latebloomer
from latebloomer.citation import cite, references
from latebloomer.errors import MissingExtra, extra, install_command
from latebloomer.policies.registry import REGISTRY
from tests.helpers.repository import ROOT, modules


def loaded(code, *modules):
    """Which of the modules a new process has loaded after the code."""
    ask = f"\nimport sys\nprint(*(name for name in {modules} if name in sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code + ask], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split()


def test_importing_the_calls_loads_none_of_what_they_do():
    """It comes with the first call; to import them should cost next to nothing."""
    code = "from latebloomer import race, Session"
    others = ["numba", "llvmlite", "scipy", "pandas", "matplotlib", "rich", "typer", "sqlite3"]
    heavy = ["sklearn", "ray", "starlette", "uvicorn", "IPython"]
    standard = ["asyncio", "multiprocessing", "subprocess", "socket", "numpy.random"]
    own = ["racing.run_race", "racing.verdict", "simulation", "problems", "policies.foresight",
           "core.random"]  # fmt: skip
    named = [f"latebloomer.{name}" for name in own]
    assert loaded(code, *others, *heavy, *standard, *named) == []
    assert loaded("from latebloomer import simulate", *others[:-1], "ray", "numpy.random") == []


def test_a_race_loads_neither_a_compiler_nor_policies_that_it_does_not_play():
    code = (
        "import latebloomer\n"
        "def learner():\n    for n in range(1, 99):\n        yield n / (n + 3)\n"
        "latebloomer.race({'a': learner, 'b': learner}, 40, policy='r-sr', journal=None,"
        " progress=False)"
    )
    others = ["numba", "llvmlite", "scipy", "pandas", "matplotlib", "rich"]
    own = ["simulation", "problems", "core.random", "policies.foresight", "policies.power_law"]
    assert loaded(code, *others, *(f"latebloomer.{name}" for name in own)) == []


def test_a_name_that_is_loaded_when_it_is_used_is_where_the_package_says():
    assert set(latebloomer.__all__) <= set(dir(latebloomer))
    assert len(set(latebloomer.__all__)) == len(latebloomer.__all__)
    for name in latebloomer.__all__:
        thing = getattr(latebloomer, name)
        assert not inspect.ismodule(thing) and inspect.getdoc(thing), name
    with pytest.raises(AttributeError, match="'latebloomer' has no attribute 'nothing'"):
        latebloomer.nothing  # noqa: B018


def test_every_cited_key_is_in_the_references_and_every_policy_can_be_cited():
    pattern = re.compile(r"\[([A-Z][A-Za-z]+\d\d)[\],]")
    cited = {key for module in modules() for key in pattern.findall(inspect.getsource(module))}
    assert "Mussi24" in cited and cited - set(references()) == set()
    for policy in REGISTRY.values():
        assert all(key in cite(policy.name) for key in policy.cites)


def test_an_extra_that_is_missing_or_does_not_load_says_what_to_do(tmp_path, monkeypatch):
    said = f"plots need no_such: {install_command('plots')}"
    with pytest.raises(MissingExtra, match=re.escape(said)):
        extra("no_such.module", "plots", "plots")
    why = "libgomp.so.1: cannot open shared object file"
    (tmp_path / "boosters.py").write_text(f"raise OSError({why!r})")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingExtra) as caught:
        extra("boosters", "learners", "lightgbm")
    assert str(caught.value) == (
        f"learners need boosters, which is installed but cannot be imported: {why}; "
        "on Debian: apt-get install libgomp1"
    )


@pytest.mark.parametrize(
    "record, typed",
    [
        (None, "pip install 'latebloomer[sim,plots]'"),
        ('{"url": "file://FOLDER", "dir_info": {}}', "pip install 'FOLDER[sim,plots]'"),
        (
            '{"url": "file://FOLDER", "dir_info": {"editable": true}}',
            "pip install --editable 'FOLDER[sim,plots]'",
        ),
        ('{"url": "file://FOLDER/gone", "dir_info": {}}', "pip install 'latebloomer[sim,plots]'"),
        ('{"url": "https://example.org/a.whl"}', "pip install 'latebloomer[sim,plots]'"),
    ],
)
def test_extras_are_installed_from_where_this_copy_came_from(record, typed, tmp_path, monkeypatch):
    (tmp_path / "my clone").mkdir()
    folder, url = str(tmp_path / "my clone"), str(tmp_path / "my%20clone")
    found = types.SimpleNamespace(read_text=lambda name: record and record.replace("FOLDER", url))
    monkeypatch.setattr("importlib.metadata.distribution", lambda name: found)
    assert install_command("sim", "plots") == typed.replace("FOLDER", folder)


def test_the_files_of_the_repository_agree_on_the_version():
    assert f"version: {latebloomer.__version__}" in (ROOT / "CITATION.cff").read_text()
    versions = re.findall(r"^## \[(.+)\]$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert versions[0] in (latebloomer.__version__, "Unreleased")
    assert latebloomer.__version__ in versions


def test_the_demo_finds_the_late_bloomer():
    ran = subprocess.run(
        [sys.executable, ROOT / "examples" / "setting_a.py"], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert "r-ucbe:noise=0.01 with 800 pulls keeps: late" in ran.stdout
    assert "right" in ran.stdout


def test_the_readme_on_pypi_has_addresses_where_the_repository_has_one(monkeypatch):
    interface = types.ModuleType("hatchling.metadata.plugin.interface")
    interface.MetadataHookInterface = object
    for name in ("hatchling", "hatchling.metadata", "hatchling.metadata.plugin"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, interface.__name__, interface)
    absolute = runpy.run_path(str(ROOT / "hatch_build.py"))["absolute"]
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert absolute(text, "") == text
    made = absolute(text, "https://host/it")
    assert "![" in text and "](https://host/it/raw/HEAD/docs/late-bloomer.png)" in made
    assert not re.findall(r"\]\((?!https?:|#)", made)
