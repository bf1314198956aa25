"""Sphinx's settings; `make docs` builds the site into docs/_build/html.

Everything a page loads lies beside it: the site opens from the file system, without a network.
Formulas are drawn by MathJax 3.2.2 (npm, Apache 2.0), of which one file and the license are in
`_static/mathjax`. What is made while building (policies, reference, gallery) goes to `_made`.
With LATEBLOOMER_HOME, the repository's address, pages link to it. With LATEBLOOMER_INTERSPHINX=1
and a network, names of Python, NumPy, scikit-learn and others link to their documentation.
"""

import importlib
import inspect
import os
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "tools"), str(HERE.parent)]  # the latter for `measurements`

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
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
if os.environ.get("LATEBLOOMER_INTERSPHINX"):  # fetches a list of names from each of these
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
        "optuna": ("https://optuna.readthedocs.io/en/stable", None),
        "matplotlib": ("https://matplotlib.org/stable", None),
    }
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
copybutton_prompt_text = r">>> |\.\.\. "  # left out of what is copied
copybutton_prompt_is_regexp = True
if HOME := os.environ.get("LATEBLOOMER_HOME", "").rstrip("/"):
    extensions.append("sphinx.ext.linkcode")  # names link to their lines in the repository
    html_theme_options = {
        "source_view_link": f"{HOME}/blob/main/docs/{{filename}}",
        "source_edit_link": f"{HOME}/edit/main/docs/{{filename}}",
    }


def linkcode_resolve(domain, info):
    """Return the address of a name's source, or None if it has none of its own."""
    try:
        thing = importlib.import_module(info["module"])
        for part in info["fullname"].split("."):
            thing = getattr(thing, part)
        file = Path(inspect.getsourcefile(inspect.unwrap(thing)))
        lines, first = inspect.getsourcelines(inspect.unwrap(thing))
        place = file.relative_to(HERE.parent / "src").as_posix()
    except (AttributeError, OSError, TypeError, ValueError):
        return None
    return f"{HOME}/blob/main/src/{place}#L{first}-L{first + len(lines) - 1}"


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


def setup(app):
    made = HERE / "_made"
    remove_old_examples(made / "gallery", HERE / "gallery")
    cooldown_picture.check()
    write_policy_pages(made / "policies")
    write_reference(made / "reference")
    app.connect("source-read", from_the_repository)
    app.connect("env-get-outdated", lambda *_: ["index"])  # optional pages come and go
