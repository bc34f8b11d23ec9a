"""One file for each workload: a function (folder, scale) that makes its data and yields the cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from bench.measure import Case
from bench.workloads import (
    cold_start,
    crossed,
    embeddings,
    first_use,
    indices,
    metadata,
    mixed,
    nested,
    spark,
    spark_bridge,
    texts,
    texts_search,
    vectors,
    verbs,
    wide,
)

WORKLOADS: Mapping[str, Callable[[Path, float], Iterator[Case]]] = {
    "mixed": mixed.cases,
    "embeddings": embeddings.cases,
    "nested": nested.cases,
    "texts": texts.cases,
    "wide": wide.cases,
    "cold_start": cold_start.cases,
    "crossed": crossed.cases,
    "metadata": metadata.cases,
    "verbs": verbs.cases,
    "spark": spark.cases,
    "spark_bridge": spark_bridge.cases,
    "indices": indices.cases,
    "first_use": first_use.cases,
    "texts_search": texts_search.cases,
    "vectors": vectors.cases,
}
