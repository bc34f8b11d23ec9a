"""Every kind of index in every direction: built by us or by the official library, asked by us and by the official library.

The table has a row for each kind this release knows; a kind without a row, or a row that does not run, fails.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.indices import IndexConfig as OfficialConfig

from lance_core.dataset.handle.open import dataset
from lance_core.index.registry import KINDS
from lance_core.index.vector.parameters import KINDS as VECTOR_KINDS
from lance_core.indices import IndexConfig
from lance_core.table.coverage import FRAGMENT_REUSE
from tests.index.index_tables import rows

COUNT, DIMENSION = 600, 16


@dataclass(frozen=True)
class Row:
    """A kind, the column it is tried on, and questions its index must be seen to answer."""

    kind: str
    column: str
    filters: tuple[str, ...] = ()
    metric: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    words: tuple[str, ...] = ()


TABLE = [
    Row("BTREE", "i", ("i = 7", "i > 350", "i is null", "i in (1, 2, 3)", "i between 5 and 9")),
    Row("BITMAP", "b", ("b = true", "b is null")),
    Row("LABEL_LIST", "tags", ("array_has(tags, 'alpha')", "array_has_any(tags, ['Beta', 'none'])")),
    Row("NGRAM", "s", ("contains(s, 'gamma')", "contains(s, 'alpha')")),
    Row("ZONEMAP", "x", ("x = 301", "x > 550"), options={"rows_per_zone": 64}),
    Row("BLOOMFILTER", "x", ("x = 301", "x in (4, 500)")),
    Row("JSON", "j", ("json_get_int(j, 'a') = 7", "json_get_int(j, 'a') > 350"), options={"path": "a"}),
    Row("INVERTED", "s", words=("alpha", "gamma ray", "epsilon delta42"), options={"with_position": True}),
    *(
        Row(kind, "v", metric=metric, options={"num_partitions": 4, **({"num_sub_vectors": 8} if "PQ" in kind else {})})
        for kind in VECTOR_KINDS
        for metric in ("l2", "cosine", "dot")
    ),
    Row(FRAGMENT_REUSE, "i", ("i = 7", "i > 350")),
]
SLOW = {f"{kind}-{metric}" for kind in VECTOR_KINDS for metric in ("l2", "cosine", "dot") if "HNSW" in kind} - {
    "IVF_HNSW_SQ-cosine",
    "IVF_HNSW_PQ-l2",
    "IVF_HNSW_FLAT-dot",
}


def name_of(row: Row) -> str:
    return f"{row.kind}-{row.metric}" if row.metric else row.kind


def test_the_table_is_total() -> None:
    assert {row.kind for row in TABLE} == {kind.name for kind in KINDS} | set(VECTOR_KINDS) | {FRAGMENT_REUSE}
    for kind in VECTOR_KINDS:
        assert {row.metric for row in TABLE if row.kind == kind} == {"l2", "cosine", "dot"}


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = np.random.default_rng(3)
    values = rng.normal(size=(COUNT, DIMENSION)).astype(np.float32)
    base = rows(COUNT)
    texts = [None if n is None else json.dumps({"a": n}) for n in base["i"].to_pylist()]
    return base.append_column("j", pa.array(texts, pa.json_())).append_column(
        "v", pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), DIMENSION)
    )


def build(uri: str, row: Row, builder: str) -> None:
    """The index `idx`, by one of the two libraries."""
    ours = builder == "ours"
    actor: Any = dataset(uri) if ours else lance.dataset(uri)
    if row.metric:
        actor.create_index(row.column, row.kind, name="idx", metric=row.metric, **row.options)
    elif row.kind == "JSON":
        config: Any = IndexConfig if ours else OfficialConfig
        parameters = {"target_index_type": "btree", **row.options}
        actor.create_scalar_index(row.column, config(index_type="json", parameters=parameters), name="idx")
    elif row.kind == FRAGMENT_REUSE:
        actor.create_scalar_index(row.column, "BTREE", name="idx")
        actor.optimize.compact_files(target_rows_per_fragment=10_000, defer_index_remap=True)
    elif row.kind == "ZONEMAP" and not ours:
        actor.create_scalar_index(row.column, OfficialConfig(index_type="zonemap", parameters=row.options), name="idx")
    else:
        actor.create_scalar_index(row.column, row.kind, name="idx", **row.options)


def by_us(uri: str, row: Row) -> None:
    table = dataset(uri)
    for where in row.filters:
        assert "idx" in table.scanner(filter=where).explain_plan(), where
        brute = table.to_table(["x"], filter=where, use_scalar_index=False)
        assert brute.num_rows > 0 and table.to_table(["x"], filter=where, strict_index=True).equals(brute), where
    for words in row.words:
        assert "idx" in table.scanner(full_text_query=words).explain_plan(), words
        assert ranking(table, words) == pytest.approx(ranking(lance.dataset(uri), words), abs=1e-4), words
    if row.metric:
        nearest_is_near(table, row, "idx")


def by_them(uri: str, row: Row) -> None:
    table = lance.dataset(uri)
    for where in row.filters:
        assert "@idx" in table.scanner(filter=where).explain_plan(), where
        brute = table.scanner(columns=["x"], filter=where, use_scalar_index=False).to_table()["x"].to_pylist()
        assert sorted(table.to_table(columns=["x"], filter=where)["x"].to_pylist()) == sorted(brute) != [], where
    for words in row.words:
        assert "MatchQuery" in table.scanner(full_text_query=words).explain_plan(), words
        assert len(ranking(table, words)) == 20, words
    if row.metric:
        nearest_is_near(table, row, "ANN")


def ranking(table: Any, words: str) -> list[float]:
    """The scores of the best 20: ties may come in any order."""
    found = table.scanner(columns=["x", "_score"], full_text_query={"query": words, "columns": ["s"]}, limit=20).to_table()
    return [float(score) for score in found["_score"].to_pylist()]


def nearest_is_near(table: Any, row: Row, mark: str) -> None:
    queries = np.random.default_rng(4).normal(size=(8, DIMENSION)).astype(np.float32)
    hits = 0
    for q in queries:
        nearest = {"column": "v", "q": q, "k": 10, "metric": row.metric}
        assert mark in table.scanner(nearest=nearest).explain_plan()
        truth = table.to_table(columns=["x"], nearest={**nearest, "use_index": False})["x"].to_pylist()
        wide = {**nearest, "nprobes": 4, "refine_factor": 10, **({"ef": 200} if "HNSW" in row.kind else {})}
        hits += len({*truth} & {*table.to_table(columns=["x"], nearest=wide)["x"].to_pylist()})
    assert hits >= 76, hits


ASKED: dict[str, Callable[[str, Row], None]] = {"ours": by_us, "theirs": by_them}


@pytest.mark.parametrize("builder", ["ours", "theirs"])
@pytest.mark.parametrize(
    "row", [pytest.param(row, id=name_of(row), marks=[pytest.mark.slow] if name_of(row) in SLOW else []) for row in TABLE]
)
def test_both_ways(tmp_path: Path, table: pa.Table, row: Row, builder: str) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(table, uri, max_rows_per_file=COUNT // 3)
    build(uri, row, builder)
    lance.dataset(uri).delete("x % 11 = 3")
    for asker in ASKED.values():
        asker(uri, row)
