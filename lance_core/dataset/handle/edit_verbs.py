"""The methods of a handle that change the table: each commits and moves the handle to the version it committed.

What a method needs is imported by its first call: a process that only reads pays for none of it.

::

    dataset.delete("id < 100")      dataset.update({"x": "x + 1"}, where="id = 7")      dataset.add_columns({"y": "2 * x"})
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_core.commit.backoff import DEFAULT_RETRIES, DEFAULT_RETRY_TIMEOUT
from lance_core.dataset.arguments import written_out
from lance_core.dataset.edit.write_options import WriteOptions
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.dataset.write.sources import ReaderLike
from lance_core.errors import InputError
from lance_core.format.version import parse_storage_version
from lance_core.shortage import verbs_tell_shortages

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from lance_core.dataset.versions.cleanup import CleanupPlan, CleanupStats


@verbs_tell_shortages
class EditingVerbs:
    """What `LanceDataset` can do to its table."""

    _snapshot: Snapshot

    @written_out(WriteOptions)
    def insert(self, data: ReaderLike, *, mode: str = "append", **options: Unpack[WriteOptions]) -> None:
        """Write rows to this table and move to the new version; options as for `write_dataset`."""
        from lance_core.dataset.edit.insert import write_snapshot

        self._snapshot = write_snapshot(data, self._snapshot, None, mode, **options)

    def delete(
        self,
        predicate: Any,
        *,
        conflict_retries: int = DEFAULT_RETRIES,
        retry_timeout: dt.timedelta = DEFAULT_RETRY_TIMEOUT,
    ) -> dict[str, int]:
        """Delete the rows a filter selects: {"num_deleted_rows": n}. Raises FilterError, CommitError."""
        from lance_core.dataset.edit.delete import delete_rows

        self._snapshot, result = delete_rows(
            self._snapshot, predicate, conflict_retries=conflict_retries, retry_timeout=retry_timeout
        )
        return result

    def update(
        self,
        updates: Mapping[str, str],
        where: Any = None,
        conflict_retries: int = DEFAULT_RETRIES,
        retry_timeout: dt.timedelta = DEFAULT_RETRY_TIMEOUT,
        data_storage_version: str | None = None,
    ) -> dict[str, int]:
        """Give columns new values (SQL) in the rows a filter selects: {"num_rows_updated": n}.

        `data_storage_version`: of the files the moved rows are written to; the table's own stays. InputError across the
        legacy format.
        """
        from lance_core.dataset.edit.update import update_rows

        own = self._snapshot.manifest.file_version
        version = own if data_storage_version is None else parse_storage_version(data_storage_version)
        if version.is_legacy != own.is_legacy:
            raise InputError(
                f"a table of version {own.text} cannot contain files of {version.text}", cure="Omit data_storage_version."
            )
        self._snapshot, result = update_rows(
            self._snapshot,
            updates,
            where=where,
            conflict_retries=conflict_retries,
            retry_timeout=retry_timeout,
            version=version,
        )
        return result

    def replace_where(self, predicate: Any, data: Any, schema: pa.Schema | None = None) -> dict[str, int]:
        """Replace the rows a filter selects by others, which must all satisfy it, in one commit. (Ours.)"""
        from lance_core.dataset.edit.replace_where import replace_rows

        self._snapshot, result = replace_rows(self._snapshot, predicate, data, schema)
        return result

    def truncate_table(self) -> None:
        """Delete all rows; schema and history stay."""
        from lance_core.dataset.edit.delete import delete_rows

        self._snapshot, _ = delete_rows(self._snapshot, "true")

    def add_columns(
        self,
        transforms: Any,
        read_columns: Sequence[str] | None = None,
        reader_schema: pa.Schema | None = None,
        batch_size: int | None = None,
    ) -> None:
        """Add columns: a dict of name to SQL, pyarrow fields (null columns), a function of record batches, or rows.

        Rows (a table, a reader, batches with `reader_schema`) are as many as this table's, in its order. `merge` joins by a
        key instead. A function made by `batch_udf` may keep a checkpoint.
        """
        from lance_core.dataset.columns import evolve

        self._snapshot = evolve.add_columns(
            self._snapshot, transforms, read_columns=read_columns, reader_schema=reader_schema, batch_size=batch_size
        )

    def drop_columns(self, columns: Sequence[str]) -> None:
        """Drop columns, or fields of structs by dotted path."""
        from lance_core.dataset.columns import evolve

        self._snapshot = evolve.drop_columns(self._snapshot, columns)

    def alter_columns(self, *alterations: Mapping[str, Any]) -> None:
        """Rename, retype or change nullability: dicts with "path" and some of "name", "nullable", "data_type"."""
        from lance_core.dataset.columns import evolve

        self._snapshot = evolve.alter_columns(self._snapshot, alterations)

    def cleanup_old_versions(
        self,
        older_than: dt.timedelta | None = None,
        retain_versions: int | None = None,
        *,
        delete_unverified: bool = False,
        error_if_tagged_old_versions: bool = True,
        delete_rate_limit: int | None = None,
        versions: Sequence[int] | None = None,
        delete_concurrency: int | None = None,
    ) -> CleanupStats:
        """Remove versions older than `older_than` (14 days when nothing is given) and the files only they need.

        `delete_rate_limit`: files a second at most; `delete_concurrency` is a hint for the official library.
        """
        from lance_core.dataset.versions.cleanup import run_cleanup

        plan = self.explain_cleanup_old_versions(
            older_than,
            retain_versions,
            versions=versions,
            delete_unverified=delete_unverified,
            error_if_tagged_old_versions=error_if_tagged_old_versions,
        )
        return run_cleanup(self._snapshot.store, plan, files_per_second=delete_rate_limit)

    def explain_cleanup_old_versions(
        self,
        older_than: dt.timedelta | None = None,
        retain_versions: int | None = None,
        *,
        delete_unverified: bool = False,
        error_if_tagged_old_versions: bool = True,
        delete_rate_limit: int | None = None,
        versions: Sequence[int] | None = None,
        include_files: bool = False,
        max_files: int = 1000,
    ) -> CleanupPlan:
        """What `cleanup_old_versions` would remove: `.stats`, `.versions`, `.files`, and `.kept` with reasons.

        All files are listed, whatever `include_files` and `max_files` say.
        """
        from lance_core.dataset.versions.cleanup import plan_cleanup

        return plan_cleanup(
            self._snapshot.store,
            older_than=older_than,
            retain_versions=retain_versions,
            versions=versions,
            delete_unverified=delete_unverified,
            error_if_tagged_old_versions=error_if_tagged_old_versions,
            root=self._snapshot.root,
            storage_options=self._snapshot.storage_options,
        )

    def restore(self) -> None:
        """Make this version the newest again, as a new version, and move to it."""
        from lance_core.dataset.versions.restore import restore_snapshot

        self._snapshot = restore_snapshot(self._snapshot)
