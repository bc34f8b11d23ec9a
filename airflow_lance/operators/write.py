"""What append and overwrite share: a source of rows and the size of files, as in `lance_core.jobs.specs.spec.WriteSpec`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from airflow_lance.operators.stage import LanceStageOperator

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import StageArguments
    from lance_core.jobs.specs.spec import SourceSpec


class LanceWriteOperator(LanceStageOperator):
    """Base of the operators that write rows of a source.

    Args:
        source: where the rows come from (templated), one of

            - a path, or a list of paths, of files whose suffix determines the format (`.parquet`, `.csv`, `.json`, `.orc`,
            `.arrow`);
            - `{"format": "csv", "paths": [...], "options": {"header": "true"}, "schema": "id BIGINT, ..."}`: any format of
              `spark.read`, with Spark's option names;
            - `{"sql": "SELECT ... FROM raw", "views": {"raw": {"format": ...}}}`: a query over such sources;
            - `{"callable": "module:function", "kwargs": {...}}`: called with the Spark session (or without, locally).
        max_rows_per_file: close a data file at that many rows. (templated)
        max_bytes_per_file: close a data file at about that many bytes. (templated)
        num_partitions: how many partitions write; None keeps the source's. (templated)
        partitioning: "coalesce" never shuffles, "repartition" does.
        schema_drift: what to do when the source's columns are not the table's: "fail", "fill_missing", "drop_extra",
            "fill_and_drop"; "add_extra", "fill_and_add" add columns that the table lacks with the rows, as one version.
        data_storage_version: the file version of a table that is created.
        enable_stable_row_ids: for a table that is created.
        properties: text that is kept in the transaction. (templated)
        progress_seconds: how often the log tells rows, fragments and bytes; a task that ends sooner counts as begun.

    Raises:
        InputError: a source of an unknown format or with an unknown key.
        AirflowFailException: rows that do not fit the table's columns, where `schema_drift` does not say what to do.
    """

    declares_name = True

    template_fields: Sequence[str] = (
        *LanceStageOperator.template_fields,
        "source", "max_rows_per_file", "max_bytes_per_file", "num_partitions", "properties",
    )  # fmt: skip
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **LanceStageOperator.template_fields_renderers, "source": "json", "properties": "json",
    }  # fmt: skip

    def __init__(
        self,
        *,
        source: Mapping[str, Any] | SourceSpec | str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        max_rows_per_file: int | str | None = None,
        max_bytes_per_file: int | str | None = None,
        num_partitions: int | str | None = None,
        partitioning: Literal["coalesce", "repartition"] = "coalesce",
        schema_drift: str = "fail",
        data_storage_version: str | None = None,
        enable_stable_row_ids: bool = False,
        properties: Mapping[str, str] | None = None,
        progress_seconds: float = 10.0,
        **kwargs: Unpack[StageArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.source = source
        self.max_rows_per_file = max_rows_per_file
        self.max_bytes_per_file = max_bytes_per_file
        self.num_partitions = num_partitions
        self.partitioning = partitioning
        self.schema_drift = schema_drift
        self.data_storage_version = data_storage_version
        self.enable_stable_row_ids = enable_stable_row_ids
        self.properties = dict(properties or {})
        self.progress_seconds = progress_seconds

    def spec_fields(self) -> dict[str, Any]:
        """The spec's fields. InputError for a format that the execution cannot read."""
        from airflow_lance.execution.sources import check_formats

        fields = super().spec_fields()
        check_formats(fields["source"], execution=self.execution)
        return fields
