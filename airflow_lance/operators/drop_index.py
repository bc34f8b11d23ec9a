"""Remove an index of a table: takes effect at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_lance.operators.immediate import LanceImmediateOperator, given

if TYPE_CHECKING:
    from lance_core.jobs.specs.spec import JobSpec


class LanceDropIndexOperator(LanceImmediateOperator):
    """Remove an index; one that is absent already does not matter. Arguments of `LanceImmediateOperator`, and

    :param index_name: the index's name. (templated)
    """

    template_fields: Sequence[str] = (*LanceImmediateOperator.template_fields, "index_name")

    def __init__(
        self,
        *,
        index_name: str,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.index_name = index_name

    def make_spec(self, *, uri: str, identity: str) -> JobSpec:
        """A DropIndexSpec; InputError names the argument that is wrong."""
        from lance_core.jobs.specs.definition import DropIndexSpec
        from lance_core.jobs.specs.spec import read_spec

        fields = given(
            name=self.index_name,
        )
        return read_spec(DropIndexSpec, {"uri": uri, "identity": identity, **fields})
