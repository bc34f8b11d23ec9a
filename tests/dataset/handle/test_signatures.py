"""Names and arguments of the handle beside the official library's: every difference is named here, with its reason.

A call that is right there is right here: an argument that one function takes by name and ours takes among its `**options`
counts as taken. What is left is refused, or is not here, on purpose.
"""

from __future__ import annotations

import inspect
import sys
from typing import Any

import lance
import pytest

import lance_core
from lance_core.dataset.handle.merge_builder import MergeInsertBuilder
from lance_core.dataset.handle.optimize import DatasetOptimizer
from lance_core.dataset.handle.ref_verbs import Branches
from lance_core.dataset.maintain.statistics import LanceStats
from lance_core.dataset.options import COMMIT_HINTS, COMMIT_REFUSED, SCAN_HINTS, SCAN_REFUSED, WRITE_HINTS, WRITE_REFUSED
from lance_core.dataset.refs.tags import Tags

OFFICIAL = sys.modules["lance.dataset"]

PAIRS: dict[str, tuple[Any, Any]] = {
    "LanceDataset": (lance.LanceDataset, lance_core.LanceDataset),
    "optimize": (OFFICIAL.DatasetOptimizer, DatasetOptimizer),
    "tags": (OFFICIAL.Tags, Tags),
    "branches": (OFFICIAL.Branches, Branches),
    "stats": (OFFICIAL.LanceStats, LanceStats),
    "merge_insert": (OFFICIAL.MergeInsertBuilder, MergeInsertBuilder),
}

NOT_HERE: dict[str, dict[str, str]] = {
    "LanceDataset": {
        "centroids": "figures of an index: index_statistics",
        "get_ivf_model": "a torch model; train_index gives ours",
        "filter": "of pyarrow.dataset, lazily; to_table(filter=…)",
        "join": "of pyarrow.dataset; sql or merge",
        "join_asof": "of pyarrow.dataset; sql",
        "replace_schema": "of pyarrow.dataset; not implemented there either",
        "partition_expression": "of pyarrow.dataset; tables have no partitions",
        "from_pydantic_model": "classes of another package",
        "initialize_mem_wal": "MemWAL is recognised and preserved, not written",
        "mem_wal_index_details": "MemWAL is recognised and preserved, not written",
        "mem_wal_writer": "MemWAL is recognised and preserved, not written",
        "io_stats_incremental": "requests are counted by wrapping a store: io.testing.CountingStore",
        "io_stats_snapshot": "requests are counted by wrapping a store: io.testing.CountingStore",
        "new_file_session": "lance_core.file writes single files",
        "session": "caches are the process's own",
        "storage_options_accessor": "nothing here renews credentials",
        "read_blob_ranges": "BlobFile.read_range",
        "remap_row_addrs": "the fragment reuse index is followed by searches themselves",
    },
    "optimize": {},
    "tags": {},
    "branches": {},
    "stats": {},
    "merge_insert": {
        "analyze_plan": "no query planner below it",
        "analyze_plan_batches": "no query planner below it",
        "explain_plan": "no query planner below it",
        "execute_batches": "execute takes batches",
        "execute_uncommitted_batches": "execute_uncommitted takes batches",
        "mark_sstables_as_compacted": "MemWAL is recognised and preserved, not written",
    },
}

OURS: dict[str, set[str]] = {
    "LanceDataset": {"build_segment", "check_indices", "from_snapshot", "move_to", "replace_where", "seal_indices",
                     "snapshot", "to_reader", "train_index", "uncommitted"},
    "optimize": {"plan_compaction"},
    "tags": set(),
    "branches": set(),
    "stats": set(),
    "merge_insert": set(),
}  # fmt: skip

TAKEN_AS_OPTIONS: dict[str, set[str]] = {
    "scanner": {*SCAN_HINTS, *SCAN_REFUSED},
    "commit": {*COMMIT_HINTS, *COMMIT_REFUSED},
    "commit_batch": {*COMMIT_HINTS, *COMMIT_REFUSED},
    "insert": {*WRITE_HINTS, *WRITE_REFUSED},
}
for _name in ("to_table", "to_batches", "to_pandas", "count_rows", "head", "sample"):
    TAKEN_AS_OPTIONS[_name] = TAKEN_AS_OPTIONS["scanner"] | {*inspect.signature(lance_core.LanceDataset.scanner).parameters}

ARGUMENTS_NOT_HERE: dict[str, set[str]] = {
    "read_blobs": {"io_buffer_size", "preserve_order"},
    "merge_index_metadata": {"batch_readhead", "progress_callback"},
    "compact_files": {"max_rows_per_group", "num_threads", "binary_copy_read_batch_bytes"},
}
"""Hints, or taken by `**options` and refused by value; see docs and docstrings."""
VECTOR_VERBS = {"create_index", "create_index_uncommitted"}
"""Their many arguments are taken by `**options` and checked by kind (lance_core.index.vector.parameters)."""


@pytest.mark.parametrize("what", PAIRS)
def test_names(what: str) -> None:
    theirs, ours = ({name for name in dir(kind) if not name.startswith("_")} for kind in PAIRS[what])
    assert theirs - ours == {*NOT_HERE[what]}
    assert ours - theirs == OURS[what]


def verbs() -> list[tuple[str, str]]:
    return [
        (what, name)
        for what, (theirs, ours) in PAIRS.items()
        for name in sorted({*dir(theirs)} & {*dir(ours)})
        if not name.startswith("_") and callable(getattr(theirs, name)) and name not in VECTOR_VERBS
    ]


@pytest.mark.parametrize(("what", "name"), verbs())
def test_arguments(what: str, name: str) -> None:
    try:
        theirs, ours = (inspect.signature(getattr(kind, name)).parameters for kind in PAIRS[what])
    except (TypeError, ValueError):
        pytest.skip("a function without a signature")
    plain = [item.name for item in theirs.values() if item.kind is not item.VAR_KEYWORD]
    missing = {*plain} - {*ours} - TAKEN_AS_OPTIONS.get(name, set())
    assert missing == ARGUMENTS_NOT_HERE.get(name, set())
    by_place = [item.name for item in theirs.values() if item.kind is item.POSITIONAL_OR_KEYWORD]
    here = [item.name for item in ours.values() if item.kind is item.POSITIONAL_OR_KEYWORD]
    shared = min(len(here), len(by_place))
    assert here[:shared] == by_place[:shared], "arguments by place come in the same order"
