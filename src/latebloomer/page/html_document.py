"""The frame of every page, and the pieces that pages are made of: one file that loads nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from importlib.resources import files
from math import isinf, isnan


def html_document(title: str, style: str, body: str, head: str = "") -> str:
    """Return a whole HTML file; `head` is what stands before the title."""
    styled = f"<style>{style}</style>" if style else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"{head}<title>{escape(title)}</title>{styled}</head>"
        f"<body>{body}</body></html>\n"
    )


def page_file(name: str) -> str:
    """Return the text of a style or script of this package."""
    return files("latebloomer.page").joinpath(name).read_text(encoding="utf-8")


def section(title: str, note: str, content: str) -> str:
    """Return a section with a heading and a note below it."""
    small = f'<p class="soft small">{escape(note)}</p>' if note else ""
    return f"<section><h2>{escape(title)}</h2>{small}{content}</section>"


def sentence_list(sentences: Iterable[str]) -> str:
    """Return a list of sentences, each with a capital letter and a full stop."""
    return "<ul>" + "".join(f"<li>{escape(as_sentence(one))}</li>" for one in sentences) + "</ul>"


def names_and_values(values: Mapping[str, str]) -> str:
    """Return a table of two columns.

    >>> names_and_values({"budget": "40"})
    '<table><tr><td>budget</td><td><code>40</code></td></tr></table>'
    """
    lines = "".join(
        f"<tr><td>{escape(name)}</td><td><code>{escape(value)}</code></td></tr>"
        for name, value in values.items()
    )
    return f"<table>{lines}</table>"


def as_sentence(text: str) -> str:
    """Return a text with a capital letter and a full stop.

    >>> as_sentence("the budget is spent")
    'The budget is spent.'
    """
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def number_text(value: float) -> str:
    """Return a score as pages print it; a dash if there is none."""
    if isnan(value):
        return "–"
    return ("∞" if value > 0 else "−∞") if isinf(value) else f"{value:.5g}"
