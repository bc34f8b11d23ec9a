"""Create an empty table: takes effect at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from airflow_lance.operators.immediate import LanceImmediateOperator, given

if TYPE_CHECKING:
    from lance_core.jobs.specs.spec import JobSpec


class LanceCreateTableOperator(LanceImmediateOperator):
    """Create an empty table of a schema. Arguments of `LanceImmediateOperator`, and

    :param schema: the columns as Spark DDL, such as `"id BIGINT, name STRING"`. (templated)
    :param if_exists: what to do if the table already exists.
    :param data_storage_version: the file version; None is the default.
    :param enable_stable_row_ids: keep row ids stable when rows move.
    """

    declares_name = True

    template_fields: Sequence[str] = (*LanceImmediateOperator.template_fields, "schema")

    def __init__(
        self,
        *,
        schema: str,
        if_exists: Literal["skip", "fail"] = "skip",
        data_storage_version: str | None = None,
        enable_stable_row_ids: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.schema = schema
        self.if_exists = if_exists
        self.data_storage_version = data_storage_version
        self.enable_stable_row_ids = enable_stable_row_ids

    def make_spec(self, *, uri: str, identity: str) -> JobSpec:
        """A CreateTableSpec; InputError names the argument that is wrong."""
        from lance_core.jobs.specs.definition import CreateTableSpec
        from lance_core.jobs.specs.spec import read_spec

        fields = given(
            schema=self.schema,
            if_exists=self.if_exists,
            data_storage_version=self.data_storage_version,
            enable_stable_row_ids=self.enable_stable_row_ids,
        )
        return read_spec(CreateTableSpec, {"uri": uri, "identity": identity, **fields})
