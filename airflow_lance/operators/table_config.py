"""Set the configuration of a table: takes effect at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from airflow_lance.operators.immediate import LanceImmediateOperator

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import ImmediateArguments


class LanceTableConfigOperator(LanceImmediateOperator):
    """Set keys of the table's configuration. Arguments of `LanceImmediateOperator`, and

    Args:
        values: key -> value; None removes a key. (templated)

    Raises:
        AirflowFailException: no such table.
    """

    spec = "lance_core.jobs.specs.definition:TableConfigSpec"

    template_fields: Sequence[str] = (*LanceImmediateOperator.template_fields, "values")
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **LanceImmediateOperator.template_fields_renderers, "values": "json",
    }  # fmt: skip

    def __init__(
        self,
        *,
        values: Mapping[str, str | None],
        **kwargs: Unpack[ImmediateArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.values = dict(values)
