"""What pictures of matplotlib share: colors that can be seen."""

import pytest

from latebloomer.page.figures import COLORS, GRAY


def contrast(color):
    """Return the contrast of a color with white, as WCAG defines it."""
    colors = pytest.importorskip("matplotlib.colors", reason="matplotlib is not installed")
    parts = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in
             colors.to_rgb(color)]  # fmt: skip
    return 1.05 / (0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2] + 0.05)


def test_names_can_be_read_and_lines_can_be_seen():
    assert all(contrast(color) >= 4.5 for color in COLORS) and contrast(GRAY) >= 3
    assert len(set(COLORS)) == len(COLORS)
