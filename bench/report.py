"""Results as a table for people, JSON for programs, and a plot."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.measure import Case, Timing

OURS = "lance_core"
CROSSED = ("lance_core/official", "pylance/ours")
"""Reader and writer, where files of both libraries are read by both."""


@dataclass(frozen=True)
class Result:
    """One case with its timings."""

    workload: str
    case: Case
    timings: tuple[Timing, ...]

    def median(self, contender: str) -> float | None:
        """Median seconds of a contender, None when it did not run."""
        return next((item.median for item in self.timings if item.contender == contender), None)

    def speed_against(self, other: str) -> float | None:
        """How many times faster we are than `other` (> 1: we are faster)."""
        ours, theirs = self.median(OURS), self.median(other)
        return theirs / ours if ours and theirs else None


def print_result(result: Result) -> None:
    """Print one case: medians, spread, rates, and our ratio against each of the others."""
    print(f"\n{result.workload} / {result.case.name}")
    for timing in result.timings:
        rate = f"{result.case.num_bytes / timing.median / 1e6:9.0f} MB/s" if result.case.num_bytes else " " * 14
        ratio = result.speed_against(timing.contender)
        against = "" if timing.contender == OURS or ratio is None else f"   lance_core is {ratio:5.2f}x"
        print(f"  {timing.contender:<12} {timing.median * 1e3:10.2f} ms  ±{timing.spread:4.0%} {rate}{against}")
    for name, value in result.case.notes.items():
        print(f"  {name}: {value:.3g}")


def markdown_table(results: Sequence[Result]) -> str:
    """The table that docs/performance.md holds; what crosses writers and readers has one of its own."""
    crossed = [result for result in results if result.median(CROSSED[0]) is not None]
    plain = [result for result in results if result not in crossed]
    return "\n\n".join(table for table in (_plain_table(plain), _crossed_table(crossed)) if table)


def _crossed_table(results: Sequence[Result]) -> str:
    if not results:
        return ""
    lines = ["| work | official on official | lance_core on its own | lance_core on official | official on ours |"]
    lines.append("|---|---|---|---|---|")
    for result in results:
        theirs = result.median("pylance") or 0.0
        shares = [_share(result.median(name), theirs) for name in (OURS, *CROSSED)]
        lines.append(f"| {result.case.name} | {_milliseconds(theirs)} | " + " | ".join(shares) + " |")
    return "\n".join(lines)


def _share(seconds: float | None, reference: float) -> str:
    return "" if seconds is None or not reference else f"{seconds / reference:.2f}x its time"


def _plain_table(results: Sequence[Result]) -> str:
    if not results:
        return ""
    lines = ["| work | lance_core | pylance | Parquet | vs pylance | vs Parquet |", "|---|---|---|---|---|---|"]
    for result in results:
        cells = [_milliseconds(result.median(name)) for name in (OURS, "pylance", "parquet")]
        ratios = [_ratio(result.speed_against(name)) for name in ("pylance", "parquet")]
        lines.append(f"| {result.workload}: {result.case.name} | " + " | ".join([*cells, *ratios]) + " |")
    return "\n".join(lines)


def write_results(results: Sequence[Result], folder: Path) -> None:
    """Write results.json, results.md and results.png (the plot only where matplotlib is installed)."""
    folder.mkdir(parents=True, exist_ok=True)
    document = {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "results": [_as_json(result) for result in results],
    }
    (folder / "results.json").write_text(json.dumps(document, indent=1))
    (folder / "results.md").write_text(markdown_table(results) + "\n")
    _plot(results, folder / "results.png")


def _as_json(result: Result) -> dict[str, object]:
    return {
        "workload": result.workload,
        "case": result.case.name,
        "bytes": result.case.num_bytes,
        "rows": result.case.rows,
        "notes": dict(result.case.notes),
        "seconds": {timing.contender: timing.seconds for timing in result.timings},
        "medians": {timing.contender: timing.median for timing in result.timings},
        "spread": {timing.contender: timing.spread for timing in result.timings},
        "speed_against": {
            timing.contender: result.speed_against(timing.contender) for timing in result.timings if timing.contender != OURS
        },
    }


def _plot(results: Sequence[Result], path: Path) -> None:
    try:
        import matplotlib as mpl
    except ImportError:
        print("matplotlib is not installed: no plot")
        return
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    named = [(f"{item.workload}: {item.case.name}", item.speed_against("pylance")) for item in results]
    bars = [(name, ratio) for name, ratio in named if ratio is not None]
    figure, axes = plt.subplots(figsize=(9, 1 + 0.28 * len(bars)))
    axes.barh([name for name, _ in bars], [ratio for _, ratio in bars], color="#3b7dd8")
    axes.axvline(1.0, color="black", linewidth=1)
    axes.set_xlabel("speed of lance_core against pylance (more is better)")
    axes.invert_yaxis()
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _milliseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e3:,.1f} ms"


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}x"
