"""A race drawn as HTML and SVG."""
