"""Merge small column files of fragments: staged now, published by the commit task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from airflow_lance.operators.stage import LanceStageOperator

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import StageArguments


class LanceMergeColumnFilesOperator(LanceStageOperator):
    """Stage a merge of small data files, as adding columns many times leaves them; no row moves. When no fragment has too
    many files, nothing is written and the commit reports "already committed". Arguments of `LanceStageOperator`, and

    Args:
        max_files_per_fragment: the small files of a fragment with more data files are merged; default 16. (templated)
        enough_files: how many files such a fragment should have afterwards; None: as many as it may have. (templated)
        rows_per_task: a task takes fragments until they hold that many rows. (templated)
        properties: text that is kept in the transaction. (templated)

    Raises:
        AirflowFailException: no such table.
    """

    spec = "lance_core.jobs.specs.edits:MergeColumnFilesSpec"

    template_fields: Sequence[str] = (
        *LanceStageOperator.template_fields, "max_files_per_fragment", "enough_files", "rows_per_task", "properties",
    )  # fmt: skip
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **LanceStageOperator.template_fields_renderers, "properties": "json",
    }  # fmt: skip

    def __init__(
        self,
        *,
        max_files_per_fragment: int | str | None = None,
        enough_files: int | str | None = None,
        rows_per_task: int | str | None = None,
        properties: Mapping[str, str] | None = None,
        **kwargs: Unpack[StageArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.max_files_per_fragment = max_files_per_fragment
        self.enough_files = enough_files
        self.rows_per_task = rows_per_task
        self.properties = dict(properties or {})
