"""Code in the guides runs, page by page, as printed and in order.

What a page leaves out because its reader has it (data, models) stands in a comment before the
block, `<!-- python ... -->`, and runs too. A block that cannot run here says why, `<!-- not run:
... -->`. What a block prints may follow it as `text`, and is compared, but for its numbers. Pages
of the libraries that people train with are run in tests/integrations.
"""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ELSEWHERE = {"training-libraries.md", "tuners.md"}  # tests/integrations/test_adapters.py
NOT_RUN = {"ray.md": 1, "simulation.md": 1}  # blocks that need a cluster
PART = re.compile(
    r"^<!-- python\n(?P<hidden>.*?)^-->|(?P<skip>^<!-- not run: [^\n]+ -->\n+)?"
    r"^```python\n(?P<shown>.*?)^```",
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


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    if page.name == "README.md":
        load_lightgbm()
    names = {"__name__": "guide"}
    for number, part in enumerate(parts(page)):
        code = part["hidden"] or part["shown"]
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


def test_every_block_is_seen_and_only_what_needs_a_cluster_is_not_run():
    for page in PAGES:
        shown = [part for part in parts(page) if part["shown"] is not None]
        assert len(shown) == page.read_text(encoding="utf-8").count("\n```python\n"), page.name
        assert sum(bool(part["skip"]) for part in shown) == NOT_RUN.get(page.name, 0), page.name
    assert {page.name for page in PAGES} >= NOT_RUN.keys()
