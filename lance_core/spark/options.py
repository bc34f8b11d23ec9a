"""Options of `spark.read.format("lance")` and `df.write.format("lance")`: parsed once, unknown names refused.

::

    .option("version", 7) | .option("tag", "v1") | .option("asof", "2024-01-01")      which version to read
    .option("branch", "feat/x")                        a branch's newest version, or with version one of its; also to write
    .option("columns", "id,name") .option("filter", "id > 5")                         read less, whatever Spark pushes down
    .option("unsealedIndices", "skip")                use (default), skip or compare indices without checksums
    .option("identity", uuid) .option("stageOnly", True)                              how to write
    .option("streamingQueryId", "events")              of a stream: its name over restarts, instead of Spark's own
    .option("region", "eu-west-1")                                                    storage options, by their usual names

Spark compares option names without case, so do we.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lance_core.dataset.scan.index_policy import Unsealed, parse_unsealed
from lance_core.errors import InputError
from lance_core.io.options import KNOWN_OPTIONS

NO_TABLE = "the lance source needs the table's uri"


@dataclass(frozen=True)
class SourceOptions:
    """What a user said about a table. `storage` goes to the store and never into a log.

    `query` and `batch` are those of a stream; `lookback`: in so many versions lance-spark's sink may have written the batch.
    """

    uri: str
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)
    version: int | str | tuple[str | None, int | None] | None = None
    branch: str | None = None
    asof: str | None = None
    columns: tuple[str, ...] | None = None
    filter: str | None = None
    batch_size: int = 16_384
    rows_per_partition: int | None = None
    identity: str = ""
    query: str = ""
    batch: int | None = None
    lookback: int = 100
    stage_only: bool = False
    max_rows_per_file: int | None = None
    max_bytes_per_file: int | None = None
    data_storage_version: str | None = None
    schema_drift: str = "fail"
    if_moved: str = "fail"
    allow_empty: bool = False
    unsealed_indices: Unsealed = "use"
    search: str | None = None


def parse_options(options: Mapping[str, Any]) -> SourceOptions:
    """InputError names an unknown option, or a value that is none."""
    values: dict[str, Any] = {}
    storage: dict[str, str] = {}
    for name, value in options.items():
        lowered = name.lower()
        if lowered in _OPTIONS:
            target, convert = _OPTIONS[lowered]
            values[target] = _converted(name, value, convert)
        elif lowered in KNOWN_OPTIONS:
            storage[lowered] = str(value)
        else:
            near = difflib.get_close_matches(lowered, [*_OPTIONS, *sorted(KNOWN_OPTIONS)], n=2)
            raise InputError(
                f"unknown option {name!r} of the lance source", cure=f"Did you mean {' or '.join(near)}?" if near else None
            )
    if not values.get("uri"):
        raise InputError(NO_TABLE, cure='Pass it: .load("s3://bucket/table.lance").')
    if "asof" in values and "version" in values:
        raise InputError("version, tag and asof cannot be combined")
    if "branch" in values:
        if "asof" in values or isinstance(values.get("version"), str):
            raise InputError(
                "branch cannot be combined with tag or asof", cure="A tag already refers to a version of its branch."
            )
        values["version"] = (values["branch"], values.get("version"))
    return SourceOptions(storage=storage, **values)


def refuse_search(options: SourceOptions) -> None:
    """InputError where the options are those of a search, which is read through the bridge's catalog only."""
    if options.search is not None:
        raise InputError(
            "a search is no table that can be written, or read without the catalog of the bridge",
            uri=options.uri,
            cure="Name the table itself, or select from VECTOR_SEARCH, SEARCH or HYBRID_SEARCH in SQL.",
        )


def _converted(name: str, value: Any, convert: Callable[[str], Any]) -> Any:
    try:
        return convert(str(value))
    except InputError:
        raise
    except ValueError:
        raise InputError(f"option {name!r} of the lance source cannot be {str(value)!r}") from None


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


_OPTIONS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "path": ("uri", str),
    "uri": ("uri", str),
    "version": ("version", int),
    "tag": ("version", str),
    "branch": ("branch", str),
    "asof": ("asof", str),
    "columns": ("columns", _names),
    "filter": ("filter", str),
    "batchsize": ("batch_size", int),
    "rowsperpartition": ("rows_per_partition", int),
    "identity": ("identity", str),
    "streamingqueryid": ("query", str),
    "streamingbatch": ("batch", int),
    "lance.streaming.dedupe.lookback.versions": ("lookback", int),
    "stageonly": ("stage_only", _flag),
    "maxrowsperfile": ("max_rows_per_file", int),
    "maxbytesperfile": ("max_bytes_per_file", int),
    "datastorageversion": ("data_storage_version", str),
    "schemadrift": ("schema_drift", str),
    "ifmoved": ("if_moved", str),
    "allowempty": ("allow_empty", _flag),
    "unsealedindices": ("unsealed_indices", parse_unsealed),
    "search": ("search", str),
}
"""Lower-case option name -> (field, converter)."""
