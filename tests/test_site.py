"""The site without building it: every page and policy has its place, and nothing is left out."""

import re
import runpy

from latebloomer.policies.registry import REGISTRY
from tests.helpers.repository import ROOT

DOCS = ROOT / "docs"


def listed(page):
    """The pages of a page's trees."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    trees = re.findall(r"^```\{toctree\}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    lines = {line for tree in trees for line in tree.splitlines() if line and line[0] != ":"}
    return {re.sub(r".*<(.+)>$", r"\1", line) for line in lines}


def test_every_page_is_in_the_index_or_below_a_page_that_is():
    pages = {str(page.relative_to(DOCS).with_suffix("")) for page in DOCS.glob("**/*.md")}
    pages = {page for page in pages if not page.startswith("_")} - {"index"}
    made = {one for one in listed("index") if one.startswith("_made/")}
    below = set().union(*(listed(page) for page in listed("index") - made))
    assert pages == listed("index") - made | below
    assert made == {f"_made/{kind}/index" for kind in ("gallery", "policies", "reference")}


def test_every_policy_has_a_note_on_when_it_fails():
    notes = runpy.run_path(str(DOCS / "tools" / "policy_notes.py"))["NOTES"]
    assert set(notes) == set(REGISTRY)
    assert all(note.family.endswith(".") and note.fails.endswith(".") for note in notes.values())


def test_ten_examples_have_a_title_and_a_picture_and_what_pages_load_is_there():
    examples = sorted((DOCS / "gallery").glob("plot_*.py"))
    assert len(examples) >= 10
    for example in examples:
        text = example.read_text(encoding="utf-8")
        title, line = text.splitlines()[1:3]
        assert line == "=" * len(title), example.name
        assert "plt.show()" in text, example.name
    folder = DOCS / "_static" / "mathjax"  # what pages load is shipped with its license
    assert (folder / "tex-svg.js").stat().st_size > 1e6
    assert "Apache License" in (folder / "LICENSE").read_text(encoding="utf-8")


def test_the_checker_of_a_built_site_sees_what_it_should(tmp_path):
    check = runpy.run_path(str(DOCS / "tools" / "check_site.py"))
    (tmp_path / "a.html").write_text('<a href="b.html#there">b</a><a href="none.html">c</a>')
    (tmp_path / "b.html").write_text('<p id="here"><script src="https://cdn.host/x.js"></script>')
    assert sorted(check["problems"](tmp_path)) == [
        "a.html: b.html#there: no such place in b.html",
        "a.html: none.html: there is no none.html",
        "b.html: loads https://cdn.host/x.js",
    ]


def test_nothing_is_left_of_pages_and_examples_that_are_gone(tmp_path):
    tools = runpy.run_path(str(DOCS / "tools" / "leftovers.py"))
    examples, made, pages = (tmp_path / name for name in ("examples", "made", "pages"))
    for folder in (examples, made / "images", pages):
        folder.mkdir(parents=True)
    (examples / "plot_1_new.py").touch()
    for name in ("plot_1_new", "plot_1_old"):
        (made / f"{name}.rst").touch()
        (made / f"{name}.codeobj.json").touch()
        (made / "images" / f"sphx_glr_{name}_001.png").touch()
    (made / "index.rst").touch()
    tools["remove_old_examples"](made, examples)
    left = sorted(file.name for file in made.rglob("*") if file.is_file())
    assert left == ["index.rst", "plot_1_new.codeobj.json", "plot_1_new.rst",
                    "sphx_glr_plot_1_new_001.png"]  # fmt: skip
    for name in ("index.rst", "here.rst", "here.png", "gone.rst"):
        (pages / name).touch()
    tools["remove_others"](pages, {"index", "here"})
    assert sorted(file.name for file in pages.iterdir()) == ["here.png", "here.rst", "index.rst"]
