"""Make an old version of a table the newest again: takes effect at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from airflow_lance.operators.immediate import LanceImmediateOperator

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import ImmediateArguments


class LanceRestoreOperator(LanceImmediateOperator):
    """Restore a version at most once per task instance, also after retries and clears.

    Arguments of `LanceImmediateOperator`, and

    Args:
        version: the version to restore; this or `tag`. (templated)
        tag: the tag whose version to restore. (templated)
        expected_version: the newest version that may be undone; None is the newest when the task runs. (templated)
        if_moved: what to do when the table has newer versions than that: "fail" (nobody's commit is overruled unseen), or
            "overwrite".

    Raises:
        AirflowFailException: no such version or tag, or newer versions, where `if_moved` says "fail".
    """

    spec = "lance_core.jobs.specs.maintenance:RestoreSpec"

    template_fields: Sequence[str] = (*LanceImmediateOperator.template_fields, "version", "tag", "expected_version")

    def __init__(
        self,
        *,
        version: int | str | None = None,
        tag: str | None = None,
        expected_version: int | str | None = None,
        if_moved: Literal["fail", "overwrite"] = "fail",
        **kwargs: Unpack[ImmediateArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.version = version
        self.tag = tag
        self.expected_version = expected_version
        self.if_moved = if_moved
