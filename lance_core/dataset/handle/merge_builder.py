"""`LanceDataset.merge_insert(on)`: set the action for each group of rows, then execute.

::

    dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(table)
    -> {"num_inserted_rows": 3, "num_updated_rows": 7, "num_deleted_rows": 0}
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from lance_core.commit.backoff import DEFAULT_RETRIES, DEFAULT_RETRY_TIMEOUT
from lance_core.dataset.edit.merge_insert import MergePlan, stage_merge
from lance_core.dataset.handle.protocol import TableHandle
from lance_core.dataset.write.retry import commit_with_retry
from lance_core.dataset.write.sources import open_source
from lance_core.errors import InputError
from lance_core.format.schema import column_of, primary_key
from lance_core.format.version import parse_storage_version
from lance_core.shortage import verbs_tell_shortages
from lance_core.table.transaction import Transaction


@verbs_tell_shortages
class MergeInsertBuilder:
    """A merge being described; each verb returns the builder."""

    def __init__(self, dataset: TableHandle, on: str | Iterable[str] | None) -> None:
        keys = (on,) if isinstance(on, str) else tuple(on or _primary_key(dataset))
        if not keys or not all(isinstance(key, str) for key in keys):
            raise InputError(
                "merge_insert needs the names of key columns",
                cure='Pass merge_insert("id"); only for a table with a primary key may they be left out.',
            )
        self._dataset = dataset
        self._spec = MergePlan(keys)
        self._retries = DEFAULT_RETRIES
        self._timeout = DEFAULT_RETRY_TIMEOUT

    def when_matched_update_all(self, condition: str | None = None) -> MergeInsertBuilder:
        """Rows that match take the source's values; with a condition (over `source.x` and `target.x`) where it is true."""
        return self._with(matched="update", condition=condition)

    def when_matched_delete(self) -> MergeInsertBuilder:
        """Rows that match go."""
        return self._with(matched="delete", condition=None)

    def when_matched_fail(self) -> MergeInsertBuilder:
        """A row that matches is an error."""
        return self._with(matched="fail", condition=None)

    def when_not_matched_insert_all(self) -> MergeInsertBuilder:
        """Rows of the source that match nothing are inserted."""
        return self._with(insert=True)

    def when_not_matched_by_source_delete(self, expr: str | None = None) -> MergeInsertBuilder:
        """Rows of the table that the source does not match go; with a filter those it selects."""
        return self._with(delete_missing=True if expr is None else expr)

    def conflict_retries(self, max_retries: int) -> MergeInsertBuilder:
        """How often to plan again after a conflict."""
        self._retries = max_retries
        return self

    def retry_timeout(self, timeout: dt.timedelta) -> MergeInsertBuilder:
        """How long to go on planning again."""
        self._timeout = timeout
        return self

    def use_index(self, use_index: bool) -> MergeInsertBuilder:
        """A hint for the official library; results are the same."""
        return self

    def data_storage_version(self, version: str) -> MergeInsertBuilder:
        """The version of the files this merge writes; the table's own stays. InputError across the legacy format."""
        own, wanted = self._dataset.snapshot.manifest.file_version, parse_storage_version(version)
        if own.is_legacy != wanted.is_legacy:
            raise InputError(f"a table of version {own.text} cannot contain files of {wanted.text}", cure="Leave it out.")
        return self._with(version=wanted)

    def target_bases(self, bases: Sequence[str]) -> MergeInsertBuilder:
        """New data files go to these base paths in turn, named by name or path; the table's uri is its own place.

        InputError together with `target_all_bases`.
        """
        if self._spec.target_all is not None:
            raise InputError("target_bases cannot be combined with target_all_bases", cure="Pass only one of them.")
        return self._with(target_bases=tuple(bases))

    def target_all_bases(self, include_primary: bool = True) -> MergeInsertBuilder:
        """New data files go to all base paths in turn, and to the table's own place when `include_primary`.

        InputError together with `target_bases`.
        """
        if self._spec.target_bases:
            raise InputError("target_bases cannot be combined with target_all_bases", cure="Pass only one of them.")
        return self._with(target_all=bool(include_primary))

    def write_mode(self, mode: str) -> MergeInsertBuilder:
        """Rows that match are moved by "auto" and "rewrite_rows". "rewrite_columns" is not implemented: InputError."""
        if mode not in ("auto", "rewrite_rows"):
            known = mode == "rewrite_columns"
            raise InputError(
                f"write_mode {mode!r} is {'not implemented' if known else 'unknown'}",
                cure="Use LanceFragment.update_columns to replace columns in place."
                if known
                else "Use auto or rewrite_rows.",
            )
        return self

    def execute(self, data_obj: Any, *, schema: pa.Schema | None = None) -> dict[str, int]:
        """Merge and commit; the handle moves to the new version. Rows inserted, updated and deleted."""
        source = self._read(data_obj, schema)
        committed, edit = commit_with_retry(
            self._dataset.snapshot,
            lambda current: stage_merge(current, source, self._spec),
            retries=self._retries,
            timeout=self._timeout,
        )
        self._dataset.move_to(committed)
        return dict(edit.result)

    def execute_uncommitted(self, data_obj: Any, *, schema: pa.Schema | None = None) -> tuple[Transaction, dict[str, int]]:
        """Write the files of the merge and return the transaction that would publish them."""
        edit = stage_merge(self._dataset.snapshot, self._read(data_obj, schema), self._spec)
        return edit.transaction, dict(edit.result)

    def _read(self, data_obj: Any, schema: pa.Schema | None) -> pa.Table:
        source = open_source(data_obj, schema)
        return pa.Table.from_batches([*source.batches], schema=source.schema)

    def _with(self, **changes: Any) -> MergeInsertBuilder:
        self._spec = replace(self._spec, **changes)
        return self


def _primary_key(dataset: TableHandle) -> tuple[str, ...]:
    schema = dataset.snapshot.manifest.schema
    return tuple(column_of(schema, item.id) for item in primary_key(schema))
