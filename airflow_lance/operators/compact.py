"""Rewrite small or much deleted fragments into fewer: staged now, published by the commit task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_lance.compat import Context
from airflow_lance.operators.stage import LanceStageOperator

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import StageArguments


class LanceCompactOperator(LanceStageOperator):
    """Stage a compaction. When there is nothing to do, nothing is written and the commit reports "already committed".

    Arguments of `LanceStageOperator`, and

    Args:
        target_rows_per_fragment: fragments below it are joined with their neighbours up to it. (templated)
        max_bytes_per_file: close a new data file at about that many bytes. (templated)
        materialize_deletions_threshold: rewrite a fragment for its deletions alone above that share; a negative number
            never does. None is the library's default, 0.1.
        max_source_fragments: what one run takes on at most. (templated)
        max_source_rows: what one run takes on at most. (templated)
        max_source_bytes: what one run takes on at most. (templated)
        max_bytes_per_group: a group of fragments, which is one task, reads no more than that. (templated)
        max_rows_per_group: the same in rows. (templated)
        groups_per_commit: rewrite and commit that many groups at a time, in this task, so that a kill keeps what is
            finished; None stages all groups for one commit. (templated)
        strategy: "adjacent" (the official library's plan) or "tiered", which rewrites a size tier when enough fragments
            of it have gathered; use it for tables that are compacted on a schedule. (templated)
        max_files_per_fragment: rewrite fragments whose columns are spread over more data files than that, as adding
            columns many times leaves them; None never does. (templated)
        batch_size: rows a task holds at a time. (templated)
        dry_run: only tell groups, bytes in and out, estimated memory of a task and what is left alone and why; runs in
            the worker and returns the report.
        properties: text that is kept in the transaction. (templated)

    Raises:
        AirflowFailException: no such table.
    """

    spec = "lance_core.jobs.specs.edits:CompactSpec"
    renamed: ClassVar[Mapping[str, str]] = {"dry_run": "only_report"}

    template_fields: Sequence[str] = (
        *LanceStageOperator.template_fields,
        "target_rows_per_fragment", "max_bytes_per_file", "max_source_fragments", "max_source_rows", "max_source_bytes",
        "max_bytes_per_group", "max_rows_per_group", "groups_per_commit", "strategy", "max_files_per_fragment", "batch_size",
        "properties",
    )  # fmt: skip
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **LanceStageOperator.template_fields_renderers, "properties": "json",
    }  # fmt: skip

    def __init__(
        self,
        *,
        target_rows_per_fragment: int | str | None = None,
        max_bytes_per_file: int | str | None = None,
        materialize_deletions_threshold: float | None = None,
        max_source_fragments: int | str | None = None,
        max_source_rows: int | str | None = None,
        max_source_bytes: int | str | None = None,
        max_bytes_per_group: int | str | None = None,
        max_rows_per_group: int | str | None = None,
        groups_per_commit: int | str | None = None,
        strategy: str | None = None,
        max_files_per_fragment: int | str | None = None,
        batch_size: int | str | None = None,
        dry_run: bool = False,
        properties: Mapping[str, str] | None = None,
        **kwargs: Unpack[StageArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.target_rows_per_fragment = target_rows_per_fragment
        self.max_bytes_per_file = max_bytes_per_file
        self.materialize_deletions_threshold = materialize_deletions_threshold
        self.max_source_fragments = max_source_fragments
        self.max_source_rows = max_source_rows
        self.max_source_bytes = max_source_bytes
        self.max_bytes_per_group = max_bytes_per_group
        self.max_rows_per_group = max_rows_per_group
        self.groups_per_commit = groups_per_commit
        self.strategy = strategy
        self.max_files_per_fragment = max_files_per_fragment
        self.batch_size = batch_size
        self.only_report = dry_run  # BaseOperator has a method of that name
        self.properties = dict(properties or {})

    def execute(self, context: Context) -> dict[str, Any]:
        """Stage the compaction once, or report it."""
        if not self.only_report:
            return super().execute(context)
        from lance_core.jobs import api

        return self.report(context, api.report_lines)

    def spec_fields(self) -> dict[str, Any]:
        """The spec's fields; a negative share of deletions is none."""
        fields = super().spec_fields()
        share = self.materialize_deletions_threshold
        return {**fields, "materialize_deletions_threshold": None} if share is not None and share < 0 else fields
