"""What a step gains and costs, with rates learnt from the evidence of earlier steps.

Gain and score follow the published formulas of OpenHouse's AutoComp (arXiv 2504.04186): the gain of a compaction is the
number of files that go, its cost is in GB-hours of memory. Their rates are constants; ours are the medians of what was
measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median

MEMORY_GB = 2.0
START_SECONDS = 2.0
DEFAULT_RATES: Mapping[str, float] = {
    "compact": 60e6,
    "merge_columns": 60e6,
    "refresh_columns": 1e6,
    "optimize_indices": 30e6,
    "cleanup": 200.0,
    "gc": 200.0,
}
"""Bytes for each second of a compaction, a merge of column files and an index; versions or attempts for each second of a
cleanup and a gc."""
LEARNT_FROM = 20


@dataclass(frozen=True, slots=True)
class Cost:
    """What a step reads and writes in bytes, and how long it takes."""

    bytes_read: int = 0
    bytes_written: int = 0
    seconds: float = 0.0

    @property
    def num_bytes(self) -> int:
        """Bytes read and written."""
        return self.bytes_read + self.bytes_written

    @property
    def gb_hours(self) -> float:
        """Memory for the time it is held."""
        return self.seconds / 3600 * MEMORY_GB

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.bytes_read + other.bytes_read, self.bytes_written + other.bytes_written, self.seconds + other.seconds
        )


@dataclass(frozen=True, slots=True)
class Measured:
    """What a finished step took: its action, the quantity its rate is about, and seconds; predicted and real bytes."""

    action: str
    quantity: float
    seconds: float
    predicted_bytes: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class Rates:
    """Rates by action, and by how much real bytes differ from predicted ones."""

    per_second: Mapping[str, float] = field(default_factory=lambda: dict(DEFAULT_RATES))
    bytes_factor: Mapping[str, float] = field(default_factory=dict)

    def seconds(self, action: str, quantity: float) -> float:
        """How long a step takes."""
        return START_SECONDS + quantity / self.per_second.get(action, DEFAULT_RATES["gc"])

    def bytes_of(self, action: str, predicted: float) -> int:
        """A prediction, corrected by the results of earlier ones."""
        return int(predicted * self.bytes_factor.get(action, 1.0))


def learn(measured: Iterable[Measured]) -> Rates:
    """Return the rates that the newest steps of each action show; defaults where fewer than three are known."""
    by_action: dict[str, list[Measured]] = {}
    for item in measured:
        by_action.setdefault(item.action, []).append(item)
    rates, factors = dict(DEFAULT_RATES), {}
    for action, items in by_action.items():
        newest = items[-LEARNT_FROM:]
        speeds = [item.quantity / max(item.seconds - START_SECONDS, 0.05) for item in newest if item.quantity > 0]
        if len(speeds) >= 3:
            rates[action] = max(median(speeds), 1.0)
        ratios = [item.bytes / item.predicted_bytes for item in newest if item.predicted_bytes > 0 and item.bytes > 0]
        if len(ratios) >= 3:
            factors[action] = median(ratios)
    return Rates(rates, factors)
