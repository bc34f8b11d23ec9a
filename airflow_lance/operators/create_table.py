"""Create an empty table: takes effect at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from airflow_lance.operators.immediate import LanceImmediateOperator

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import ImmediateArguments


class LanceCreateTableOperator(LanceImmediateOperator):
    """Create an empty table of a schema. Arguments of `LanceImmediateOperator`, and

    Args:
        schema: the columns as Spark DDL, such as `"id BIGINT, name STRING"`. (templated)
        if_exists: what to do if the table already exists.
        data_storage_version: the file version; None is the default.
        enable_stable_row_ids: keep row ids stable when rows move.

    Raises:
        AirflowFailException: the table exists, and `if_exists` does not allow it; or a schema that no file can hold.
    """

    spec = "lance_core.jobs.specs.definition:CreateTableSpec"

    declares_name = True

    template_fields: Sequence[str] = (*LanceImmediateOperator.template_fields, "schema")

    def __init__(
        self,
        *,
        schema: str,
        if_exists: Literal["skip", "fail"] = "skip",
        data_storage_version: str | None = None,
        enable_stable_row_ids: bool = False,
        **kwargs: Unpack[ImmediateArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.schema = schema
        self.if_exists = if_exists
        self.data_storage_version = data_storage_version
        self.enable_stable_row_ids = enable_stable_row_ids
