"""What else is asked about a table: versions, fragments and statistics, rows by every way of reading, all kinds of searches.

for what, ask in asked(dataset, query, names):   a question in the words of both libraries about a table with such indices
    answer = ask()
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

Q = np.linspace(-1, 1, 8).astype(np.float32)
Question = tuple[str, Callable[[], Any]]
COVERED = ("index_type", "num_indexed_rows", "num_unindexed_rows", "num_indexed_fragments", "num_unindexed_fragments")


def asked(dataset: Any, query: Any, names: Sequence[str]) -> Iterator[Question]:
    """The questions about a table. `query`: where the library has its text queries; `names`: those of the indices."""
    yield from _about(dataset, names)
    yield from _rows(dataset)
    if "vector" in dataset.schema.names and dataset.schema.field("vector").type.list_size == len(Q):
        yield from _nearest(dataset)
    if "text_idx" in names:
        yield from _texts(dataset, query)


def _about(dataset: Any, names: Sequence[str]) -> Iterator[Question]:
    yield "versions", lambda: [(item["version"], dict(item["metadata"])) for item in dataset.versions()]
    yield "latest version", lambda: dataset.latest_version
    yield "tags", dataset.tags.list
    yield "branches", lambda: sorted(dataset.branches.list())
    yield "metadata", lambda: [dict(item.metadata or {}) for item in (dataset.schema, *dataset.schema)]
    yield "config", dataset.config
    yield "storage version", lambda: dataset.data_storage_version
    yield "statistics", lambda: sorted((item.id, item.bytes_on_disk) for item in dataset.stats.data_stats().fields)
    yield "table statistics", lambda: {**dataset.stats.dataset_stats()}
    yield "validate", dataset.validate
    yield (
        "fragments",
        lambda: [
            (item.fragment_id, item.physical_rows, item.num_deletions, item.count_rows()) for item in dataset.get_fragments()
        ],
    )
    yield (
        "files",
        lambda: [
            (file.path, [*file.fields], file.file_major_version, file.file_minor_version)
            for item in dataset.get_fragments()
            for file in item.data_files()
        ],
    )
    listed = lambda: [item for item in dataset.list_indices() if item["name"] in names]  # noqa: E731
    yield "indices", lambda: sorted((item["name"], item["uuid"], sorted(item["fragment_ids"])) for item in listed())
    for name in names:
        yield f"statistics of {name}", lambda name=name: [dataset.index_statistics(name)[key] for key in COVERED]


def _rows(dataset: Any) -> Iterator[Question]:
    table, one = dataset.to_table, ["id"]
    for text in ("id < 9", "id % 3 = 1 OR id IS NULL", "id BETWEEN 3 AND 60", "NOT id > 7"):
        yield f"count {text}", lambda text=text: dataset.count_rows(text)
    yield "limit", lambda: table(columns=one, limit=7, offset=5)
    yield "limit of a filter", lambda: table(columns=one, filter="id > 6", limit=4, offset=2)
    yield "head", lambda: dataset.head(5)
    yield "without order", lambda: table(columns=one, scan_in_order=False).sort_by("id")
    batches = {"columns": one, "filter": "id > 10", "batch_size": 7, "with_row_address": True}
    yield "batches", lambda: pa.Table.from_batches([*dataset.to_batches(**batches)])
    yield "row columns", lambda: table(columns=["id", "_rowid", "_rowaddr"])
    yield "versions of rows", lambda: table(columns=["id", "_row_created_at_version", "_row_last_updated_at_version"])
    yield "each fragment", lambda: pa.concat_tables([item.to_table(columns=one) for item in dataset.get_fragments()])
    yield "heads of fragments", lambda: pa.concat_tables([item.head(3) for item in dataset.get_fragments()])
    yield "takes of fragments", lambda: pa.concat_tables([item.take([0, 1]) for item in dataset.get_fragments()])


def _nearest(dataset: Any) -> Iterator[Question]:
    for metric in ("l2", "cosine", "dot"):
        nearest = {"column": "vector", "q": Q, "k": 5, "metric": metric, "use_index": False}
        yield (
            f"nearest by {metric}",
            lambda nearest=nearest: dataset.to_table(columns=["id"], nearest=nearest).select(["id"]),
        )
        some = {"filter": "id > 100", "prefilter": True, "nearest": nearest}
        yield f"nearest of some by {metric}", lambda some=some: dataset.to_table(columns=["id"], **some).select(["id"])


def _texts(dataset: Any, query: Any) -> Iterator[Question]:
    fox, beta, alpha = (query.MatchQuery(words, "text") for words in ("fox 17", "beta", "alpha"))
    must = [(query.Occur.MUST, fox), (query.Occur.MUST_NOT, beta)]
    queries = {
        "words": fox,
        "all words": query.MatchQuery("alpha fox", "text", operator=query.FullTextOperator.AND),
        "almost a word": query.MatchQuery("alpah", "text", fuzziness=2),
        "demoted words": query.BoostQuery(fox, beta, negative_boost=0.3),
        "words without others": query.BooleanQuery(must),
        "words of columns": query.MultiMatchQuery("alpha", ["text"]),
    }
    for what, text in queries.items():
        yield what, lambda text=text: _scored(dataset.to_table(columns=["id", "_score"], full_text_query=text))
    few = {"filter": "id < 50", "prefilter": True}
    yield "words of some", lambda: _scored(dataset.to_table(columns=["id", "_score"], full_text_query=alpha, **few))


def _scored(found: pa.Table) -> list[tuple[int, float]]:
    """Each row with its score, to the digits that both libraries have."""
    pairs = zip(found.column("id").to_pylist(), found.column("_score").to_pylist(), strict=True)
    return sorted((row, float(f"{score:.4g}")) for row, score in pairs)
