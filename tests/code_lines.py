#!/usr/bin/env python3
"""Count code lines per package: no blank lines, comments or docstrings. Run it in the root."""

import ast
import collections
import io
import subprocess
import tokenize

SKIP = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
CODE_LINES, SOURCE_FILES, TEST_LINES = 21_000, 180, 22_000  # at most: test_architecture.py
OWNERS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def docstring_lines(tree):
    """Return the line numbers that docstrings occupy."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, OWNERS) and ast.get_docstring(node, clean=False) is not None:
            found.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return found


def code_lines(text):
    """Return how many lines hold code."""
    used = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in SKIP:
            used.update(range(token.start[0], token.end[0] + 1))
    return len(used - docstring_lines(ast.parse(text)))


def tracked(pattern):
    """Return the path and the text of each file that git tracks."""
    listed = subprocess.run(
        ["git", "ls-files", pattern], capture_output=True, text=True, check=True
    )
    for file in listed.stdout.split():
        with open(file, encoding="utf-8") as opened:
            yield file, opened.read()


if __name__ == "__main__":
    packages, files = collections.Counter(), 0
    for file, text in tracked("src/*.py"):
        packages[file.split("/")[2] if file.count("/") > 2 else "top"] += code_lines(text)
        files += 1
    print(
        f"{packages.total()} code lines in {files} files (at most {CODE_LINES} in {SOURCE_FILES})"
    )
    for name, count in packages.most_common():
        print(f"  {name:14}{count:6}")
    lines = sum(text.count("\n") for _, text in tracked("tests/*.py"))
    print(f"{lines} lines in tests (at most {TEST_LINES})")
