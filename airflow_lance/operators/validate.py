"""Validate a table: open every file, compare every count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow_lance.operators.immediate import LanceImmediateOperator

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import ImmediateArguments


class LanceValidateOperator(LanceImmediateOperator):
    """Check a version; the task fails, without a retry, at the first thing that is wrong.

    Arguments of `LanceImmediateOperator`, and

    Args:
        version: the version; None is the newest. (templated)
        deep: True also reads every page and compares every index with its rows; False looks at the manifest only. By
            default every data and deletion file is opened.
        indices: compare every index with the rows it covers; reads both whole.
        seal_indices: write checksums for indices that have none (the official library's), once they were compared, so
            that every later reader can trust them without comparing.

    Raises:
        AirflowFailException: the first thing that is wrong, by file and place.
    """

    spec = "lance_core.jobs.specs.maintenance:ValidateSpec"

    template_fields: Sequence[str] = (*LanceImmediateOperator.template_fields, "version")

    def __init__(
        self,
        *,
        version: int | str | None = None,
        deep: bool | None = None,
        indices: bool = False,
        seal_indices: bool = False,
        **kwargs: Unpack[ImmediateArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.version = version
        self.deep = deep
        self.indices = indices
        self.seal_indices = seal_indices
