"""A fresh machine next year: versions known to be good, which `make` installs by."""

import os
import re
import runpy
import shutil
import subprocess
import sys
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.helpers.repository import ROOT

FILES = sorted((ROOT / "constraints").glob("*.txt"))
PIN = re.compile(r"[A-Za-z0-9][\w.-]*==[0-9][0-9A-Za-z.!]*")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
SCRIPT = runpy.run_path(str(ROOT / "constraints" / "environments.py"))

needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def of_group(name):
    """What pyproject.toml asks for, read anew."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = settings["project"]
    todo, found = [*project["dependencies"], *settings["dependency-groups"][name]], []
    while todo:
        one = Requirement(todo.pop())
        if one.name == "latebloomer":
            for extra in one.extras:
                todo += project["optional-dependencies"][extra]
        else:
            found.append(one)
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_constraints_file_has_allowed_pins_and_nothing_else(file):
    head, *lines = file.read_text(encoding="utf-8").splitlines()
    assert head.startswith("# Versions known to be good with Python 3.")
    assert not [line for line in lines if not PIN.fullmatch(line)]  # an index, a host, a path
    assert lines == sorted(lines, key=str.lower)
    pins = dict(line.split("==") for line in lines)
    versions = {canonicalize_name(name): version for name, version in pins.items()}
    for one in of_group(file.name.rpartition("-")[0]):
        assert one.specifier.contains(versions[canonicalize_name(one.name)]), str(one)
    assert {"pip", "hatchling"} <= set(versions)  # what installs and what builds


def test_pins_hold_no_version_of_one_index_and_the_oldest_are_the_lower_bounds():
    listed = "torch==2.13.0+cpu\nsetuptools==65.5.0\nPyYAML==6.0.3\nabc==1!2.0rc1\n"
    assert SCRIPT["pins"](listed) == ["abc==1!2.0rc1", "PyYAML==6.0.3", "torch==2.13.0"]
    oldest = dict(line.split("==") for line in SCRIPT["lower_bounds"]("dev"))
    asked = {one.name: str(one.specifier).removeprefix(">=") for one in of_group("dev")}
    assert oldest == asked and "ray" in oldest  # whose extra a constraint must not have


def installing(monkeypatch, tmp_path, cannot):
    """Install with a pip that fails for some words; what was asked of it, and what is said."""
    asked = []

    def pip(*words, check=True):
        asked.append([word for word in words if not word.startswith(("-", "/"))])
        failing = [word for word in asked[-1] if any(f"{one}" in word for one in cannot)]
        assert not (failing and check)
        return "no matching distribution" if failing else ""

    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    known = "constraints/integrations-py311.txt"
    SCRIPT["install"]("integrations", known, "torch==2.13.0+cpu", pip=pip)
    return asked, (tmp_path / "not-installed.txt").read_text()


def test_libraries_are_installed_at_once_and_what_cannot_be_is_left_out(monkeypatch, tmp_path):
    asked, said = installing(monkeypatch, tmp_path, cannot=[])
    whole = [".", "integrations"]
    assert asked == [["pip>=25.1"], ["torch==2.13.0+cpu"], whole] and said == ""
    asked, said = installing(monkeypatch, tmp_path, ["integrations", "[catboost]", "[wandb]"])
    assert [".[xgboost]"] in asked and [".[mlflow]"] in asked
    assert said.splitlines() == [
        "catboost: no matching distribution",
        "wandb: no matching distribution",
        "2 extras could not be installed here",
    ]


def test_another_build_of_torch_is_not_held_to_the_known_version():
    held, file = SCRIPT["_held"], "constraints/integrations-py311.txt"
    for other in ("torch==9.1+cpu", "/wheels/torch-9.1+cpu-cp311-cp311-linux_x86_64.whl"):
        lines = held(file, [other]).splitlines()
        assert not [line for line in lines if line.startswith("torch==")]
        assert [line for line in lines if line.startswith("torchmetrics==")]
    assert "\ntorch==" in held(file, []) and held("", ["torch"]) == ""


def make(*words):
    """What make prints, whatever the make that runs the tests was told."""
    own = {name: value for name, value in os.environ.items() if not re.match("M(AKE|FLAGS)", name)}
    ran = subprocess.run(["make", *words], cwd=ROOT, env=own, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@needs_make
def test_help_lists_every_target():
    listed = re.findall(r"^make ([\w-]+)", make("help"), re.MULTILINE)
    targets = re.findall(r"^\.PHONY: (.+)$", MAKEFILE, re.MULTILINE)
    assert sorted(["help", *listed]) == sorted(targets)


def commands_to_install(tmp_path, version, *words):
    """What make would do with a Python of this version."""
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\necho {version}\n")
    python.chmod(0o755)
    place = tmp_path / "venv"
    return make("-n", f"{place}/.ready", f"PYTHON={python}", f"VENV={place}", *words)


@needs_make
def test_make_installs_by_the_file_of_this_python(tmp_path):
    said = commands_to_install(tmp_path, "py311")
    assert said.count("--constraint constraints/dev-py311.txt") == 2  # of pip and of the rest
    assert "--build-constraint constraints/dev-py311.txt --editable . --group dev" in said
    assert "lower bounds" not in said


@needs_make
@pytest.mark.parametrize("group", ["dev", "docs"])
def test_make_says_where_there_is_no_file_and_installs_by_the_lower_bounds(tmp_path, group):
    said = commands_to_install(tmp_path, "py399", f"GROUP={group}").splitlines()
    assert said[0] == (
        f"there is no constraints/{group}-py399.txt, made on this Python: installing by the lower "
        "bounds of pyproject.toml"
    )
    assert not [line for line in said if "--constraint" in line]
    installs = [line for line in said if "--editable" in line]
    assert len(installs) == 1 and installs[0].endswith(f"--editable . --group {group}")
