"""Remove a table with all its versions: takes effect at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from airflow_lance.operators.verb import LanceVerbOperator, given

if TYPE_CHECKING:
    from lance_core.jobs.specs.spec import JobSpec


class LanceDropTableOperator(LanceVerbOperator):
    """Remove a table, with its history, staged work and ledger. Arguments of `LanceVerbOperator`, and

    :param if_missing: what to do when there is no table.
    """

    def __init__(
        self,
        *,
        if_missing: Literal["skip", "fail"] = "skip",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.if_missing = if_missing

    def make_spec(self, *, uri: str, identity: str) -> JobSpec:
        """A DropTableSpec; InputError names the argument that is wrong."""
        from lance_core.jobs.specs.definition import DropTableSpec
        from lance_core.jobs.specs.spec import read_spec

        fields = given(
            if_missing=self.if_missing,
        )
        return read_spec(DropTableSpec, {"uri": uri, "identity": identity, **fields})
