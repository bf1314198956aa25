"""Sphinx's settings; `make docs` builds the site into docs/_build/html.

Everything a page loads lies beside it: the site opens from the file system, without a network.
Formulas are drawn by MathJax 3.2.2 (npm, Apache 2.0), of which one file and the license are in
`_static/mathjax`. What is made while building (policies, reference, gallery, what the comparison
measures) goes to `_made`.
"""

import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "tools"), str(HERE.parent)]  # the latter for `benchmarks`

import comparison_page  # noqa: E402
import cooldown_picture  # noqa: E402
from leftovers import remove_old_examples  # noqa: E402
from policy_pages import write_policy_pages  # noqa: E402
from reference_pages import write_reference  # noqa: E402

from latebloomer import __version__  # noqa: E402

project = "latebloomer"
author = "latebloomer developers"
copyright = "latebloomer developers, MIT license"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery/**", "tools", "**sg_execution_times.rst"]
suppress_warnings = ["config.cache"]

# --- what pages are written in ---

myst_heading_anchors = 4  # links to headings as on GitHub
myst_enable_extensions = ["colon_fence", "deflist"]
default_role = "py:obj"  # `race` in a docstring is a link where there is such a name
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # signatures show types; a paragraph of them helps nobody
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_preprocess_types = False

# --- how they look ---

html_theme = "furo"
html_title = f"latebloomer {__version__}"
html_static_path = ["_static"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_css_files = ["site.css"]
mathjax_path = "mathjax/tex-svg.js"

# --- the gallery: scripts that run while the site is built ---

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "_made/gallery",
    "filename_pattern": r"\.py$",
    "download_all_examples": False,
    "show_memory": False,
    "remove_config_comments": True,
    "write_computation_times": False,
    "abort_on_example_error": True,
    "notebook_images": False,
    "within_subsection_order": "FileNameSortKey",
    "image_scrapers": ("matplotlib",),
    "capture_repr": ("__repr__",),
    "doc_module": (),
}


OPTIONAL = ("performance",)  # pages that are listed where they are there


def from_the_repository(app, name, source):
    """Links out of this folder, which GitHub follows, lead to the pages made of those files."""
    if name == "index":
        for page in OPTIONAL:
            if not (HERE / f"{page}.md").exists():
                source[0] = source[0].replace(f"\n{page}\n", "\n")
    for file, page in (
        ("../CONTRIBUTING.md", "contributing.md"),
        ("../CHANGELOG.md", "changelog.md"),
    ):
        up = "../" * name.count("/")
        source[0] = source[0].replace(f"({up}{file}", f"({up}{page}")
    source[0] = re.sub(r"\[([^\]]+)\]\(\.\./contrib/[^)]*\)", r"`\1`", source[0])  # no pages


def with_what_was_measured(blocks):
    """The comparison's page with what was played now, where it could be."""

    def fill(app, name, source):
        if name == "comparison":
            source[0] = comparison_page.filled(source[0], blocks)

    return fill


def setup(app):
    made = HERE / "_made"
    remove_old_examples(made / "gallery", HERE / "gallery")
    cooldown_picture.check()
    write_policy_pages(made / "policies")
    write_reference(made / "reference")
    compared = comparison_page.built_blocks(made / "comparison")
    app.connect("source-read", from_the_repository)
    app.connect("source-read", with_what_was_measured(compared))
    # Optional pages come and go; what is measured is new.
    app.connect("env-get-outdated", lambda *_: ["index", "comparison"])
