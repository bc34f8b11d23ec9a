"""Draw a `TableReport` as one HTML page with inline styles and charts."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from lance_core.maintenance.report import TableReport

_STYLE = """
:root{color-scheme:light dark;--bg:#fff;--panel:#f6f8fb;--line:#dfe5ee;--ink:#1b2330;--soft:#5d6b80;--blue:#2b6cb0;
--good:#2f855a;--warn:#b7791f;--bad:#c53030}
@media(prefers-color-scheme:dark){:root{--bg:#12161f;--panel:#1a202d;--line:#2d3748;--ink:#e8edf5;--soft:#94a3b8;--blue:#63b3ed;
--good:#68d391;--warn:#f6e05e;--bad:#fc8181}}
*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--ink);font:14px/1.5 system-ui,sans-serif}
main{max-width:1100px;margin:0 auto;padding:24px}h1{font-size:20px;margin:0 0 4px;overflow-wrap:anywhere}
h2{font-size:13px;color:var(--soft);margin:0 0 10px}
.grid{display:grid;gap:14px;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));margin:16px 0}
.card{background:var(--panel);border:1px solid var(--line);border-radius:8px;padding:14px;margin:14px 0;overflow-x:auto}
.grid .card{margin:0}
.figure{font-size:22px;font-weight:650;font-variant-numeric:tabular-nums}.soft{color:var(--soft);font-size:12px}
table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:5px 9px;border-bottom:1px solid var(--line)}
th{color:var(--soft);font-size:12px}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
.error{color:var(--bad)}.warning{color:var(--warn)}.note{color:var(--soft)}
code{font:12px ui-monospace,monospace;overflow-wrap:anywhere}
svg text{fill:var(--soft);font:11px system-ui,sans-serif}
"""
_COLOURS = {"Append": "var(--blue)", "Rewrite": "var(--good)", "Delete": "var(--bad)", "CreateIndex": "var(--warn)"}


def report_html(report: TableReport) -> str:
    """Return the page."""
    seen = report.observation
    figures = [
        ("Health", _health(report), f"{len(report.findings)} findings"),
        ("Rows", f"{seen.num_rows:,}", f"{seen.deleted_share:.1%} of all rows deleted"),
        ("Size", size_text(seen.num_bytes), "data files of this version"),
        ("Fragments", f"{seen.num_fragments:,}", f"{seen.fragments_per_gb:,.1f} for each GB"),
        ("Versions", f"{seen.num_versions:,}", f"newest is {seen.version}"),
        ("Last write", age_text(report.made_at - seen.written_at), "before this report"),
    ]
    cards = "".join(
        f'<div class="card"><h2>{name}</h2><div class="figure">{value}</div><div class="soft">{note}</div></div>'
        for name, value, note in figures
    )
    parts = [
        _card("Findings", _findings(report)),
        _card("Versions: rows changed", _timeline(report)),
        _card("Fragments by size tier", _tiers(report)),
        _card("Indices", _indices(report)),
        _card("Staged work", _staged(report)),
        _card("Upkeep: predicted and real", _upkeep(report)),
        _card("Most deleted fragments", _deletions(report)),
        _card("Schema", _table(("Column", "Type", "Nullable"), report.schema)),
        _card("Tags", _table(("Tag", "Version"), report.tags.items())),
    ]
    made = dt.datetime.fromtimestamp(report.made_at, dt.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    title = escape(report.uri)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<style>{_STYLE}</style></head><body><main><h1>{title}</h1>"
        f'<div class="soft">version {seen.version}, {made}</div><div class="grid">{cards}</div>'
        f"{''.join(parts)}</main></body></html>"
    )


def size_text(size: float) -> str:
    """Bytes for people.

    >>> size_text(1536), size_text(5)
    ('1.5 KiB', '5 B')
    """
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:,.1f} PiB"


def age_text(seconds: float) -> str:
    """A duration for people.

    >>> age_text(30), age_text(7200), age_text(200000)
    ('30 s', '2.0 h', '2.3 d')
    """
    for limit, unit, by in ((120, "s", 1), (7200, "min", 60), (172800, "h", 3600)):
        if seconds < limit:
            return f"{seconds / by:.0f} {unit}"
    return f"{seconds / 86400:.1f} d" if seconds >= 172800 else f"{seconds / 3600:.1f} h"


def _card(title: str, body: str) -> str:
    return f'<section class="card"><h2>{title}</h2>{body}</section>' if body else ""


def _table(names: Sequence[str], rows: Iterable[Sequence[Any]], numbers: frozenset[int] = frozenset()) -> str:
    kept = list(rows)
    if not kept:
        return ""

    def mark(at: int) -> str:
        return ' class="n"' if at in numbers else ""

    head = "".join(f"<th{mark(at)}>{escape(name)}</th>" for at, name in enumerate(names))
    lines = ("".join(f"<td{mark(at)}>{escape(str(value))}</td>" for at, value in enumerate(row)) for row in kept)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><tr>{head}</tr>{body}</table>"


def _health(report: TableReport) -> str:
    if report.health is None:
        return "not checked"
    is_bad = report.health < 50 or any(item.severity == "error" for item in report.findings)
    colour = "bad" if is_bad else "good" if report.health >= 80 else "warn"
    return f'<span style="color:var(--{colour})">{report.health}</span>'


def _findings(report: TableReport) -> str:
    if not report.findings:
        return "The table is healthy, as far as it was checked."
    return "".join(
        f'<p><b class="{item.severity}">{escape(item.severity)}: {escape(item.title)}</b> '
        f"({item.size:,g} {escape(item.unit)})<br>{escape(item.cost)}<br><code>{escape(item.cure)}</code></p>"
        for item in report.findings
    )


def _timeline(report: TableReport) -> str:
    entries = list(report.log)[::-1]
    if not entries:
        return ""
    most = max((abs(entry.rows_changed or 0) for entry in entries), default=0)
    width = max(6.0, min(40.0, 1000 / len(entries)))
    bars = []
    for at, entry in enumerate(entries):
        height = 4 + 76 * math.log1p(abs(entry.rows_changed or 0)) / math.log1p(most) if most else 4
        said = f"version {entry.version}: {entry.operation or 'unknown'}, {entry.rows_changed or 0:+,} rows"
        colour = _COLOURS.get(entry.operation or "", "var(--soft)")
        box = f'x="{at * width:.1f}" y="{90 - height:.1f}" width="{width * 0.8:.1f}" height="{height:.1f}"'
        bars.append(f'<rect {box} rx="2" fill="{colour}"><title>{escape(said)}</title></rect>')
        if at % max(1, len(entries) // 12) == 0:
            bars.append(f'<text x="{at * width:.1f}" y="106">v{entry.version}</text>')
    total, label = f"{width * len(entries):.0f}", "rows changed by version"
    return f'<svg viewBox="0 0 {total} 110" width="{total}" role="img" aria-label="{label}">{"".join(bars)}</svg>'


def _tiers(report: TableReport) -> str:
    rows = [
        (
            "target size" if tier.tier == 0 else f"tier {tier.tier}",
            f"{tier.fragments:,}",
            f"{tier.rows:,}",
            size_text(tier.bytes),
        )
        for tier in report.observation.tiers
    ]
    return _table(("Tier", "Fragments", "Rows", "Size"), rows, frozenset((1, 2, 3)))


def _indices(report: TableReport) -> str:
    rows = [
        (item["name"], item["type"], item["segments"], f"{item['covered']:.0%}", size_text(item["bytes"]))
        for item in report.indices
    ]
    return _table(("Index", "Type", "Segments", "Rows covered", "Size"), rows, frozenset((2, 3, 4)))


def _staged(report: TableReport) -> str:
    rows = [
        (item["identity"], item["kind"], item["state"], item["read_version"], age_text(report.made_at - item["started"]))
        for item in report.staged
    ]
    return _table(("Identity", "Work", "State", "Planned on", "Age"), rows)


def _deletions(report: TableReport) -> str:
    rows = [(number, f"{deleted:,}", size_text(size)) for number, deleted, size in report.deletions]
    return _table(("Fragment", "Deleted rows", "Size"), rows, frozenset((1, 2)))


def _upkeep(report: TableReport) -> str:
    head = ("When", "Step", "Outcome", "Why", "Bytes predicted", "Bytes", "Seconds predicted", "Seconds", "Run")
    rows = [
        (
            dt.datetime.fromtimestamp(row.at, dt.timezone.utc).strftime("%Y-%m-%d %H:%M"),
            row.action,
            row.outcome if row.error is None else f"{row.outcome}: {row.error}",
            row.reason,
            size_text(row.predicted_bytes_read + row.predicted_bytes_written),
            size_text(row.bytes_read + row.bytes_written),
            f"{row.predicted_seconds:.1f}",
            f"{row.seconds:.1f}",
            row.run,
        )
        for row in report.upkeep
    ]
    return _table(head, rows, frozenset((4, 5, 6, 7)))
