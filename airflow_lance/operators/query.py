"""Read rows of a table: by filter, by words or by vector; into a file, a table, or the task's result."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from airflow_lance.compat import Context
from airflow_lance.connection import plain_uri
from airflow_lance.execution.triggering import pinned_version
from airflow_lance.operators.immediate import LanceImmediateOperator

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import ImmediateArguments


class LanceQueryOperator(LanceImmediateOperator):
    """Search a table, or export it. A second run replaces what the first one wrote.

    Arguments of `LanceImmediateOperator`, and

    Args:
        columns: the columns to read; all by default, but for columns of vectors in a result. (templated)
        filter: a SQL filter. (templated)
        limit: so many rows at most. (templated)
        full_text: words to search for in columns that have a text index. (templated)
        nearest: `{"column": ..., "q": [...], "k": 10}`: the rows whose vectors are nearest. (templated)
        version: a version, a tag, or "triggering": that of the asset event which triggered this run; None is the newest.
            (templated)
        target: a file's uri or absolute path, or with `format="lance"` a table's; without it the rows are the task's
            result. (templated)
        format: "parquet", "csv", "json" (one object a line), "arrow", or "lance".
        max_rows: more rows than this are refused as a result.
        max_bytes: rows beyond so many bytes of JSON are left out of a result, which says so (`left_out`); 48 KB by
            default, because results are kept in Airflow's database. A `target` takes all rows.

    Raises:
        AirflowFailException: more rows than `max_rows`, a target whose suffix says another format, or a filter that does not
            fit the columns.
    """

    spec = "lance_core.jobs.specs.definition:QuerySpec"

    template_fields: Sequence[str] = (
        *LanceImmediateOperator.template_fields, "columns", "filter", "limit", "full_text", "nearest", "version", "target",
    )  # fmt: skip
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **LanceImmediateOperator.template_fields_renderers, "filter": "sql", "nearest": "json",
    }  # fmt: skip
    template_ext: Sequence[str] = (".sql",)

    def __init__(
        self,
        *,
        columns: Sequence[str] = (),
        filter: str | None = None,
        limit: int | str | None = None,
        full_text: str | None = None,
        nearest: Mapping[str, Any] | None = None,
        version: int | str | None = None,
        target: str | os.PathLike[str] | None = None,
        format: Literal["parquet", "csv", "json", "arrow", "lance"] = "parquet",
        max_rows: int = 1000,
        max_bytes: int | None = None,
        **kwargs: Unpack[ImmediateArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.columns = list(columns)
        self.filter = filter
        self.limit = limit
        self.full_text = full_text
        self.nearest = dict(nearest or {})
        self.version = version
        self.target = plain_uri(target)
        self.format = format
        self.max_rows = max_rows
        self.max_bytes = max_bytes

    def prepare(self, context: Context, *, uri: str) -> None:
        """Pin the version to that of the event which triggered this run, where that is requested."""
        self.version = pinned_version(self.version, context, uri=uri)
