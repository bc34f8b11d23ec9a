"""Small panels of curves as one SVG file, both axes by powers of ten; without a plotting library.

::

    draw([Panel("rows: scan", [10, 100], {"lance_core": [1.0, 9.0], "official": [2.0, 20.0]})])
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _HEIGHT, _ACROSS = 260, 190, 3
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 12, 26, 24
_COLOURS = ("#0b6e99", "#c25b12", "#5b7f2b")


@dataclass(frozen=True)
class Panel:
    """Milliseconds by size, of each of some libraries."""

    title: str
    sizes: Sequence[int]
    curves: Mapping[str, Sequence[float]]


def draw(panels: Sequence[Panel]) -> str:
    """The figure: panels in rows of three, a legend above."""
    rows = -(-len(panels) // _ACROSS)
    width, height = _ACROSS * _WIDTH, rows * _HEIGHT + 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="10">'
    ]
    parts.append(f'<rect width="{width}" height="{height}" fill="white"/>')
    names = [*dict.fromkeys(name for panel in panels for name in panel.curves)]
    for place, name in enumerate(names):
        left = 10 + 110 * place
        parts.append(f'<rect x="{left}" y="7" width="10" height="10" fill="{_COLOURS[place]}"/>')
        parts.append(f'<text x="{left + 15}" y="16">{escape(name)}</text>')
    for place, panel in enumerate(panels):
        x, y = place % _ACROSS * _WIDTH, place // _ACROSS * _HEIGHT + 24
        parts.append(f'<g transform="translate({x},{y})">{"".join(_panel(panel, names))}</g>')
    return "\n".join([*parts, "</svg>", ""])


def _panel(panel: Panel, names: Sequence[str]) -> list[str]:
    values = [max(value, 0.01) for curve in panel.curves.values() for value in curve]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)
    first, last = math.log10(panel.sizes[0]), math.log10(panel.sizes[-1])
    span = (last - first) or 1.0

    def at(size: float, value: float) -> tuple[float, float]:
        across = _LEFT + (math.log10(size) - first) / span * (_WIDTH - _LEFT - _RIGHT)
        up = (math.log10(max(value, 0.01)) - low) / (high - low)
        return across, _HEIGHT - _BOTTOM - up * (_HEIGHT - _TOP - _BOTTOM)

    parts = [f'<text x="{_LEFT}" y="16" font-weight="bold">{escape(panel.title)}</text>']
    for power in range(low, high + 1):
        _, y = at(panel.sizes[0], 10.0**power)
        parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 4}" y="{y + 3:.1f}" text-anchor="end">{_milliseconds(power)}</text>')
    for size in panel.sizes:
        x, _ = at(size, 10.0**low)
        parts.append(f'<text x="{x:.1f}" y="{_HEIGHT - 9}" text-anchor="middle">{size:,}</text>')
    for name, curve in panel.curves.items():
        colour = _COLOURS[names.index(name)]
        points = [at(size, value) for size, value in zip(panel.sizes, curve, strict=True)]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>' for x, y in points]
    return parts


def _milliseconds(power: int) -> str:
    return f"{10**power / 1000:,.0f} s" if power >= 3 else f"{10.0**power:g} ms"
