"""Indices that a branch or a shallow clone has of its parent: compacted and optimised there, and found by both libraries.

The official library compacts there, too, but leaves the parent's base on a segment whose rows it moved, so that its searches
end in "not found". What it finds by scans is the measure, and its searches have to find the same in what is written here.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.dataset import LanceDataset
from lance_core.dataset.maintain.validate import find_damages
from lance_core.table.coverage import is_address_based
from tests.index.index_tables import CASES, rows
from tests.index.text_tables import texts

ROWS, LATE, DIMENSION = 600, 690, 8
WORDS = ("fox", "zebra", "42", "nothing")
VECTORS: Mapping[str, Mapping[str, int]] = {"IVF_FLAT": {}, "IVF_PQ": {"num_sub_vectors": 4}, "IVF_HNSW_SQ": {}}
IN_PLANS = {**dict.fromkeys(CASES, "@idx"), "INVERTED": "MatchQuery", **dict.fromkeys(VECTORS, "ANN")}
"""What a plan of the official library says of an index that it uses."""

VERBS: Mapping[str, Callable[[Any], object]] = {
    "compact": lambda table: table.optimize.compact_files(),
    "optimize": lambda table: table.optimize.optimize_indices(),
}
ORDERS = (("compact",), ("optimize",), ("compact", "optimize"), ("optimize", "compact"))


def mixed(count: int, first: int = 0) -> pa.Table:
    """Rows with a column for every kind of index; `x` tells them apart."""
    plain = rows(count, seed=first, first=first).append_column("words", texts(count, seed=first)["s"])
    return plain.append_column("v", pa.FixedSizeListArray.from_arrays(pa.array(vectors(count, first).ravel()), DIMENSION))


def vectors(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, DIMENSION)).astype(np.float32)


def build(table: Any, kind: str) -> None:
    """An index named `idx`."""
    if kind in VECTORS:
        table.create_index("v", kind, name="idx", num_partitions=2, **VECTORS[kind])
    elif kind == "INVERTED":
        table.create_scalar_index("words", kind, name="idx", stem=False)
    else:
        table.create_scalar_index(next(iter(CASES[kind])), kind, name="idx")


def questions(kind: str, *, use_index: bool) -> list[dict[str, Any]]:
    """Options of scans that the index answers."""
    if kind == "INVERTED":
        return [{"full_text_query": {"query": word, "columns": ["words"]}} for word in WORDS]
    if kind not in VECTORS:
        return [{"filter": text, "use_scalar_index": use_index} for text in next(iter(CASES[kind].values()))]
    # All partitions, and as many rows measured again as there are: the nearest ones exactly.
    every = {"column": "v", "k": 5, "nprobes": 2, "refine_factor": ROWS // 5, "ef": ROWS, "use_index": use_index}
    return [{"nearest": {**every, "q": query}} for query in vectors(8, seed=99)]


def answers(table: Any, kind: str, *, use_index: bool = True, **options: Any) -> list[list[int]]:
    """The rows that each question finds."""
    if kind == "INVERTED" and not use_index:
        held = table.to_table(columns=["x", "words"]).to_pylist()
        return [sorted(row["x"] for row in held if word in (row["words"] or "").split()) for word in WORDS]
    scanners = [table.scanner(["x"], **question, **options) for question in questions(kind, use_index=use_index)]
    return [sorted(scanner.to_table()["x"].to_pylist()) for scanner in scanners]


def plans(table: Any, kind: str) -> list[str]:
    return [table.scanner(["x"], **question).explain_plan() for question in questions(kind, use_index=True)]


def files(uri: str) -> dict[Path, int]:
    """The parent's own files and their sizes."""
    found = (path for path in Path(uri).rglob("*") if path.is_file())
    return {path: path.stat().st_size for path in found if "tree" not in path.relative_to(uri).parts}


def opened(library: Any, uri: str, place: str) -> Any:
    """The branch or the clone, by one of the libraries."""
    return library.dataset(f"{uri}-clone") if place == "clone" else library.dataset(uri).checkout_version(("side", None))


SWEEP = [
    pytest.param(*case, id="-".join((*case[:3], *case[3], case[4])), marks=() if is_quick else pytest.mark.slow)
    for case in itertools.product(IN_PLANS, ("ours", "theirs"), ("branch", "clone"), ORDERS, ("addresses", "stable"))
    for is_quick in [case[1] == "theirs" and len(case[3]) == 2]
]


@pytest.mark.parametrize(("kind", "builder", "place", "verbs", "row_ids"), SWEEP)
def test_both_libraries_find_what_a_scan_finds(
    kind: str, builder: str, place: str, verbs: tuple[str, ...], row_ids: str, tmp_path: Path
) -> None:
    """A segment that was built again is the branch's own; the parent keeps its files and its answers."""
    uri = str(tmp_path / "t")
    lance.write_dataset(mixed(ROWS), uri, max_rows_per_file=ROWS // 3, enable_stable_row_ids=row_ids == "stable")
    build((lance_core if builder == "ours" else lance).dataset(uri), kind)
    parent: LanceDataset = lance_core.dataset(uri)
    child: Any = parent.create_branch("side") if place == "branch" else parent.shallow_clone(f"{uri}-clone", parent.version)
    before, there = files(uri), answers(lance.dataset(uri), kind, use_index=False)

    child.insert(mixed(40, first=LATE))
    child.delete("x % 11 = 4")
    appended = child.snapshot.manifest.fragments[-1].id
    for verb in verbs:
        VERBS[verb](child)

    ours, theirs = opened(lance_core, uri, place), opened(lance, uri, place)
    (index,) = ours.snapshot.manifest.indices
    fragments = {fragment.id for fragment in ours.snapshot.manifest.fragments}
    # Rows that are not indexed stay apart from those that are.
    assert len(fragments) == (4 if "compact" not in verbs else 1 if verbs[0] == "optimize" else 2)
    assert fragments.isdisjoint({0, 1, 2}) == ("compact" in verbs)
    assert index.fragment_bitmap & fragments == fragments - (set() if "optimize" in verbs else {appended})
    assert (index.base_id is None) == ("optimize" in verbs or row_ids == "addresses" or is_address_based(index))
    assert not [*find_damages(ours.snapshot)]

    expected = answers(theirs, kind, use_index=False)
    assert any(x < ROWS for found in expected for x in found) and any(x >= LATE for found in expected for x in found)
    assert answers(ours, kind, strict_index=True) == expected
    assert answers(theirs, kind) == expected
    assert any("idx" in plan for plan in plans(ours, kind)) and any(IN_PLANS[kind] in plan for plan in plans(theirs, kind))

    assert files(uri) == before
    assert answers(lance_core.dataset(uri), kind, strict_index=True) == answers(lance.dataset(uri), kind) == there
