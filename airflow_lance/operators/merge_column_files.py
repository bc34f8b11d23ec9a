"""Merge small column files of fragments: staged now, published by the commit task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_lance.operators.stage import LanceStageOperator, given, whole

if TYPE_CHECKING:
    from lance_core.jobs.specs.spec import JobSpec


class LanceMergeColumnFilesOperator(LanceStageOperator):
    """Stage a merge of small data files, as adding columns many times leaves them; no row moves. When no fragment has too
    many files, nothing is written and the commit reports "already landed". Arguments of `LanceStageOperator`, and

    :param max_files_per_fragment: the small files of a fragment with more data files are merged; default 16. (templated)
    :param enough_files: how many files such a fragment should have afterwards; None: as many as it may have. (templated)
    :param rows_per_task: a task takes fragments until they hold that many rows. (templated)
    :param properties: text that is kept in the transaction. (templated)
    """

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
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.max_files_per_fragment = max_files_per_fragment
        self.enough_files = enough_files
        self.rows_per_task = rows_per_task
        self.properties = dict(properties or {})

    def make_spec(self, *, uri: str, identity: str) -> JobSpec:
        """A MergeColumnFilesSpec; InputError names the argument that is wrong."""
        from lance_core.jobs.specs.edits import MergeColumnFilesSpec
        from lance_core.jobs.specs.spec import read_spec

        fields = given(
            max_files_per_fragment=whole(self.max_files_per_fragment),
            enough_files=whole(self.enough_files),
            rows_per_task=whole(self.rows_per_task),
            properties=self.properties,
        )
        return read_spec(MergeColumnFilesSpec, {"uri": uri, "identity": identity, **fields})
