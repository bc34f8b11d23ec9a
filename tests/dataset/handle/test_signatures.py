"""Names and arguments of the handle beside the official library's: every difference is named here, with its reason.

A call that is right there is right here: an argument that one function takes by name and ours lists in its signature
counts as taken. What is left is refused, or is not here, on purpose.
"""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import lance
import pytest

import lance_core
from lance_core.dataset.handle.merge_builder import MergeInsertBuilder
from lance_core.dataset.handle.optimize import DatasetOptimizer
from lance_core.dataset.handle.ref_verbs import Branches
from lance_core.dataset.handle.scanner_builder import ScannerBuilder
from lance_core.dataset.maintain.statistics import LanceStats
from lance_core.dataset.refs.tags import Tags

ROOT = Path(__file__).resolve().parents[3]
OFFICIAL = sys.modules["lance.dataset"]

PAIRS: dict[str, tuple[Any, Any]] = {
    "LanceDataset": (lance.LanceDataset, lance_core.LanceDataset),
    "optimize": (OFFICIAL.DatasetOptimizer, DatasetOptimizer),
    "tags": (OFFICIAL.Tags, Tags),
    "branches": (OFFICIAL.Branches, Branches),
    "stats": (OFFICIAL.LanceStats, LanceStats),
    "merge_insert": (OFFICIAL.MergeInsertBuilder, MergeInsertBuilder),
    "scanner": (OFFICIAL.ScannerBuilder, ScannerBuilder),
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
    "scanner": {
        "apply_defaults": "default_scan_options are not implemented",
        "minhash_search": "MinHash indices are not searched",
        "row_addr_prefilter": "row_addr_allowlist and row_addr_blocklist are not implemented",
        "substrait_aggregate": "no query planner below it; sql",
        "with_index_segments": "index_segments is not implemented",
    },
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
    "optimize": {"merge_column_files", "plan_compaction"},
    "tags": set(),
    "branches": set(),
    "stats": set(),
    "scanner": set(),
    "merge_insert": set(),
}  # fmt: skip

ARGUMENTS_NOT_HERE: dict[str, set[str]] = {
    "read_blobs": {"io_buffer_size", "preserve_order"},
    "create_index_uncommitted": {"index_uuid", "train"},
    "nearest": {"approx_mode", "query_parallelism", "search_effort"},
    "merge_index_metadata": {"batch_readhead", "progress_callback"},
}
"""Hints, or taken by `**options` and refused by value; see docs and docstrings."""


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
        if not name.startswith("_") and callable(getattr(theirs, name))
    ]


@pytest.mark.parametrize(("what", "name"), verbs())
def test_arguments(what: str, name: str) -> None:
    try:
        theirs, ours = (inspect.signature(getattr(kind, name)).parameters for kind in PAIRS[what])
    except (TypeError, ValueError):
        pytest.skip("a function without a signature")
    plain = [item.name for item in theirs.values() if item.kind is not item.VAR_KEYWORD]
    missing = {*plain} - {*ours}
    assert missing == ARGUMENTS_NOT_HERE.get(name, set())
    by_place = [item.name for item in theirs.values() if item.kind is item.POSITIONAL_OR_KEYWORD]
    here = [item.name for item in ours.values() if item.kind is item.POSITIONAL_OR_KEYWORD]
    shared = min(len(here), len(by_place))
    assert here[:shared] == by_place[:shared], "arguments by place come in the same order"


def test_help_and_editors_see_every_argument() -> None:
    for function in (lance_core.LanceDataset.to_table, lance_core.LanceDataset.to_batches, lance_core.LanceDataset.scanner):
        shown = inspect.signature(function).parameters
        assert {"columns", "filter", "order_by", "with_row_id", "full_text_query", "batch_size_bytes"} <= {*shown}
        assert not [item for item in shown.values() if item.kind is item.VAR_KEYWORD]
    theirs, ours = (inspect.signature(module.write_dataset).parameters for module in (lance, lance_core))
    assert {*theirs} - {*ours} == set()
    with pytest.raises(TypeError, match="unexpected keyword argument 'colums'"):
        lance_core.write_dataset({"a": [1]}, "memory://signatures").to_table(colums=["a"])
    with pytest.raises(ValueError, match="max_page_bytes=7 is not implemented"):
        lance_core.write_dataset({"a": [1]}, "memory://refused", max_page_bytes=7)


SNIPPET = """
import lance_core
ds = lance_core.write_dataset({"a": [1]}, "/t", mode="create", max_rows_per_file=7)
ds.to_table(filter="a > 3", with_row_id=True).num_rows
ds.scanner(colums=["a"])
ds.to_batches(prefilter="yes")
lance_core.write_dataset({"a": [1]}, "/t", max_row_per_file=7)
lance_core.LanceOperation.Append(fragments=[], fragment=[])
ds.commit("/t", lance_core.Transaction(1, lance_core.LanceOperation.Append([])), read_versions=7)
"""


@pytest.mark.slow
def test_a_type_checker_sees_wrong_arguments(tmp_path: Path) -> None:
    path = tmp_path / "snippet.py"
    path.write_text(SNIPPET)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", str(tmp_path), str(path)]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600).stdout
    wrong = {int(line.split(":")[1]) for line in told.splitlines() if line.startswith(str(path))}
    assert wrong == {5, 6, 7, 8, 9}, told
