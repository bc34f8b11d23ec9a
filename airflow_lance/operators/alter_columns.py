"""Rename columns, change their type or whether they may be null: takes effect at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_lance.operators.immediate import LanceImmediateOperator, given

if TYPE_CHECKING:
    from lance_core.jobs.specs.spec import JobSpec


class LanceAlterColumnsOperator(LanceImmediateOperator):
    """Alter columns; twice is the same as once. Arguments of `LanceImmediateOperator`, and

    :param alterations: for each column `{"path": ...}` with some of `"name"`, `"data_type"` (as in Spark DDL), `"nullable"`.
        (templated)
    """

    template_fields: Sequence[str] = (*LanceImmediateOperator.template_fields, "alterations")
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **LanceImmediateOperator.template_fields_renderers, "alterations": "json",
    }  # fmt: skip

    def __init__(
        self,
        *,
        alterations: Sequence[Mapping[str, Any]],
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.alterations = list(alterations)

    def make_spec(self, *, uri: str, identity: str) -> JobSpec:
        """An AlterColumnsSpec; InputError names the argument that is wrong."""
        from lance_core.jobs.specs.definition import AlterColumnsSpec
        from lance_core.jobs.specs.spec import read_spec

        fields = given(
            alterations=self.alterations,
        )
        return read_spec(AlterColumnsSpec, {"uri": uri, "identity": identity, **fields})
