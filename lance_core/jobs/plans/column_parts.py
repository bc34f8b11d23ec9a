"""The columns that a spec adds, and one task's part: an additional data file of a fragment, recorded when it is finished.

::

    _lance_core/progress/{attempt}/part.3.json    {"fragment": 3, "data_file": "0a1f…"}       fragment 3 has its file
    _lance_core/progress/{attempt}/part.source.json                                           the source was put aside
    _lance_core/progress/{attempt}/part.adopted.json     {"parts": [...]}                     of the attempts that it adopts

The first record of a fragment stays: of two tasks that computed it, the second takes back what it wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import pyarrow as pa

from lance_core.arrow.buffers import numbers_of
from lance_core.commit.naming import data_path, is_of_any
from lance_core.commit.references import fragment_paths
from lance_core.dataset.columns.column_files import write_column_file
from lance_core.dataset.columns.evolve import NewColumns, parse_transforms
from lance_core.dataset.columns.join import joined_columns
from lance_core.dataset.snapshot.fragment_reader import reader_of
from lance_core.dataset.snapshot.snapshot import Snapshot, snapshot_of
from lance_core.errors import InputError, LanceError
from lance_core.format.fragment import DataFile, Fragment
from lance_core.format.schema import Schema
from lance_core.io.many import missing
from lance_core.io.parallel import each
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store
from lance_core.jobs.plans.edit_fragments import part_of
from lance_core.jobs.plans.fill_columns import Filled, existing_names, fill_fragment, reconciled
from lance_core.jobs.runtime.progress import PROGRESS, ProgressReport
from lance_core.jobs.runtime.protocols import TaskResult
from lance_core.jobs.runtime.spool import Spool
from lance_core.jobs.specs.edits import AddColumnsSpec, IfExists
from lance_core.jobs.specs.load_function import allowed_callables, load_function
from lance_core.publish.model import Attempt
from lance_core.publish.records import Record, add_record, read_record, write_record
from lance_core.wire.fragments import decode_fragment, encode_fragment


@dataclass(frozen=True)
class Columns:
    """What to compute, in a form that pickles: a spec's words, the rows to join, and the callables that are allowed."""

    spec_columns: Mapping[str, str] = field(default_factory=dict)
    function: str | None = None
    reads: tuple[str, ...] | None = None
    kwargs: Mapping[str, object] = field(default_factory=dict)
    on: str = ""
    source_on: str | None = None
    if_exists: IfExists = "fail"
    allowed: tuple[str, ...] = ()

    def on_table(self, snapshot: Snapshot, rows: pa.Table | None) -> NewColumns:
        """Fields and computation for a version. FilterError, InputError when they cannot be combined with its columns."""
        keeps_reads = self.function is None or self.reads is not None
        return reconciled(self._named(snapshot, rows), snapshot, if_exists=self.if_exists, keeps_reads=keeps_reads)

    def of_function(self, snapshot: Snapshot) -> pa.Schema:
        """The columns that the function returns, whatever the table has of them."""
        return self._named(snapshot, None).fields

    def _named(self, snapshot: Snapshot, rows: pa.Table | None) -> NewColumns:
        if rows is not None:
            # Columns that both have are for `reconciled` to judge.
            left = [item for item in snapshot.arrow_schema if item.name == self.on or item.name not in rows.column_names]
            return joined_columns(pa.schema(left), rows, self.on, self.source_on)
        if self.function is None:
            return parse_transforms(snapshot, dict(self.spec_columns), None)
        function = _Called(self.function, self.kwargs, self.allowed or allowed_callables())
        return parse_transforms(snapshot, function, self.reads)


class _Called:
    """A named function with its keyword arguments."""

    def __init__(self, name: str, kwargs: Mapping[str, object], allowed: Sequence[str]) -> None:
        self._function = load_function(name, allowed=allowed)
        self._name, self._kwargs = name, dict(kwargs)
        schema = getattr(self._function, "output_schema", None)
        self._columns: list[str] | None = None if schema is None else sorted(schema.names)
        if schema is not None:
            self.output_schema = schema

    def __call__(self, batch: pa.RecordBatch) -> object:
        try:
            made: object = self._function(batch, **self._kwargs)
        except LanceError:
            raise
        except TypeError as error:
            raise InputError(f"add_columns: {self._name} failed: {error}") from error
        self._check(made, num_rows=batch.num_rows)
        return made

    def _check(self, made: object, *, num_rows: int) -> None:
        """InputError that names the function when it gave another number of rows, or other columns than before."""
        if not isinstance(made, (pa.RecordBatch, pa.Table)):
            return  # refused where it is used
        if made.num_rows != num_rows:
            raise InputError(
                f"add_columns: {self._name} returned {made.num_rows} rows for a batch of {num_rows}",
                cure="Return one row for each row of the batch, including deleted rows, in the same order.",
            )
        expected = self._columns
        if expected is not None and sorted(made.schema.names) != expected:
            raise InputError(
                f"add_columns: {self._name} returned the columns {', '.join(made.schema.names)}, but {', '.join(expected)} "
                "were expected",
                cure="Return the same columns for every batch, including empty ones.",
            )
        self._columns = sorted(made.schema.names)


def columns_of(spec: AddColumnsSpec) -> Columns:
    """A spec's words."""
    columns, kwargs, allowed = dict(spec.columns), dict(spec.kwargs), allowed_callables()
    return Columns(
        columns, spec.function, spec.reads, kwargs, spec.on or "", spec.source_on, spec.if_exists, allowed=allowed
    )


@dataclass(frozen=True)
class ColumnWork:
    """Computes the columns `part` for the fragments of each task number, a file and a record for each. Pickles."""

    uri: str
    storage_options: Mapping[str, str] = field(repr=False)
    attempt: str
    version: int
    groups: tuple[tuple[int, ...], ...]
    columns: Columns
    part: Schema
    spool: Spool | None
    batch_size: int | None
    progress_seconds: float

    def __call__(self, partition: int, task_attempt: str, batches: Iterator[pa.RecordBatch]) -> TaskResult:
        """Nothing is returned but counts: the records tell what is done."""
        numbers = [number for batch in batches for number in numbers_of(batch.column("id"))]
        if not numbers:
            return TaskResult(partition, task_attempt)
        store = resolve_store(self.uri, self.storage_options)
        # The job looks through all of its files at its end, for those that are not on record.
        report = ProgressReport(
            store, self.attempt, partition=partition, task_attempt=task_attempt, seconds=self.progress_seconds, begins=False
        )
        snapshot = snapshot_of(store, version=self.version, storage_options=self.storage_options)
        new = self.columns.on_table(snapshot, None if self.spool is None else self.spool.read(store))
        rows = size = 0
        for fragment in [item for number in numbers for item in part_of(snapshot, self.groups[number]).manifest.fragments]:
            file = compute_part(snapshot, fragment, self.part, new, attempt=self.attempt, batch_size=self.batch_size).file
            rows, size = rows + fragment.physical_rows, size + bytes_of(file)
            report.update(rows, 0, size)
        return TaskResult(partition, task_attempt, rows, rows, size)


def compute_part(
    snapshot: Snapshot, fragment: Fragment, part: Schema, new: NewColumns, *, attempt: str, batch_size: int | None
) -> Filled:
    """The file of a fragment's columns, None where it stays as it is: the one on record, or a new one that is put there."""
    store = snapshot.store
    path = _part_path(attempt, fragment.id)
    found = read_record(store, path)
    if found is None:
        assert new.compute is not None
        if existing_names(snapshot, part):
            filled = fill_fragment(snapshot, fragment, part, new, attempt=attempt, batch_size=batch_size)
            return put_filled(store, attempt, fragment, filled)
        reader = reader_of(snapshot, fragment)
        file = write_column_file(reader, part, reads=new.reads, compute=new.compute, batch_size=batch_size, attempt=attempt)
        return put_on_record(store, attempt, fragment, Filled(file, 0, 0))
    return _part_of(found)


def put_filled(store: Store, attempt: str, fragment: Fragment, filled: Filled) -> Filled:
    """The fragment's columns are filled; it stays as it is where no row has gained a value."""
    if filled.file is not None and not filled.num_filled:
        # The new file says what the fragment says.
        store.delete(data_path(filled.file.path))
        filled = replace(filled, file=None)
    return put_on_record(store, attempt, fragment, filled)


def put_on_record(store: Store, attempt: str, fragment: Fragment, part: Filled) -> Filled:
    """The fragment is done. What another task recorded before stays, and this file goes."""
    found = add_record(store, _part_path(attempt, fragment.id), _record_of(fragment, part))
    if found is None:
        return part
    if part.file is not None:
        with suppress(LanceError, OSError):
            store.delete(data_path(part.file.path))
    return _part_of(found)


def bytes_of(file: DataFile | None) -> int:
    """The size of a part's file, 0 for a fragment that stays as it is."""
    return 0 if file is None else file.file_size_bytes or 0


def read_parts(store: Store, attempt: str) -> dict[int, Filled]:
    """Fragment id -> what was made of it, for every fragment on record whose file is there."""
    found = _recorded(store, attempt)
    there = each(store, [part.file for part in found.values()], _is_there)
    for (number, _), whole in zip([*found.items()], there, strict=True):
        if not whole:
            store.delete(_part_path(attempt, number))
            del found[number]
    return found


def _recorded(store: Store, attempt: str) -> dict[int, Filled]:
    folder = f"{PROGRESS}/{attempt}"
    names = [name for name in store.list_names(f"{folder}/") if name.startswith("part.")]
    own = [f"{folder}/{name}" for name in names if name.split(".")[1].isdigit()]
    records = [record for record in each(store, own, read_record) if record is not None]
    adopted = read_record(store, f"{folder}/{_ADOPTED}") if _ADOPTED in names else None
    records = [*([] if adopted is None else adopted["parts"]), *records]
    return {int(record["fragment"]): _part_of(record) for record in records}


def adopt_parts(store: Store, attempt: Attempt, parts: Mapping[int, Filled] | None = None) -> None:
    """Put on record, all at once, what the attempts that this one adopts have made of which fragment: these parts, or those
    that the newest of them has on record."""
    if not attempt.adopts:
        return
    parts = _recorded(store, attempt.adopts[0]) if parts is None else parts
    adopted = {
        number: part
        for number, part in parts.items()
        if part.file is None or is_of_any(data_path(part.file.path), attempt.adopts)
    }
    if adopted:
        records = [_record_of(Fragment(number, (), 0), part) for number, part in adopted.items()]
        write_record(store, f"{PROGRESS}/{attempt.attempt}/{_ADOPTED}", {"parts": records})


def adopt_spool(store: Store, attempt: Attempt, spooled: Sequence[bytes]) -> None:
    """Go on with the source as a former attempt has put it aside, if all of that is there."""
    paths = [*fragment_paths(decode_fragment(data) for data in spooled)]
    if spooled and all(is_of_any(path, attempt.adopts) for path in paths) and not missing(store, paths):
        record_spool(store, attempt.attempt, spooled)


def read_spool(store: Store, attempt: str) -> tuple[bytes, ...] | None:
    """The fragments that a former try put the source aside in, None when it did not finish."""
    record = read_record(store, f"{PROGRESS}/{attempt}/part.source.json")
    return None if record is None else tuple(bytes.fromhex(text) for text in record["fragments"])


def record_spool(store: Store, attempt: str, fragments: Sequence[bytes]) -> tuple[bytes, ...]:
    """Put the spooled source on record; what an earlier try recorded stays."""
    path = f"{PROGRESS}/{attempt}/part.source.json"
    add_record(store, path, {"fragments": [data.hex() for data in fragments]})
    return read_spool(store, attempt) or tuple(fragments)


_ADOPTED = "part.adopted.json"


def _part_path(attempt: str, number: int) -> str:
    return f"{PROGRESS}/{attempt}/part.{number}.json"


def _record_of(fragment: Fragment, part: Filled) -> Record:
    counts = {"tried": part.num_tried, "filled": part.num_filled} if part.num_tried else {}
    if part.file is None:
        return {"fragment": fragment.id, "data_file": "", **counts}
    data = encode_fragment(Fragment(fragment.id, (part.file,), fragment.physical_rows))
    return {"fragment": fragment.id, "data_file": data.hex(), **counts}


def _part_of(record: Record) -> Filled:
    data = bytes.fromhex(record["data_file"])
    file = decode_fragment(data).files[0] if data else None
    return Filled(file, int(record.get("tried", 0)), int(record.get("filled", 0)))


def _is_there(store: Store, file: DataFile | None) -> bool:
    if file is None:
        return True
    try:
        store.size(data_path(file.path))
    except LanceError:
        return False
    return True
