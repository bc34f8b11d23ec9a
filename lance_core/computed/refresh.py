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
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from typing import Any

import numpy as np

from lance_core.commit.loop import commit_transaction
from lance_core.commit.naming import data_path
from lance_core.computed.canary import Canary, canary_rows
from lance_core.computed.declaration import declaration_of, find_declared, in_order
from lance_core.computed.declare import give_evidence
from lance_core.computed.evidence import HEAD_BYTES
from lance_core.computed.failures import FailedNote, read_failed, write_failed
from lance_core.computed.fragments import DeclaredColumn, PassResult, RowCounts, declared_column
from lance_core.computed.lancedb_record import has_record, proven_fragments
from lance_core.computed.limits import UNBOUNDED, Meter, SpendingLimits
from lance_core.computed.signatures import FreshNote, signature
from lance_core.computed.workers import LookedAt, Workers, WorkOptions
from lance_core.dataset.snapshot.snapshot import Snapshot, snapshot_of
from lance_core.dataset.versions.auto_cleanup import after_commit
from lance_core.dataset.write.retry import remove_files
from lance_core.errors import IncompatibleConflictError, NotFoundError, RetryableConflictError
from lance_core.format.declared import declared_fields, evidence_of
from lance_core.format.fragment import DataFile, Fragment
from lance_core.format.fragments import FragmentList
from lance_core.format.schema import Field
from lance_core.rowids.bitmap import encode_bitmap
from lance_core.table.edits import with_columns_moved
from lance_core.table.operations.update import Update, UpdateMode
from lance_core.table.transaction import Transaction

_ROUNDS = 40


@dataclass(frozen=True)
class RefreshOptions:
    """`commit_every`: fragments that are published together. `deep`: read every fragment, whatever was noted. `trust`:
    columns whose present values are taken over where they have no evidence. `budget`: what ends the refresh early. `task`:
    who asked, for the note of failed rows; `properties`: text that is kept in its transactions. `canary`: what must hold
    for the first rows before any is published."""

    commit_every: int = 16
    deep: bool = False
    trust: frozenset[str] = frozenset()
    work: WorkOptions = field(default_factory=WorkOptions)
    budget: SpendingLimits = UNBOUNDED
    task: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    canary: Canary | None = None

    @property
    def dry_run(self) -> bool:
        """Whether rows are only counted."""
        return self.work.dry_run


@dataclass
class RefreshReport:
    """What a refresh did: the version it ended on, the versions it made, and the rows of each column.

    `stopped`: the bound of the budget that ended it, "" when it did all. `spent`: what functions said they spent, by column.
    `code_changed`: columns whose function has other code than when they were declared, under the same version. `estimated`,
    of a dry run: what computing would cost, by column, at the price of the last refresh that told one. `column_ids`: of
    the columns' declarations, which a column keeps when it gets another name. `canaries`: the rows of each column that the
    gates passed before the others were computed.
    """

    version: int = 0
    num_versions: int = 0
    columns: dict[str, RowCounts] = field(default_factory=dict)
    fragments_skipped: int = 0
    fragments_written: int = 0
    stopped: str = ""
    spent: dict[str, dict[str, float]] = field(default_factory=dict)
    code_changed: list[str] = field(default_factory=list)
    estimated: dict[str, dict[str, float]] = field(default_factory=dict)
    column_ids: dict[str, str] = field(default_factory=dict)
    canaries: dict[str, int] = field(default_factory=dict)

    @property
    def stale(self) -> int:
        """Rows that were not fresh, over all columns; after a dry run: that a refresh would compute."""
        return sum(counts.stale for counts in self.columns.values())

    def to_dict(self) -> dict[str, Any]:
        """Plain data, with the number of stale rows of each column, without ids."""
        columns = {name: {"stale": counts.stale, **asdict(counts)} for name, counts in self.columns.items()}
        plain = {**asdict(self), "columns": columns, "stale": self.stale}
        del plain["column_ids"]
        return plain


def refresh(
    snapshot: Snapshot,
    columns: Sequence[str] | None,
    workers: Workers,
    options: RefreshOptions,
    *,
    meter: Meter | None = None,
) -> RefreshReport:
    """Refresh declared columns (None: all), each after those that it reads. Raises what a function raises, CommitError."""
    schema = snapshot.manifest.schema
    for name in columns or ():
        find_declared(schema, name)
    report, meter = RefreshReport(version=snapshot.version), meter or Meter(options.budget)
    for name in in_order(schema):
        if columns is None or name in columns:
            before = dict(meter.spent)
            snapshot = _ColumnRefresh(name, workers, options, report, meter).run(snapshot)
            used = {key: amount - before.get(key, 0.0) for key, amount in meter.spent.items()}
            if spent := {key: amount for key, amount in used.items() if amount}:
                report.spent[name] = spent
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

    def __init__(self, name: str, workers: Workers, options: RefreshOptions, report: RefreshReport, meter: Meter) -> None:
        self._name, self._workers, self._options, self._report, self._meter = name, workers, options, report, meter
        self._counts = report.columns.setdefault(name, RowCounts())
        self._failed: list[tuple[int, str, str]] = []
        self._kept_failed: set[str] = set()
        self._note: FreshNote | None = None
        self._recorded: tuple[Snapshot, Field] | None = None
        self._reads_blobs = False

    def run(self, snapshot: Snapshot) -> Snapshot:
        """Rounds until one ends with nothing thrown away."""
        is_done = False
        try:
            for _ in range(_ROUNDS):
                snapshot, is_done = self._round(snapshot)
                if is_done or self._report.stopped:
                    break
            else:
                raise RetryableConflictError(
                    f"column {self._name!r} was not refreshed as a whole: others changed what it was computed for each time",
                    uri=snapshot.uri,
                    version=snapshot.version,
                    cure="Run the refresh again; what it published stays.",
                )
        finally:
            is_whole = is_done and not self._report.stopped
            if self._workers.end_column(is_published=is_whole):
                self._report.code_changed.append(self._name)
            if self._note is not None:
                # Behind the values that were put aside: a refresh that died here finds fragments due, and removes them.
                self._note.save(keeps=not is_whole or self._options.dry_run)
            if not self._options.dry_run:
                self._note_failed(snapshot, is_whole=is_whole)
        return snapshot

    def _round(self, snapshot: Snapshot) -> tuple[Snapshot, bool]:
        """One walk over the fragments of a version: the newest version, and whether all that was stale is published."""
        schema = snapshot.manifest.schema
        item = find_declared(schema, self._name)
        if has_record(item):
            self._recorded = snapshot, item
        if evidence_of(schema, item) is None:
            if self._options.dry_run:
                self._counts.new += snapshot.manifest.num_rows
                self._counts.left += snapshot.manifest.num_rows
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
        note = FreshNote(snapshot.store, column.declaration.id, column.declaration.identity)
        ids = column.all_ids(snapshot.manifest.schema)
        self._report.column_ids[self._name] = column.declaration.id
        self._reads_blobs = bool(column.blobs(snapshot.manifest.schema))
        due = self._due(snapshot, note, ids)
        if due and self._recorded is not None and column.declaration.kind == "sql" and not column.declaration.where:
            column = replace(column, proven=proven_fragments(*self._recorded))
        computed = [fragment for fragment in due if not column.is_proven(fragment, snapshot.manifest.schema)]
        self._try_first(snapshot, column, computed)
        newest, pending, is_done = snapshot, list[_Written](), True
        at_once, begin = self._workers.at_once, 0
        while begin < len(due) and not self._is_used_up():
            for looked in self._workers.look(snapshot, column, due[begin : begin + at_once], self._meter):
                begin += 1
                written = self._looked(looked, note, ids)
                if written is not None:
                    pending.append(written)
            if len(pending) >= self._options.commit_every:
                newest, is_whole = self._publish(newest, pending, column, note)
                is_done, pending = is_done and is_whole, []
        if pending:
            newest, is_whole = self._publish(newest, pending, column, note)
            is_done = is_done and is_whole
        if begin < len(due) or (self._counts.left and not self._options.dry_run):
            self._is_used_up()
        unseen = sum(fragment.num_rows for fragment in due[begin:])
        self._counts.unseen += unseen
        self._counts.left += unseen
        if is_done:
            self._note = note
        else:
            note.save(keeps=True)
        return newest, is_done

    def _try_first(self, snapshot: Snapshot, column: DeclaredColumn, due: Sequence[Fragment]) -> None:
        """Compute the canary and show it to its gates, once. Raises what they raise; the values wait then."""
        canary = self._options.canary
        if canary is None or self._options.dry_run or self._name in self._report.canaries or not due:
            return
        first, most = canary.of(due)
        calls, given = self._meter.calls, self._meter.rows
        results = self._workers.try_first(snapshot, column, first, self._meter, most)
        self._counts.calls += self._meter.calls - calls
        self._counts.rows_given += self._meter.rows - given
        retry_failed = self._options.work.retry_failed
        rows = canary_rows(snapshot, column, first, results, most, self._meter, retry_failed=retry_failed)
        if rows.table.num_rows:
            canary.check(rows)
        self._report.canaries[self._name] = rows.table.num_rows

    def _due(self, snapshot: Snapshot, note: FreshNote, ids: frozenset[int]) -> list[Fragment]:
        """The fragments that no refresh found fresh as they are."""
        due = []
        for fragment in snapshot.manifest.fragments:
            if self._options.deep or not note.knows(fragment, ids):
                due.append(fragment)
                continue
            self._counts.fresh += fragment.num_rows
            self._report.fragments_skipped += 1
        return due

    def _is_used_up(self) -> bool:
        if not self._options.dry_run and self._meter.used_up:
            self._report.stopped = self._meter.used_up
        return bool(self._report.stopped)

    def _looked(self, looked: LookedAt, note: FreshNote, ids: frozenset[int]) -> _Written | None:
        """Count what was seen of a fragment; its new file, None when there is none."""
        seen = looked.seen
        # Calls count where they were made, not where their values were committed.
        self._counts.calls += seen.counts.calls
        self._counts.rows_given += seen.counts.rows_given
        seen.counts.calls = seen.counts.rows_given = 0
        if looked.file is not None:
            self._report.fragments_written += 1
            return _Written(looked.fragment, looked.file, seen)
        self._counts.add(seen.counts)
        self._kept_failed.update(seen.kept_failed)
        if not seen.counts.stale:
            note.add(looked.fragment, ids, is_whole=seen.is_whole)
        elif seen.is_checked and self._reads_blobs:
            note.add_checked(looked.fragment, ids)
        return None

    def _publish(
        self, snapshot: Snapshot, pending: Sequence[_Written], column: DeclaredColumn, note: FreshNote
    ) -> tuple[Snapshot, bool]:
        """Commit files on the newest version, those of fragments that others changed left out; and whether that is all."""
        left = list(pending)
        for _ in range(_ROUNDS):
            newest = _newest(snapshot)
            fitting = self._fitting(newest, left, column)
            self._drop(newest, [item for item in left if item not in fitting])
            left = fitting
            if not left:
                return newest, False
            try:
                manifest = commit_transaction(
                    newest.store, _update(newest, left, column, self._options.properties), opened=newest.opened
                )
            except (RetryableConflictError, IncompatibleConflictError):
                continue
            self._committed(manifest.fragments, left, column.all_ids(manifest.schema), note)
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

    def _committed(
        self, fragments: Sequence[Fragment], committed: Sequence[_Written], ids: frozenset[int], note: FreshNote
    ) -> None:
        there = FragmentList.of(fragments)
        self._report.num_versions += 1
        for item in committed:
            self._counts.add(item.seen.counts)
            first = item.before.id << 32
            self._failed += [(first + row.offset, row.digest, row.error) for row in item.seen.failed]
            self._kept_failed.update(item.seen.kept_failed)
            now = there.get(item.before.id)
            if now is None:
                continue
            # Deleted rows count as they were when it was read: whoever deleted more took nothing back.
            now = replace(now, deletion_file=item.before.deletion_file)
            if item.seen.is_checked and self._reads_blobs:
                note.add_checked(now, ids)
            if item.seen.is_fresh and self._name not in self._options.trust:
                note.add(now, ids, is_whole=item.seen.is_whole)
        if self._reads_blobs:
            note.save_checked()

    def _note_failed(self, snapshot: Snapshot, *, is_whole: bool) -> None:
        """Note which rows failed; of those that were noted before, what was not tried now."""
        item = next((item for item in declared_fields(snapshot.manifest.schema) if item.name == self._name), None)
        if item is None:
            return
        column_id = declaration_of(item).id
        if not column_id:
            return
        before = read_failed(snapshot.store, column_id)
        tries = {row.digest: row.tries for row in before.rows}
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        rows = [
            FailedNote(address, digest, error, tries.get(digest, 0) + 1, now, self._options.task)
            for address, digest, error in self._failed
        ]
        tried = {row.digest for row in rows}
        rows += [
            row for row in before.rows
            if row.digest not in tried and (not is_whole or row.digest[: 2 * HEAD_BYTES] in self._kept_failed)
        ]  # fmt: skip
        if rows or before.rows:
            write_failed(snapshot.store, column_id, rows)


def _newest(snapshot: Snapshot) -> Snapshot:
    return snapshot_of(snapshot.store, storage_options=snapshot.storage_options)


def _same_files(now: Fragment | None, before: Fragment, ids: frozenset[int]) -> bool:
    if now is None:
        return False
    found = (signature(item, ids, bytes(16), with_deletions=False) for item in (now, before))
    return next(found) == next(found)


def _update(
    newest: Snapshot, committed: Sequence[_Written], column: DeclaredColumn, properties: Mapping[str, str]
) -> Transaction:
    there = FragmentList.of(newest.manifest.fragments)
    changed, offsets = [], {}
    for item in committed:
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
    return Transaction(newest.version, str(uuids.uuid4()), operation, properties=dict(properties))
