"""Add rows to a table: staged now, published by the commit task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_lance.operators.write import LanceWriteOperator

if TYPE_CHECKING:
    from lance_core.jobs.specs.spec import JobSpec


class LanceAppendOperator(LanceWriteOperator):
    """Stage an append. Arguments of `LanceWriteOperator`, and

    :param create: create the table with the first append that lands, if there is none yet.
    """

    def __init__(self, *, create: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.create = create

    def make_spec(self, *, uri: str, identity: str) -> JobSpec:
        """An AppendSpec; InputError names the argument that is wrong."""
        from lance_core.jobs.specs.spec import AppendSpec, read_spec

        return read_spec(AppendSpec, {**self.write_fields(uri=uri, identity=identity), "create": self.create})
