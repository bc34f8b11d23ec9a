"""Replace all rows and the schema of a table: staged now, published by the commit task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from airflow_lance.operators.write import LanceWriteOperator

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import WriteArguments


class LanceOverwriteOperator(LanceWriteOperator):
    """Stage an overwrite. Arguments of `LanceWriteOperator`, and

    Args:
        if_moved: what the commit does when the table got newer versions since this was planned: "fail" (no rows
            are replaced unseen), or "overwrite".
        allow_empty: a source without rows empties the table; by default it is an error, and the rows stay.

    Raises:
        AirflowFailException: a source without rows and not `allow_empty`; or newer versions, where `if_moved` says "fail".
    """

    spec = "lance_core.jobs.specs.spec:OverwriteSpec"

    def __init__(
        self, *, if_moved: Literal["fail", "overwrite"] = "fail", allow_empty: bool = False, **kwargs: Unpack[WriteArguments]
    ) -> None:
        super().__init__(**kwargs)
        self.if_moved = if_moved
        self.allow_empty = allow_empty
