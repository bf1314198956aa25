#!/usr/bin/env python3
"""Count code lines per package: no blank lines, comments or docstrings. Run it in the project's root."""

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


if __name__ == "__main__":
    files = subprocess.run(
        ["git", "ls-files", "src/*.py"], capture_output=True, text=True, check=True
    ).stdout.split()
    packages = collections.Counter()
    for file in files:
        with open(file) as opened:
            packages[file.split("/")[2] if file.count("/") > 2 else "top"] += code_lines(
                opened.read()
            )
    print(f"{sum(packages.values())} code lines in {len(files)} files")
    for name, count in packages.most_common():
        print(f"  {name:14}{count:6}")
