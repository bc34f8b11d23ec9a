"""Searches of a table as tables: by vectors, by words, or by both.

::

    SELECT id, _distance FROM lake.sales.items.`vector_search {"query_vector": [0.1, 0.2], "num_results": 5}`

    VECTOR_SEARCH, SEARCH and HYBRID_SEARCH in FROM are said so by `bridge.statements`

One task searches, by the table's indices. A filter of Spark's comes behind the search, the search's own before. Both lists
of a hybrid search are joined by reciprocal rank fusion: the sum of 1 / (rank + rrf_k), where the best has rank 0.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from lance_core.errors import InputError
from lance_core.jobs.sources.conform import Conformer
from lance_core.spark.options import SourceOptions
from lance_core.spark.table_reader import FragmentGroup

if TYPE_CHECKING:
    from lance_core.dataset import LanceDataset

_COMMON = ("columns", "num_results", "limit", "k", "filter", "offset", "version", "prefilter", "with_row_id", "fast_search")
_OF_VECTORS = (
    "query_vector", "vector_column", "distance_type", "nprobes", "ef", "refine_factor", "lower_bound", "upper_bound",
    "bypass_vector_index",
)  # fmt: skip
_OF_WORDS = ("query", "search_query", "search_columns")
PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "vector_search": (*_OF_VECTORS, *_COMMON),
    "text_search": (*_OF_WORDS, *_COMMON),
    "hybrid_search": (
        *_OF_VECTORS, *_OF_WORDS, *_COMMON, "candidates", "num_candidates", "candidate_count", "rrf_k",
    ),
}  # fmt: skip
"""The arguments of each."""
_RESULTS = 10
_RRF_K = 60.0
_METRICS = {"vector_search": ("_distance",), "text_search": ("_score",),
            "hybrid_search": ("_distance", "_score", "_relevance_score")}  # fmt: skip
_SPEED = ("nprobes", "ef", "refine_factor")


@dataclass(frozen=True)
class TableSearch:
    """A search by its kind and arguments."""

    kind: str
    given: Mapping[str, Any]

    @classmethod
    def parse(cls, text: str) -> TableSearch | None:
        """Of `kind {JSON}`; None for a text that is none. InputError for arguments that it does not have."""
        kind, _, rest = text.partition(" ")
        if kind not in PARAMETERS or not rest.startswith("{"):
            return None
        try:
            given = json.loads(rest)
        except ValueError as error:
            raise InputError(f"{kind}: expected JSON behind its name, got {rest!r}: {error}") from None
        unknown = [name for name in given if name not in PARAMETERS[kind]]
        if unknown:
            raise InputError(f"{kind} has no argument {unknown[0]!r}", cure=f"It has: {', '.join(PARAMETERS[kind])}.")
        return cls(kind, {name: value for name, value in given.items() if value is not None})

    @property
    def text(self) -> str:
        """As `parse` takes it."""
        return f"{self.kind} {json.dumps(dict(self.given))}"

    def one_of(self, *names: str) -> Any:
        """An argument that has several names."""
        return next((self.given[name] for name in names if name in self.given), None)

    @property
    def num_results(self) -> int:
        """How many rows at most."""
        return self._count("num_results", "limit", "k", default=_RESULTS, least=1)

    @property
    def offset(self) -> int:
        """How many of the best rows are left out."""
        return self._count("offset", default=0, least=0)

    @property
    def num_candidates(self) -> int:
        """How many rows of each side a hybrid search joins."""
        least = self.num_results + self.offset
        return max(least, self._count("candidates", "num_candidates", "candidate_count", default=least, least=1))

    def _count(self, *names: str, default: int, least: int) -> int:
        found = self.one_of(*names)
        if found is None:
            return default
        if not isinstance(found, int) or isinstance(found, bool) or found < least:
            raise InputError(f"{self.kind}: {names[0]} must be an integer from {least} on, got {found!r}")
        return found

    @property
    def is_batch(self) -> bool:
        """Whether it has several query vectors."""
        query = self.given.get("query_vector")
        return self.kind == "vector_search" and isinstance(query, list) and bool(query) and isinstance(query[0], list)

    def schema(self, table: pa.Schema) -> pa.Schema:
        """The columns of its rows."""
        names = self.given.get("columns") or ["*"]
        wanted = table.names if "*" in names else [name for name in names if name not in ("_rowid", *_METRICS[self.kind])]
        absent = [name for name in wanted if name not in table.names]
        if absent:
            raise InputError(f"{self.kind}: no column {absent[0]!r}", cure=f"The table has: {', '.join(table.names)}.")
        fields = [table.field(name) for name in wanted]
        if self.is_batch:
            fields.insert(0, pa.field("query_index", pa.int32(), nullable=False))
        fields += [pa.field(name, pa.float32()) for name in _METRICS[self.kind]]
        if self.given.get("with_row_id") or "_rowid" in names:
            fields.append(pa.field("_rowid", pa.int64()))
        return pa.schema(fields)

    def rows(self, table: LanceDataset) -> pa.Table:
        """Its rows, best first, with the columns of `schema`."""
        schema = self.schema(table.schema)
        stored = [name for name in schema.names if name in table.schema.names]
        count = self.num_results + self.offset
        if self.kind == "hybrid_search":
            found = self._joined(table, stored)
        elif self.kind == "text_search":
            found = self._by_words(table, stored, count)
        else:
            found = self._by_vectors(table, stored, count)
        if not self.is_batch:
            found = found.slice(self.offset, self.num_results)
        elif self.offset:
            raise InputError("vector_search: offset cannot be combined with several query vectors")
        arrays = [found.column(field.name).cast(field.type) for field in schema]
        return pa.table(arrays, schema=schema)

    def _by_vectors(self, table: LanceDataset, columns: list[str], count: int) -> pa.Table:
        query = self.given.get("query_vector")
        if not isinstance(query, list) or not query:
            raise InputError(f"{self.kind} needs query_vector, such as array(0.1, 0.2)")
        nearest: dict[str, Any] = {"column": self.given.get("vector_column", "vector"), "q": query, "k": count}
        nearest |= {name: self.given[name] for name in _SPEED if name in self.given}
        if "distance_type" in self.given:
            nearest["metric"] = self.given["distance_type"]
        if "lower_bound" in self.given or "upper_bound" in self.given:
            nearest["distance_range"] = (self.given.get("lower_bound"), self.given.get("upper_bound"))
        if self.given.get("bypass_vector_index"):
            nearest["use_index"] = False
        return table.to_table(columns=columns, nearest=nearest, with_row_id=True, **self._asked())

    def _by_words(self, table: LanceDataset, columns: list[str], count: int) -> pa.Table:
        words = self.one_of("query", "search_query")
        if not isinstance(words, str):
            raise InputError(f"{self.kind} needs the words to search for: query => '...'")
        query: dict[str, Any] = {"query": words}
        if self.given.get("search_columns"):
            query["columns"] = list(self.given["search_columns"])
        return table.to_table(columns=columns, full_text_query=query, limit=count, with_row_id=True, **self._asked())

    def _asked(self) -> dict[str, Any]:
        prefilter = self.given.get("prefilter", True)
        return {
            "filter": self.given.get("filter"),
            "prefilter": bool(prefilter),
            "fast_search": bool(self.given.get("fast_search")),
        }

    def _joined(self, table: LanceDataset, columns: list[str]) -> pa.Table:
        near = self._by_vectors(table, columns, self.num_candidates)
        fitting = self._by_words(table, columns, self.num_candidates)
        constant = float(self.given.get("rrf_k", _RRF_K))
        scores: dict[int, float] = {}
        for side in (near, fitting):
            for rank, row in enumerate(_ids(side)):
                scores[row] = scores.get(row, 0.0) + 1.0 / (rank + constant)
        ids = near.column("_rowid")
        only = fitting.filter(pc.invert(pc.is_in(fitting.column("_rowid"), value_set=ids.combine_chunks())))
        scored: list[Any] = fitting.column("_score").to_pylist()
        near = _with(near, "_score", dict(zip(_ids(fitting), scored, strict=True)))
        both = pa.concat_tables([near, _with(only, "_distance", {}).select(near.column_names)])
        both = _with(both, "_relevance_score", scores)
        return both.sort_by([("_relevance_score", "descending"), ("_rowid", "ascending")])


def _with(table: pa.Table, name: str, values: Mapping[int, float | None]) -> pa.Table:
    return table.append_column(name, pa.array([values.get(row) for row in _ids(table)], pa.float32()))


def _ids(table: pa.Table) -> list[int]:
    found: list[Any] = table.column("_rowid").to_pylist()
    return found


class SearchReader:
    """Reads the rows of a search, as `TableReader` those of a table. Pickles."""

    def __init__(self, options: SourceOptions, search: TableSearch, target: pa.Schema, *, at: tuple[str, int]) -> None:
        self._options, self._search, self._at = options, search, at
        self.target = target

    @property
    def num_rows(self) -> int:
        """At most."""
        times = len(self._search.given["query_vector"]) if self._search.is_batch else 1
        return self._search.num_results * times

    @property
    def size(self) -> int:
        """A guess of its bytes, for Spark's plans."""
        return 1_000 * self.num_rows

    def read(self, group: FragmentGroup) -> Iterator[pa.RecordBatch]:
        """All of them."""
        found = self._search.rows(_dataset(self._options, self._at))
        conformer = Conformer(self.target, uri=self._options.uri)
        for batch in found.to_batches():
            yield conformer.apply(batch.select(self.target.names))


def search_of(options: SourceOptions) -> TableSearch | None:
    """The search of a table's options. InputError where it cannot be read."""
    if options.search is None:
        return None
    found = TableSearch.parse(options.search)
    if found is None:
        raise InputError(f"option 'search': expected one of {', '.join(PARAMETERS)} and JSON, got {options.search!r}")
    return found


def at_version(options: SourceOptions, search: TableSearch) -> SourceOptions:
    """The options with the version that the search names."""
    return options if "version" not in search.given else replace(options, version=int(search.given["version"]))


def _dataset(options: SourceOptions, at: tuple[str, int]) -> LanceDataset:
    from lance_core.dataset import dataset

    return dataset(at[0], version=at[1], storage_options=dict(options.storage))
