"""The page of a race as HTML and SVG: `RacePage` is its plain data, and `race_html` draws it."""
