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

# Text whose color is too near to what is behind it (WCAG AA), or too small to read.
HARD_TO_READ = """
(() => {
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
  const found = [];
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

# Names for those who cannot see: pictures, fields and links without one.
UNNAMED = """
[...document.querySelectorAll("[role=img], input, progress, a, button")].filter((one) =>
  !one.closest("[aria-hidden=true]") && !one.getAttribute("aria-label") &&
  !one.textContent.trim() && !(one.labels && one.labels.length)).map((one) => one.outerHTML)
"""


def check_page(page):
    """Assert all that holds for every page at every width."""
    width = page.value("document.documentElement.clientWidth")
    assert page.value("document.documentElement.scrollWidth") <= width
    assert page.value(OUTSIDE) == []
    assert page.value(HARD_TO_READ) == []
    assert page.value(UNNAMED) == []
    assert page.value("document.querySelectorAll('main img, main style').length") == 0
    assert page.complaints() == []
