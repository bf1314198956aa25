"""A race drawn as HTML and SVG from plain data; `RacePage` is that data, `race_html` draws it."""

from latebloomer.page.race_html import race_html
from latebloomer.page.race_page import RacePage

__all__ = ["RacePage", "race_html"]
