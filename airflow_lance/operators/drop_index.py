"""Remove an index of a table: takes effect at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from airflow_lance.operators.immediate import LanceImmediateOperator

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import ImmediateArguments


class LanceDropIndexOperator(LanceImmediateOperator):
    """Remove an index; one that is absent already does not matter. Arguments of `LanceImmediateOperator`, and

    Args:
        index_name: the index's name. (templated)

    Raises:
        AirflowFailException: no such table.
    """

    spec = "lance_core.jobs.specs.definition:DropIndexSpec"
    renamed: ClassVar[Mapping[str, str]] = {"name": "index_name"}

    template_fields: Sequence[str] = (*LanceImmediateOperator.template_fields, "index_name")

    def __init__(
        self,
        *,
        index_name: str,
        **kwargs: Unpack[ImmediateArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.index_name = index_name
