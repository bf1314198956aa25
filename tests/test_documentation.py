"""What documents and scripts name exists: modules, files, other documents and their headings."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from tests.helpers.guide_changes import changes, patched
from tests.helpers.repository import ROOT

SOURCE = ROOT / "src" / "latebloomer"
DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]
SCRIPTS = [
    *ROOT.glob("examples/*.py"),
    *ROOT.glob("measurements/*.py"),
    *ROOT.glob("docs/**/*.py"),
]
IMPORT = re.compile(r"^ *from (latebloomer[\w.]*) import (\([^)]*\)|[^\n(]+)", re.MULTILINE)
FILE = re.compile(r"`([\w./-]+\.(?:py|bib|toml|md))`")
PAGE = re.compile(r"docs/[\w-]+\.md")
MADE_UP = {  # by examples, for which tests make them
    "mine.py", "best_of_late.py", "scipy.py", "test_scipy.py", "learner_by_learner.py",
    "lead_figure.py",
}  # fmt: skip


def text_of(file):
    return file.read_text(encoding="utf-8")


def name_of(file):
    return str(file.relative_to(ROOT))


@pytest.mark.parametrize("file", DOCUMENTS + SCRIPTS, ids=name_of)
def test_what_it_imports_of_ours_is_there(file):
    for module, names in IMPORT.findall(text_of(file)):
        if module.rpartition(".")[2] + ".py" in MADE_UP:
            continue
        for name in re.findall(r"(\w+)(?: as \w+)?", re.sub(r" as \w+|#.*", "", names)):
            found = import_module(module)
            assert hasattr(found, name) or import_module(f"{module}.{name}"), f"{module} {name}"


LISTS = {"CHANGELOG.md", "concepts.md"}  # to look things up in


@pytest.mark.parametrize("file", DOCUMENTS, ids=name_of)
def test_files_and_links_of_a_page_are_there_and_a_long_one_has_a_picture_or_a_table(file):
    text = text_of(file)
    places = (ROOT, SOURCE, ROOT / "src", *(path for path in SOURCE.rglob("*") if path.is_dir()))
    for named in FILE.findall(text):
        made_up = Path(named).name in MADE_UP
        assert made_up or any((place / named).is_file() for place in places), named
    for link in re.findall(r"\]\((?!https?:)([^)]*)\)", text):
        path, _, anchor = link.partition("#")
        if path.startswith("_made/"):  # drawn by `make docs`, which checks it
            continue
        target = (file.parent / path).resolve() if path else file
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link
    prose = re.sub(r"^```.*?^```|^<!--.*?-->", "", text, flags=re.DOTALL | re.MULTILINE)
    long = len(prose.splitlines()) > 100 and file.name not in LISTS
    assert not long or re.search(r"^\| ?---|^!\[", prose, re.MULTILINE)


def test_pages_that_the_sources_name_are_there():
    named = {page for file in SOURCE.rglob("*.py") for page in PAGE.findall(text_of(file))}
    assert len(named) > 5 and [page for page in named if not (ROOT / page).is_file()] == []


def anchors(file):
    """The headings of a document, as links call them."""
    prose = re.sub(r"^```.*?^```", "", text_of(file), flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_each_change_that_the_guide_for_contributors_shows_fits_its_file():
    if (SOURCE / "policies" / "best_of_late.py").exists():
        pytest.skip("this is a copy in which the changes have been made")
    texts = {}
    for name, hunks in changes():
        text = texts[name] if name in texts else text_of(ROOT / name)
        texts[name] = patched(name, text, hunks)
    assert len(texts) > 10
