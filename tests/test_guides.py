"""Code in the guides runs, page by page, as printed and in order.

A block that uses names of an earlier one stands on a page that says so. A block that cannot run
here says why, `<!-- not run: ... -->`. What a block prints may follow it as `text`, and is
compared, but for its numbers. Pages of the libraries that people train with are run in
tests/integrations.
"""

import builtins
import contextlib
import io
import re
import symtable

import pytest

from tests.helpers.repository import ROOT

ELSEWHERE = {"training-libraries.md", "tuners.md"}  # tests/integrations/test_adapters.py
NOT_RUN = {"README.md": 1, "ray.md": 1, "simulation.md": 1}  # a minute; a cluster
# paper.md compiles many policies; index.md has the first example of README.md.
SLOW = {"paper.md", "index.md"}
CONTINUES = (  # one of these stands on a page whose blocks use names of earlier ones
    "paste the blocks in order",
    "Paste this first",
    "With the `learners` of",
)
PART = re.compile(
    r"(?P<skip>^<!-- not run: [^\n]+ -->\n+)?^```python\n(?P<shown>.*?)^```",
    re.MULTILINE | re.DOTALL,
)
NUMBER = re.compile(r"\d[\d.e-]*")
PAGES = sorted(
    page
    for page in [ROOT / "README.md", *ROOT.glob("docs/*.md")]
    if page.name not in ELSEWHERE and "```python" in page.read_text(encoding="utf-8")
)


def parts(page):
    return list(PART.finditer(page.read_text(encoding="utf-8")))


def marked(pages):
    """Return pages as parameters of a test, those that take long marked as slow."""
    for page in pages:
        marks = [pytest.mark.slow] if page.name in SLOW else []
        yield pytest.param(page, id=page.name, marks=marks)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("page", [*marked(PAGES)])
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    if page.name in ("README.md", "index.md"):
        load_lightgbm()
    names = {"__name__": "guide"}
    for number, part in enumerate(parts(page)):
        code = part["shown"]
        if not part["skip"]:
            with (
                contextlib.redirect_stdout(io.StringIO()) as printed,
                contextlib.redirect_stderr(io.StringIO()),
            ):
                exec(compile(code, f"{page.name}, block {number}", "exec"), names)
            output = re.match(r"\s*```text\n(.*?)^```", part.string[part.end() :], re.M | re.S)
            if output:
                assert shown_of(printed.getvalue(), without_numbers(output[1]))


def load_lightgbm():
    """Skip where its wheel finds no OpenMP on the machine, and none could be installed."""
    try:
        import lightgbm  # noqa: F401
    except OSError as error:
        pytest.skip(f"the README needs LightGBM, which does not load here: {error}")


def shown_of(printed, shown):
    """Return whether the output is as shown; a page may end it with "..."."""
    words = without_numbers(printed)
    return words[: len(shown) - 1] == shown[:-1] if shown[-1] == "..." else words == shown


def without_numbers(printed):
    """What must be as printed: the words and their order; seconds and last digits may differ."""
    return NUMBER.sub("#", printed).split()


def test_every_block_is_seen_and_only_what_needs_a_minute_or_a_cluster_is_not_run():
    for page in PAGES:
        shown = parts(page)
        assert len(shown) == page.read_text(encoding="utf-8").count("\n```python\n"), page.name
        assert sum(bool(part["skip"]) for part in shown) == NOT_RUN.get(page.name, 0), page.name
    assert {page.name for page in PAGES} >= NOT_RUN.keys()


@pytest.mark.parametrize(
    "page",
    [*PAGES, *(ROOT / "docs" / name for name in sorted(ELSEWHERE))],
    ids=lambda page: page.name,
)
def test_a_block_runs_when_it_is_pasted_alone_or_the_page_says_that_it_continues(page):
    missing = [names for part in parts(page) if (names := undefined(part["shown"]))]
    if missing:
        assert any(text in " ".join(page.read_text("utf-8").split()) for text in CONTINUES), (
            missing
        )


def undefined(code):
    """Return the names that a block uses and does not define."""
    whole = symtable.symtable(code, "block", "exec")
    defined = {
        name.get_name()
        for name in whole.get_symbols()
        if name.is_assigned() or name.is_imported() or name.is_namespace()
    }
    used, tables = set(), [whole]
    for table in tables:
        tables += table.get_children()
        used |= {
            name.get_name()
            for name in table.get_symbols()
            if name.is_referenced() and (table is whole or name.is_global())
        }
    return used - defined - {*vars(builtins), "__name__"}


def test_undefined_names_of_a_block_are_found():
    code = """
import a
def f(x):
    y = x + z
    return [y for _ in b]
print(f(a), [one for one in c])
"""
    assert undefined(code) == {"z", "b", "c"}
