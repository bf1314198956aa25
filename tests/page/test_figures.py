"""What pictures share: colors that can be seen and told apart."""

import re
from itertools import combinations
from math import dist

import pytest

from latebloomer.page.figures import COLORS, GRAY
from latebloomer.page.race_html import COLORED, page_file


def contrast(color):
    """Return the contrast of a color with white, as WCAG defines it."""
    colors = pytest.importorskip("matplotlib.colors", reason="matplotlib is not installed")
    parts = linear(colors.to_rgb(color))
    return 1.05 / (0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2] + 0.05)


def linear(parts):
    return [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]


def oklab(color):
    """Return a color in Oklab, where equal distances look about equally different."""
    r, g, b = linear([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    long = (0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b) ** (1 / 3)
    middle = (0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b) ** (1 / 3)
    short = (0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b) ** (1 / 3)
    return (
        0.2104542553 * long + 0.7936177850 * middle - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * middle + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * middle - 0.8086757660 * short,
    )


def test_names_can_be_read_and_lines_can_be_seen():
    assert all(contrast(color) >= 4.5 for color in COLORS) and contrast(GRAY) >= 3
    assert len(set(COLORS)) == len(COLORS)


def page_colors():
    """The colors of learners on pages: first the light ones, then the dark ones."""
    found = re.findall(r"--c\d+: (#\w{6})", page_file("race_page.css"))
    return found[:COLORED], found[COLORED:]


@pytest.mark.parametrize("colors", [COLORS, *page_colors()], ids=["figures", "light", "dark"])
def test_no_two_learners_have_nearly_the_same_color(colors):
    assert len(colors) == COLORED
    nearest = min((dist(oklab(a), oklab(b)), a, b) for a, b in combinations(colors, 2))
    assert nearest[0] > 0.06, nearest
