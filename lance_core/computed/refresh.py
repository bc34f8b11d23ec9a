"""Refresh: compute the rows whose evidence does not fit, and publish them fragment by fragment.

::

    note knows the fragment's files       nothing is read
    evidence fits every row               the fragment is noted
    else                                  a file with value and evidence of all its rows, computed where it does not fit;
                                          files are published together, an Update that touches no other column

Nothing is decided by versions. What was written for a fragment that others changed or moved in the meantime is thrown away,
its values are not: they are found by what they were computed from. So a refresh may be killed, run twice at once, or meet
any writer; the worst is work that was done in vain.
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from lance_core.commit.loop import commit_transaction
from lance_core.commit.naming import data_path
from lance_core.computed.declaration import declaration_of, find_declared, in_order
from lance_core.computed.declare import give_evidence
from lance_core.computed.fragments import DeclaredColumn, FragmentWork, PassResult, RowCounts, declared_column
from lance_core.computed.functions import Computation, Load
from lance_core.computed.results import Results
from lance_core.computed.signatures import FreshNote, signature
from lance_core.dataset.snapshot.fragment_reader import reader_of
from lance_core.dataset.snapshot.snapshot import Snapshot, snapshot_of
from lance_core.dataset.versions.auto_cleanup import after_commit
from lance_core.dataset.write.retry import remove_files
from lance_core.errors import IncompatibleConflictError, NotFoundError, RetryableConflictError
from lance_core.format.declared import declared_fields, evidence_of
from lance_core.format.fragment import DataFile, Fragment
from lance_core.format.fragments import FragmentList
from lance_core.rowids.bitmap import encode_bitmap
from lance_core.table.edits import with_columns_moved
from lance_core.table.operations.update import Update, UpdateMode
from lance_core.table.transaction import Transaction

_ROUNDS = 40


@dataclass(frozen=True)
class RefreshOptions:
    """`commit_every`: fragments that are published together. `dry_run`: count only. `deep`: read every fragment, whatever
    was noted. `trust`: columns whose present values are taken over where they have no evidence."""

    commit_every: int = 16
    dry_run: bool = False
    deep: bool = False
    trust: frozenset[str] = frozenset()


@dataclass
class RefreshReport:
    """What a refresh did: the version it ended on, the versions it made, and the rows of each column."""

    version: int = 0
    num_versions: int = 0
    columns: dict[str, RowCounts] = field(default_factory=dict)
    fragments_skipped: int = 0
    fragments_written: int = 0

    @property
    def stale(self) -> int:
        """Rows that were not fresh, over all columns; after a dry run: that a refresh would compute."""
        return sum(counts.stale for counts in self.columns.values())


def refresh(snapshot: Snapshot, columns: Sequence[str] | None, load: Load, options: RefreshOptions) -> RefreshReport:
    """Refresh declared columns (None: all), each after those that it reads. Raises what a function raises, CommitError."""
    schema = snapshot.manifest.schema
    for name in columns or ():
        find_declared(schema, name)
    report = RefreshReport(version=snapshot.version)
    for name in in_order(schema):
        if columns is None or name in columns:
            snapshot = _ColumnRefresh(name, load, options, report).run(snapshot)
    report.version = snapshot.version
    return report


@dataclass(frozen=True)
class _Written:
    """A fragment's new file. `before` is the fragment as it was read."""

    before: Fragment
    file: DataFile
    seen: PassResult


class _ColumnRefresh:
    """The refresh of one column."""

    def __init__(self, name: str, load: Load, options: RefreshOptions, report: RefreshReport) -> None:
        self._name, self._load, self._options, self._report = name, load, options, report
        self._counts = report.columns.setdefault(name, RowCounts())
        self._results: Results | None = None
        self._compute: Computation | None = None

    def run(self, snapshot: Snapshot) -> Snapshot:
        """Rounds until one ends with nothing thrown away."""
        try:
            for _ in range(_ROUNDS):
                snapshot, is_done = self._round(snapshot)
                if is_done:
                    break
            else:
                raise RetryableConflictError(
                    f"column {self._name!r} was not refreshed as a whole: others changed what it was computed for each time",
                    uri=snapshot.uri,
                    version=snapshot.version,
                    cure="Run the refresh again; what it published stays.",
                )
        finally:
            if self._compute is not None:
                self._counts.calls += self._compute.calls
                self._counts.rows_given += self._compute.rows
                self._compute.close()
        if self._results is not None:
            self._results.clear()
        return snapshot

    def _round(self, snapshot: Snapshot) -> tuple[Snapshot, bool]:
        """One walk over the fragments of a version: the newest version, and whether all that was stale is published."""
        schema = snapshot.manifest.schema
        item = find_declared(schema, self._name)
        if evidence_of(schema, item) is None:
            if self._options.dry_run:
                self._counts.new += snapshot.manifest.num_rows
                return snapshot, True
            snapshot = give_evidence(snapshot, item, declaration_of(item))
            self._report.num_versions += 1
            item = find_declared(snapshot.manifest.schema, self._name)
        try:
            return self._walk(snapshot, declared_column(snapshot.manifest.schema, item))
        except NotFoundError:
            newest = _newest(snapshot)
            if newest.version == snapshot.version:
                raise
            return newest, False  # the version was cleaned up in the meantime

    def _walk(self, snapshot: Snapshot, column: DeclaredColumn) -> tuple[Snapshot, bool]:
        schema, declaration = snapshot.manifest.schema, column.declaration
        note = FreshNote(snapshot.store, declaration.id, declaration.identity)
        ids = column.all_ids(schema)
        newest, pending, is_done = snapshot, list[_Written](), True
        for fragment in snapshot.manifest.fragments:
            if not self._options.deep and note.knows(fragment, ids):
                self._counts.fresh += fragment.num_rows
                self._report.fragments_skipped += 1
                continue
            written = self._fragment(snapshot, fragment, column, note, ids)
            if written is None:
                continue
            pending.append(written)
            if len(pending) >= self._options.commit_every:
                newest, is_whole = self._publish(newest, pending, column, note)
                is_done, pending = is_done and is_whole, []
        if pending:
            newest, is_whole = self._publish(newest, pending, column, note)
            is_done = is_done and is_whole
        note.save()
        return newest, is_done

    def _fragment(
        self, snapshot: Snapshot, fragment: Fragment, column: DeclaredColumn, note: FreshNote, ids: frozenset[int]
    ) -> _Written | None:
        """Look at a fragment; its new file, None when there is nothing to write."""
        work = FragmentWork(reader_of(snapshot, fragment), column)
        trusts = self._name in self._options.trust
        if work.has_evidence or self._options.dry_run:
            seen = work.examine() if work.has_evidence else work.count_new()
            if not seen.counts.stale or self._options.dry_run:
                self._counts.add(seen.counts)
                if not seen.counts.stale:
                    note.add(fragment, ids, is_whole=seen.is_whole)
                return None
        elif not fragment.num_rows:
            return None
        if trusts:
            file, seen = work.adopt()
        else:
            file, seen = work.rewrite(*self._engine(snapshot, column))
        self._report.fragments_written += 1
        return _Written(fragment, file, seen)

    def _engine(self, snapshot: Snapshot, column: DeclaredColumn) -> tuple[Computation, Results]:
        """What computes, and what was computed; made when the first row needs it."""
        if self._compute is None or self._results is None:
            declaration, target = column.declaration, snapshot.arrow_schema.field(self._name)
            self._compute = Computation(declaration, target, snapshot.arrow_schema, self._load)
            kept = snapshot.store if declaration.kind == "python" else None
            self._results = Results(kept, declaration.id, declaration.identity, target.type)
        return self._compute, self._results

    def _publish(
        self, snapshot: Snapshot, pending: Sequence[_Written], column: DeclaredColumn, note: FreshNote
    ) -> tuple[Snapshot, bool]:
        """Commit files on the newest version, those of fragments that others changed left out; and whether all landed."""
        left = list(pending)
        for _ in range(_ROUNDS):
            newest = _newest(snapshot)
            fitting = self._fitting(newest, left, column)
            self._drop(newest, [item for item in left if item not in fitting])
            left = fitting
            if not left:
                return newest, False
            try:
                manifest = commit_transaction(newest.store, _update(newest, left, column), opened=newest.opened)
            except (RetryableConflictError, IncompatibleConflictError):
                continue
            self._landed(manifest.fragments, left, column.all_ids(manifest.schema), note)
            return after_commit(Snapshot(newest.store, manifest, newest.storage_options)), len(left) == len(pending)
        self._drop(snapshot, left)
        return _newest(snapshot), False

    def _fitting(self, newest: Snapshot, pending: Sequence[_Written], column: DeclaredColumn) -> list[_Written]:
        """What was written for fragments that still hold what was read, of a column that is still declared so."""
        schema = newest.manifest.schema
        item = next((item for item in declared_fields(schema) if item.id == column.value.id), None)
        evidence = None if item is None else evidence_of(schema, item)
        if item is None or evidence is None or evidence.id != column.evidence.id:
            return []
        now = declaration_of(item)
        if (now.id, now.identity) != (column.declaration.id, column.declaration.identity):
            return []
        ids, there = column.all_ids(schema), FragmentList.of(newest.manifest.fragments)
        return [item for item in pending if _same_files(there.get(item.before.id), item.before, ids)]

    def _drop(self, snapshot: Snapshot, pending: Sequence[_Written]) -> None:
        remove_files(snapshot, [data_path(item.file.path) for item in pending])

    def _landed(
        self, fragments: Sequence[Fragment], landed: Sequence[_Written], ids: frozenset[int], note: FreshNote
    ) -> None:
        there = FragmentList.of(fragments)
        self._report.num_versions += 1
        for item in landed:
            counts = item.seen.counts
            self._counts.add(counts)
            now = there.get(item.before.id)
            if now is not None and not counts.failed_now and self._name not in self._options.trust:
                # Deleted rows count as they were when it was read: whoever deleted more took nothing back.
                note.add(replace(now, deletion_file=item.before.deletion_file), ids, is_whole=item.seen.is_whole)


def _newest(snapshot: Snapshot) -> Snapshot:
    return snapshot_of(snapshot.store, storage_options=snapshot.storage_options)


def _same_files(now: Fragment | None, before: Fragment, ids: frozenset[int]) -> bool:
    if now is None:
        return False
    found = (signature(item, ids, bytes(16), with_deletions=False) for item in (now, before))
    return next(found) == next(found)


def _update(newest: Snapshot, landed: Sequence[_Written], column: DeclaredColumn) -> Transaction:
    there = FragmentList.of(newest.manifest.fragments)
    changed, offsets = [], {}
    for item in landed:
        now = there.get(item.before.id)
        assert now is not None
        changed.append(with_columns_moved(now, item.file))
        offsets[now.id] = encode_bitmap(np.concatenate([*item.seen.written, np.zeros(0, np.int64)]).tolist())
    operation = Update(
        updated_fragments=tuple(changed),
        fields_modified=tuple(sorted(column.written_ids(newest.manifest.schema))),
        update_mode=UpdateMode.REWRITE_COLUMNS,
        updated_fragment_offset_bitmaps=offsets if newest.manifest.uses_stable_row_ids else {},
    )
    return Transaction(newest.version, str(uuids.uuid4()), operation)
