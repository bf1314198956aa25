"""A race drawn as HTML and SVG from plain data; `RacePage` is that data, `race_html` draws it."""
