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
        """Delete the rows a filter selects: {"num_deleted_rows": n}.

        Args:
            predicate: SQL text, or a pyarrow expression.
            conflict_retries: how often it is done again on a newer version, when others changed the same rows.
            retry_timeout: how long.

        Raises:
            FilterError: a filter that cannot be read, or does not fit the columns.
            CommitError: others changed the same rows, and went on doing so.
        """
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
        """Give columns new values in the rows a filter selects: {"num_rows_updated": n}.

        Args:
            updates: {column: SQL expression over the row's old values}.
            where: SQL text, or a pyarrow expression; None is all rows.
            conflict_retries: how often it is done again on a newer version, when others changed the same rows.
            retry_timeout: how long.
            data_storage_version: of the files the moved rows are written to; the table's own stays.

        Raises:
            FilterError: SQL that cannot be read, or does not fit the columns.
            InputError: no such column, or a file version across the legacy format.
            CommitError: others changed the same rows, and went on doing so.
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
        """Replace the rows a filter selects by others, in one commit. (Ours.)

        Args:
            predicate: SQL text, or a pyarrow expression.
            data: the new rows, as for `write_dataset`; the filter must hold for all of them.
            schema: of rows that do not tell theirs.

        Raises:
            FilterError: a filter that cannot be read, or does not fit the columns.
            InputError: a row for which it does not hold; nothing was changed.
            CommitError: others changed the same rows.
        """
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
        """Add columns. `merge` joins rows by a key instead.

        Args:
            transforms: a dict of name to SQL; pyarrow fields (null columns); a function of record batches, which may keep a
                checkpoint when `batch_udf` made it; or rows (a table, a reader, batches), as many as this table's and in
                its order.
            read_columns: what a function is given; None is all columns.
            reader_schema: of batches that do not tell theirs.
            batch_size: rows of a batch that a function is given at most.

        Raises:
            InputError: a column that exists, a name or type that no file can hold, another number of rows.
            FilterError: SQL that cannot be read, or does not fit the columns.
            CommitError: others changed the same columns.
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
        """Remove versions and the files only they need. Tagged versions stay.

        Args:
            older_than: versions at least so old; 14 days when neither this nor `retain_versions` nor `versions` is given.
            retain_versions: how many of the newest stay.
            delete_unverified: delete files that no version and no staged work names, however young they are: those that
                another library is about to commit, too.
            error_if_tagged_old_versions: an old version with a tag is an error; otherwise it stays in silence.
            delete_rate_limit: files a second at most.
            versions: numbers of the only versions that may go.
            delete_concurrency: a hint for the official library; changes nothing here.

        Raises:
            InputError: a tagged version that is old, or arguments that contradict each other; nothing was removed.
            StoreError: the store did not answer; what was removed is not needed, and a second call goes on.
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

        Arguments and errors are those of `cleanup_old_versions`. All files are listed, whatever `include_files` and
        `max_files` say.
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
