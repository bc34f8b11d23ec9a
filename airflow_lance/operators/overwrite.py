"""Replace all rows and the schema of a table: staged now, published by the commit task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from airflow_lance.operators.write import LanceWriteOperator

if TYPE_CHECKING:
    from lance_core.jobs.specs.spec import JobSpec


class LanceOverwriteOperator(LanceWriteOperator):
    """Stage an overwrite. Arguments of `LanceWriteOperator`, and

    :param if_moved: what the commit does when the table got newer versions since this was planned: "fail" (no rows
        are replaced unseen), or "overwrite".
    :param allow_empty: a source without rows empties the table; by default it is an error, and the rows stay.
    """

    def __init__(self, *, if_moved: Literal["fail", "overwrite"] = "fail", allow_empty: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.if_moved = if_moved
        self.allow_empty = allow_empty

    def make_spec(self, *, uri: str, identity: str) -> JobSpec:
        """An OverwriteSpec; InputError names the argument that is wrong."""
        from lance_core.jobs.specs.spec import OverwriteSpec, read_spec

        own = {"if_moved": self.if_moved, "allow_empty": self.allow_empty}
        return read_spec(OverwriteSpec, {**self.write_fields(uri=uri, identity=identity), **own})
