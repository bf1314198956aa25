"""Phrases that are never right in this project's texts, and how help and parameter texts begin."""

import io
import re
import tokenize

import pytest

from tests.helpers.repository import ROOT

# Each with what to write instead.
NEVER = {
    r"\banew\b": "again, from scratch",
    r"\bwho(?:m|so)?ever\b": "the learner that",
    r"\bgo(?:es|ing)? on with\b": "resume, continue",
    r"\b(?:of|on) its own(?=[.,;:)]|$| and)": "its own, separate",
    r"\b(?:pulls|steps|arms|learners|trials) in all\b": "in total",
    r"\bby the clock\b": "time-based, wall-clock",
    r"\bso many (?!that\b)": "that many, N",
    r"(?<!there )\bis no (?!longer\b|more\b|less\b|other\b|better\b|worse\b)": "is not a",
    r"\bnamed the best\b": "selected",
    r"\btrained on with\b": "trained further with",
    r"\bto the letter\b": "exactly",
    r"\b(?:bad|another|same|own|of) luck\b": "random seed, noise",
    r"\bcannot be had\b": "is not available",
    r"\bat hand\b": "available",
    r"\bnewcomers?\b": "new learner",
    r"\bis refused in words\b": "raises an error",
}
TEXTS = sorted(
    file
    for pattern in ("*.md", "docs/*.md", "src/**/*.py", "examples/*.py", "docs/gallery/*.py")
    for file in ROOT.glob(pattern)
)


def prose(file):
    """The text of a page, or the strings and comments of a module."""
    text = file.read_text(encoding="utf-8")
    if file.suffix != ".py":
        return text
    kinds = (tokenize.STRING, tokenize.COMMENT)
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return "\n".join(token.string for token in tokens if token.type in kinds)


LINES = [(file, line) for file in TEXTS for line in prose(file).splitlines()]


@pytest.mark.parametrize("phrase", NEVER)
def test_a_phrase_that_is_never_right_is_nowhere(phrase):
    found = [
        f"{file.relative_to(ROOT)}: {line.strip()[:90]}"
        for file, line in LINES
        if re.search(phrase, line, re.IGNORECASE) and "voice: ok" not in line
    ]
    assert not found, f"write {NEVER[phrase]!r} instead:\n" + "\n".join(found)


FRAGMENT = re.compile(r"^(Of|Or|By|That|Whom)\b")


@pytest.mark.parametrize(
    ("files", "texts"),
    [("src/**/*.py", r"^ +\w+ : [^\n]+\n +([^\n]+)"),
     ("src/latebloomer/cli/*.py", r'help=\(?\s*"([^"]+)"')],
    ids=["parameters", "help"],
)  # fmt: skip
def test_no_text_begins_with_a_fragment(files, texts):
    found = [
        f"{file.relative_to(ROOT)}: {text}"
        for file in ROOT.glob(files)
        for text in re.findall(texts, file.read_text("utf-8"), re.MULTILINE)
        if FRAGMENT.match(text)
    ]
    assert not found, "\n".join(found)
