"""The cost of a scan: passed to `scan_stats_callback` when the scan ends.

::

    ds.to_table(filter="x > 3", scan_stats_callback=print)
    ScanStatistics(iops=3, requests=3, bytes_read=416, all_counts={"rows_scanned": 35, "fragments_scanned": 3}, …)
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ScanStatistics:
    """Requests and bytes (of the table's own store; what caches held costs none), rows, and times in nanoseconds.

    What indices did is not counted: those figures are 0.
    """

    iops: int = 0
    requests: int = 0
    bytes_read: int = 0
    indices_loaded: int = 0
    parts_loaded: int = 0
    index_comparisons: int = 0
    index_cache_hits: int = 0
    index_cache_misses: int = 0
    all_counts: Mapping[str, int] = field(default_factory=dict)
    all_times: Mapping[str, int] = field(default_factory=dict)


StatsCallback = Callable[[ScanStatistics], None]


def report(callback: StatsCallback, statistics: ScanStatistics) -> None:
    """Call it; its errors are logged, because the rows were read."""
    try:
        callback(statistics)
    except Exception as error:  # it is the caller's function
        log.error("the scan statistics callback failed: %r", error)
