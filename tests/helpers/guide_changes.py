"""The changes that CONTRIBUTING.md shows: its blocks, and their hunks file by file."""

import re

from tests.helpers.repository import ROOT

GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
SECTIONS = re.findall(r"^## To add (.*)$", GUIDE, re.MULTILINE)


def section(what):
    return GUIDE.split(f"## To add {what}")[1].split("\n## ")[0]


def blocks(what, language="python"):
    return re.findall(rf"```{language}\n(.*?)```", section(what), re.DOTALL)


def changes():
    """The files that the guide changes, in order, and the hunks of each."""
    for what in SECTIONS:
        for diff in blocks(what, "diff"):
            for name, hunks in re.findall(r"^--- (\S+)\n(.*?)(?=^--- |\Z)", diff, re.M | re.S):
                yield name, hunks.split("@@\n")


def patched(name, text, hunks):
    """The text with hunks of a diff applied; each must fit in exactly one place."""
    for hunk in hunks:
        lines = hunk.splitlines(keepends=True)
        old = "".join(line[1:] for line in lines if line[0] != "+").rstrip("\n")
        new = "".join(line[1:] for line in lines if line[0] != "-").rstrip("\n")
        assert text.count(old) == 1, f"{name} has {text.count(old)} places with:\n{old}"
        text = text.replace(old, new)
    return text
