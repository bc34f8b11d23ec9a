"""Whether the text of a page can be read: the contrast rules of the web (WCAG AA) on what a browser computed."""

from __future__ import annotations

from tests.ui.pages.chromium import Page

LEAST = 4.5


def too_faint(page: Page, css: str) -> list[tuple[str, str, str]]:
    """Texts below an element whose contrast is too low, with the colours of ink and paper."""
    poor = []
    for text, ink, paper in page.script(CONTRAST, css):
        light, dark = sorted((luminance(ink), luminance(paper)), reverse=True)
        if (light + 0.05) / (dark + 0.05) < LEAST:
            poor.append((text, ink, paper))
    return poor


def luminance(colour: str) -> float:
    """Of "rgb(...)", as the contrast rules of the web define it."""
    parts = [float(part) / 255 for part in colour.split("(")[1].rstrip(")").split(",")[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


CONTRAST = """
const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
const rgb = colour => {
  canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
  return canvas.getImageData(0, 0, 1, 1).data;
};
const behind = item => {
  for (let at = item; at; at = at.parentElement) {
    const colour = getComputedStyle(at).backgroundColor;
    if (rgb(colour)[3] > 250) return colour;
  }
  return 'white';
};
const found = [];
for (const item of document.querySelectorAll(`${arguments[0]} *`)) {
  const own = [...item.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
  if (!own || !item.checkVisibility() || item.closest('[aria-disabled=true], .hidden-visually')) continue;
  const [ink, paper] = [rgb(getComputedStyle(item).color), rgb(behind(item))];
  found.push([item.textContent.trim().slice(0, 30), `rgb(${[...ink].slice(0, 3)})`, `rgb(${[...paper].slice(0, 3)})`]);
}
return found;
"""
