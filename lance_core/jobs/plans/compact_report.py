"""The report of a planned compaction: groups, bytes in and out, memory of a task, and why other fragments stay.

::

    {"version": 7, "groups": [{"fragments": [0, 1, 2], "rows": 30, "rows_deleted": 2, "bytes_in": 2048, "bytes_out": 1920,
                               "peak_memory": 17000000}],
     "skipped": [{"fragment": 3, "reason": "large enough"}], "bytes_in": 2048, "bytes_out": 1920, "peak_memory": 17000000}

Sizes are estimates: bytes out by the share of rows that live, memory by decoded batches and page buffers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from lance_core.dataset.maintain.compact import plan_snapshot
from lance_core.dataset.maintain.compact_options import CompactionOptions
from lance_core.dataset.maintain.compact_plan import CompactionGroups, bytes_of, must_rewrite
from lance_core.dataset.scan.plan import LARGE_BATCH_ROWS
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.format.fragment import Fragment
from lance_core.format.fragments import FragmentList
from lance_core.jobs.specs.edits import CompactSpec
from lance_core.runs import runs_within

_NO_BOUND = 1 << 63
PAGE_BYTES = 8 * 1024 * 1024
Group = tuple[Fragment, ...]


def options_of(spec: CompactSpec) -> CompactionOptions:
    """The dataset's options of a spec."""
    share = spec.materialize_deletions_threshold
    return CompactionOptions(
        target_rows_per_fragment=spec.target_rows_per_fragment,
        max_bytes_per_file=spec.max_bytes_per_file,
        materialize_deletions=share is not None,
        materialize_deletions_threshold=0.0 if share is None else share,
        max_source_fragments=spec.max_source_fragments,
        max_source_rows=spec.max_source_rows,
        max_source_bytes=spec.max_source_bytes,
        batch_size=spec.batch_size,
        strategy=spec.strategy,
        tier_fanout=spec.tier_fanout,
        enough_fragments=spec.enough_fragments,
        max_files_per_fragment=spec.max_files_per_fragment,
    )


def plan_groups(snapshot: Snapshot, spec: CompactSpec) -> CompactionGroups:
    """The groups to rewrite: those the spec names, as far as they are still there, else those that planning finds."""
    if spec.groups:
        wanted = frozenset(number for group in spec.groups for number in group)
        here = FragmentList.of(snapshot.manifest.fragments).pick(wanted)
        whole = [group for group in spec.groups if all(number in here for number in group)]
        return CompactionGroups(snapshot.version, tuple(tuple(here[number] for number in group) for group in whole), ())
    plan = plan_snapshot(snapshot, options_of(spec))
    bounded = spec.max_bytes_per_group is not None or spec.max_rows_per_group is not None
    return cut_groups(plan, spec) if bounded else plan


def cut_groups(plan: CompactionGroups, spec: CompactSpec) -> CompactionGroups:
    """The plan with no group reading more than `max_bytes_per_group` or `max_rows_per_group`, save for a single fragment
    that is larger. Pure."""
    options = options_of(spec)
    groups: list[Group] = []
    skipped = [*plan.skipped]
    for group in plan.groups:
        for part in _cut(group, spec.max_bytes_per_group or _NO_BOUND, spec.max_rows_per_group or _NO_BOUND):
            if len(part) > 1 or must_rewrite(part[0], options):
                groups.append(part)
            else:
                skipped.append((part[0].id, "it has no neighbour to be merged with within the limits of a group"))
    return replace(plan, groups=tuple(groups), skipped=tuple(sorted(skipped)))


def _cut(group: Sequence[Fragment], max_bytes: int, max_rows: int) -> list[Group]:
    sizes, rows = [bytes_of(fragment) for fragment in group], [fragment.physical_rows for fragment in group]
    return [tuple(group[start:end]) for start, end in runs_within((sizes, max_bytes), (rows, max_rows))]


def compaction_report(snapshot: Snapshot, spec: CompactSpec) -> dict[str, Any]:
    """What a compaction of this version would do, JSON-able; nothing is written."""
    plan = plan_groups(snapshot, spec)
    groups = [_group_report(group, snapshot.arrow_schema, spec.batch_size or LARGE_BATCH_ROWS) for group in plan.groups]
    return {
        "version": snapshot.version,
        "groups": groups,
        "skipped": [{"fragment": number, "reason": reason} for number, reason in plan.skipped],
        "bytes_in": sum(group["bytes_in"] for group in groups),
        "bytes_out": sum(group["bytes_out"] for group in groups),
        "peak_memory": max((group["peak_memory"] for group in groups), default=0),
    }


def report_lines(report: dict[str, Any]) -> list[str]:
    """The report for a log."""
    lines = [
        f"group {number}: fragments {group['fragments']}, {group['rows']:,} rows ({group['rows_deleted']:,} deleted), "
        f"{group['bytes_in']:,} bytes in, about {group['bytes_out']:,} out, about {group['peak_memory']:,} bytes of memory"
        for number, group in enumerate(report["groups"])
    ]
    return [*lines, *(f"fragment {item['fragment']} stays: {item['reason']}" for item in report["skipped"])]


def _group_report(group: Group, schema: pa.Schema, batch_rows: int) -> dict[str, Any]:
    physical, rows = sum(item.physical_rows for item in group), sum(item.num_rows for item in group)
    size = sum(map(bytes_of, group))
    out = size * rows // max(physical, 1)
    width = max(_width(schema), size // max(physical, 1))
    # Two batches are alive at once, the one decoded and the one encoded, beside a page being read and one being written
    # per column; no buffer outgrows the group.
    peak = min(2 * batch_rows * width, 2 * rows * width) + min(2 * len(schema.names) * PAGE_BYTES, 2 * rows * width)
    return {
        "fragments": [item.id for item in group],
        "rows": rows,
        "rows_deleted": physical - rows,
        "bytes_in": size,
        "bytes_out": out,
        "peak_memory": peak,
    }


def _width(schema: pa.Schema) -> int:
    """Bytes of a row's fixed-width columns in memory."""
    return sum(_bits(field.type) for field in schema) // 8


def _bits(kind: Any) -> int:
    try:
        return int(kind.bit_width)
    except ValueError:  # Arrow's answer for types without a fixed width
        return 0
