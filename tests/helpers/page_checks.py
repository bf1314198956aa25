"""What is asked of a page in a browser: nothing outside, nothing too pale, nothing too small."""

# Elements that stick out of the window, but for those in a box that cuts off or scrolls.
OUTSIDE = """
(() => {
  const width = document.documentElement.clientWidth, found = [];
  const cut = (one) => {
    for (let up = one.parentElement; up; up = up.parentElement) {
      const flow = getComputedStyle(up).overflowX;
      if (up.tagName !== "HTML" && up.tagName !== "BODY" && flow !== "visible") return true;
    }
    return false;
  };
  for (const one of document.body.querySelectorAll("*")) {
    const box = one.getBoundingClientRect();
    if (!box.width || !box.height || cut(one)) continue;
    if (one.ownerSVGElement && getComputedStyle(one).overflowX !== "visible") continue;
    if (getComputedStyle(one).visibility === "hidden" || one.closest("title, defs")) continue;
    if (box.left < -1 || box.right > width + 1)
      found.push(`${one.tagName} ${one.className.baseVal ?? one.className} ` +
        `${Math.round(box.left)}..${Math.round(box.right)} ${one.textContent.slice(0, 40)}`);
  }
  return found;
})()
"""

# How light a color is, and the color behind an element.
COLORS = """
  const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => {
    const part = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const behind = (one) => {
    for (let up = one; up; up = up.parentElement) {
      const color = parse(getComputedStyle(up).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
"""

# Text whose color is too near to what is behind it (WCAG AA), or too small to read.
HARD_TO_READ = (
    """
(() => {"""
    + COLORS
    + """  const found = [];
  for (const one of document.body.querySelectorAll("*")) {
    const own = [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || one.tagName === "title" || !one.getBoundingClientRect().width) continue;
    const style = getComputedStyle(one), size = parseFloat(style.fontSize);
    const ink = one instanceof SVGElement ? style.fill : style.color;
    const [a, b] = [light(parse(ink)), light(behind(one))].sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    const needed = size >= 24 || (size >= 18.6 && style.fontWeight >= 700) ? 3 : 4.5;
    if (contrast < needed || size < 11)
      found.push([one.tagName, ink, contrast, size, one.textContent.slice(0, 30)].join());
  }
  return found;
})()
"""
)

# Lines, marks and bars whose color is too near to what is behind them (WCAG: 3 to 1). Grid lines
# and areas only repeat what numbers and lines say.
HARD_TO_SEE = (
    """
(() => {"""
    + COLORS
    + """  const found = new Set();
  for (const one of document.querySelectorAll("svg :is(path, line, circle, polyline)")) {
    if (one.matches(".grid, .area") || !one.getClientRects().length) continue;
    const style = getComputedStyle(one), own = one.matches(".dot") ? style.fill : style.stroke;
    if (own === "none") continue;
    let seen = 1;
    for (let up = one; up && up.tagName !== "BODY"; up = up.parentElement)
      seen *= parseFloat(getComputedStyle(up).opacity);
    const back = behind(one), ink = parse(own).map((v, k) => seen * v + (1 - seen) * back[k]);
    const [a, b] = [light(ink), light(back)].sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    if (contrast < 3)
      found.add(`${one.tagName} ${one.className.baseVal} ${own} ${contrast.toFixed(2)}`);
  }
  return [...found];
})()
"""
)

# Words on two lines: all but code, and values of settings such as paths.
BROKEN_WORDS = """
(() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
  const range = document.createRange();
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (node.parentElement.closest("pre, code, script, style, svg, .two")) continue;
    for (const word of node.data.matchAll(/[^\\s\\-–—…/]+/g)) {
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const tops = new Set([...range.getClientRects()].map((box) => Math.round(box.top)));
      if (tops.size > 1) found.push(word[0]);
    }
  }
  return found;
})()
"""

# What sticks out of its card, but for what its box cuts off or scrolls.
OUT_OF_CARD = """
[...document.querySelectorAll("section *, .fact *")].filter((one) => {
  const scrolls = one.closest(".wide, pre, summary, thead, #curves");
  const box = one.getBoundingClientRect();
  const card = one.closest("section, .fact").getBoundingClientRect();
  if (!box.width || !box.height || scrolls) return false;
  return box.left < card.left - 1 || box.right > card.right + 1;
}).map((one) => [one.tagName, one.className.baseVal ?? one.className, one.textContent])
"""

# Names for those who cannot see: pictures, fields and links without one.
UNNAMED = """
[...document.querySelectorAll(
  "[role=img], [role=application], [role=grid], [tabindex='0'], input, progress, a, button"
)].filter((one) =>
  !one.closest("[aria-hidden=true]") && !one.getAttribute("aria-label") &&
  !one.textContent.trim() && !(one.labels && one.labels.length)).map((one) => one.outerHTML)
"""


def check_page(page, words=True):
    """Assert all that holds for every page at every width; `words`: names consist of words."""
    width = page.value("document.documentElement.clientWidth")
    assert page.value("document.documentElement.scrollWidth") <= width
    assert page.value(OUTSIDE) == []
    assert page.value(HARD_TO_READ) == []
    assert page.value(HARD_TO_SEE) == []
    assert not words or page.value(BROKEN_WORDS) == []
    assert page.value(OUT_OF_CARD) == []
    assert page.value(UNNAMED) == []
    assert page.value("document.querySelectorAll('main img, main style').length") == 0
    assert page.complaints() == []
