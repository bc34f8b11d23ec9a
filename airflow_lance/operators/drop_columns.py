"""Drop columns of a table: takes effect at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_lance.operators.immediate import LanceImmediateOperator, given

if TYPE_CHECKING:
    from lance_core.jobs.specs.spec import JobSpec


class LanceDropColumnsOperator(LanceImmediateOperator):
    """Drop columns, or fields of structs; twice is the same as once. Arguments of `LanceImmediateOperator`, and

    :param columns: names, dotted for fields of structs. (templated)
    """

    template_fields: Sequence[str] = (*LanceImmediateOperator.template_fields, "columns")

    def __init__(
        self,
        *,
        columns: Sequence[str],
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.columns = list(columns)

    def make_spec(self, *, uri: str, identity: str) -> JobSpec:
        """A DropColumnsSpec; InputError names the argument that is wrong."""
        from lance_core.jobs.specs.definition import DropColumnsSpec
        from lance_core.jobs.specs.spec import read_spec

        fields = given(
            columns=self.columns,
        )
        return read_spec(DropColumnsSpec, {"uri": uri, "identity": identity, **fields})
