"""Set the configuration of a table: takes effect at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_lance.operators.immediate import LanceImmediateOperator, given

if TYPE_CHECKING:
    from lance_core.jobs.specs.spec import JobSpec


class LanceTableConfigOperator(LanceImmediateOperator):
    """Set keys of the table's configuration. Arguments of `LanceImmediateOperator`, and

    :param values: key -> value; None removes a key. (templated)
    """

    template_fields: Sequence[str] = (*LanceImmediateOperator.template_fields, "values")
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **LanceImmediateOperator.template_fields_renderers, "values": "json",
    }  # fmt: skip

    def __init__(
        self,
        *,
        values: Mapping[str, str | None],
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.values = dict(values)

    def make_spec(self, *, uri: str, identity: str) -> JobSpec:
        """A TableConfigSpec; InputError names the argument that is wrong."""
        from lance_core.jobs.specs.definition import TableConfigSpec
        from lance_core.jobs.specs.spec import read_spec

        fields = given(
            values=self.values,
        )
        return read_spec(TableConfigSpec, {"uri": uri, "identity": identity, **fields})
