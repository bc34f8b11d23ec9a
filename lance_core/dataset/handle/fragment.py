"""The handle on one fragment: `LanceDataset.get_fragments()`.

::

    fragment = dataset.get_fragments()[0]
    fragment.fragment_id, fragment.count_rows(), fragment.to_table(columns=["id"])

Edits through a fragment's handle: they return the metadata of the changed fragment, for a separate commit.

::

    fragment.delete("x > 3")                    a new deletion file     commit with Delete
    fragment.merge_columns({"y": "2 * x"})      a new data file         commit with Merge
    fragment.update_columns(rows, "id")         the same, for columns that are there: the old ones become dead, -2
                                                                        commit with Update, REWRITE_COLUMNS

Each may run in a process of its own, a fragment each; all must have the same version, because field ids are counted from it.
Nothing is committed, and what never is, is garbage that cleanup takes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.arrays import Ints
from lance_core.arrow_numpy import arrow_of, numpy_of
from lance_core.cached import cached_property
from lance_core.commit.deletion_files import deletion_file_path
from lance_core.dataset.arguments import written_out
from lance_core.dataset.columns import evolve
from lance_core.dataset.columns.column_files import write_column_file
from lance_core.dataset.columns.from_stream import stage_reader
from lance_core.dataset.columns.join import one_array, stage_join
from lance_core.dataset.columns.udf import BatchUDF
from lance_core.dataset.edit.select_rows import matching_offsets
from lance_core.dataset.handle.protocol import TableHandle
from lance_core.dataset.query.scan_options import FragmentOptions, ScanArguments, ScanOptions, plan_request
from lance_core.dataset.query.scanner import LanceScanner
from lance_core.dataset.scan.postprocess import BlobMode
from lance_core.dataset.scan.projection import Columns, plan_projection
from lance_core.dataset.scan.request import as_filter
from lance_core.dataset.scan.take import take_rows
from lance_core.dataset.snapshot.deletion_vectors import read_deleted
from lance_core.dataset.snapshot.fragment_reader import FragmentReader, reader_of
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.dataset.write.deletions import stage_deletions
from lance_core.dataset.write.describe_file import describe_file
from lance_core.dataset.write.retry import StagedEdit
from lance_core.dataset.write.sources import ReaderLike, open_source
from lance_core.dataset.write.write_progress import Progress
from lance_core.errors import InputError, SchemaMismatchError
from lance_core.format.fragment import DataFile, Fragment
from lance_core.format.fragments import FragmentList
from lance_core.format.schema import Schema
from lance_core.rowids.bitmap import encode_bitmap
from lance_core.shortage import ARROW_ERRORS, verbs_tell_shortages
from lance_core.table.edits import with_columns_moved
from lance_core.table.field_ids import next_field_id
from lance_core.table.operations.merge import Merge

if TYPE_CHECKING:
    from typing_extensions import Unpack


@verbs_tell_shortages
class LanceFragment:
    """One fragment of one version."""

    def __init__(
        self, dataset: TableHandle | Snapshot, fragment_id: int | None = None, *, fragment: Fragment | None = None
    ) -> None:
        """The fragment of an id (InputError when there is none), or the one that is described."""
        snapshot = dataset if isinstance(dataset, Snapshot) else dataset.snapshot
        if fragment is None:
            fragment = None if fragment_id is None else FragmentList.of(snapshot.manifest.fragments).get(fragment_id)
        if fragment is None:
            raise InputError(f"{snapshot.uri}: version {snapshot.version} has no fragment {fragment_id}", uri=snapshot.uri)
        self._snapshot = snapshot
        self._place: tuple[Sequence[Fragment], int] = ((fragment,), 0)

    @classmethod
    def _at(cls, snapshot: Snapshot, fragments: Sequence[Fragment], index: int) -> LanceFragment:
        """The fragment at a place of a list, described when somebody asks: a table may have 100,000 of them."""
        made = cls.__new__(cls)
        made._snapshot = snapshot
        made._place = (fragments, index)
        return made

    @cached_property
    def _fragment(self) -> Fragment:
        fragments, index = self._place
        return fragments[index]

    def __repr__(self) -> str:
        return f"LanceFragment(id={self.fragment_id}, data_files={[file.path for file in self._fragment.files]})"

    def __reduce__(self) -> Any:
        return _reopen, (self._snapshot, self._fragment)

    @staticmethod
    def create(
        dataset_uri: str | os.PathLike[str],
        data: ReaderLike,
        fragment_id: int | None = None,
        schema: pa.Schema | None = None,
        max_rows_per_group: int | None = None,
        progress: Progress | None = None,
        mode: str = "append",
        *,
        storage_options: Mapping[str, str] | None = None,
        data_storage_version: str | None = None,
        use_legacy_format: Literal[False] | None = None,
        namespace_client: None = None,
        table_id: None = None,
        session: Any = None,
    ) -> Fragment:
        """Write rows as one fragment that no version has yet, for a commit of one's own. InputError when there are no rows.

        With a mode other than "append" its fields are counted again, for an Overwrite. Options as for `write_dataset`.
        """
        from lance_core.dataset.handle.write_fragments import write_one_fragment

        return write_one_fragment(
            data,
            dataset_uri,
            schema,
            fragment_id=fragment_id,
            mode=mode,
            max_rows_per_group=max_rows_per_group,
            progress=progress,
            storage_options=storage_options,
            data_storage_version=data_storage_version,
            use_legacy_format=use_legacy_format,
            namespace_client=namespace_client,
            table_id=table_id,
            session=session,
        )

    @staticmethod
    def create_from_file(filename: str, dataset: TableHandle, fragment_id: int) -> Fragment:
        """The fragment that a file in the data folder makes, its columns found by name. Raises SchemaMismatchError."""
        file, rows = describe_file(dataset.snapshot, filename)
        return Fragment(fragment_id, (file,), rows)

    @property
    def fragment_id(self) -> int:
        """The fragment's id in the table."""
        return self._fragment.id

    @property
    def metadata(self) -> Fragment:
        """The manifest's metadata of the fragment."""
        return self._fragment

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table at this version, as an Arrow schema."""
        return self._snapshot.visible_schema

    @property
    def physical_rows(self) -> int:
        """Rows in its files, deleted ones too."""
        return self._fragment.physical_rows

    @property
    def num_deletions(self) -> int:
        """The number of deleted rows, 0 without a deletion file."""
        return self._fragment.num_deleted_rows

    def data_files(self) -> list[DataFile]:
        """The data files of the fragment: paths, field ids and format versions, no contents."""
        return [*self._fragment.files]

    def deletion_file(self) -> str | None:
        """The path of its deletion file, if it has one; `metadata.deletion_file` describes it."""
        file = self._fragment.deletion_file
        return None if file is None else deletion_file_path(self.fragment_id, file)

    @written_out(ScanArguments)
    def scanner(self, **arguments: Unpack[ScanArguments]) -> LanceScanner:
        """A scan of this fragment alone; arguments as for `LanceDataset.scanner`."""
        arguments["fragments"] = [self]
        return LanceScanner(self._snapshot, plan_request(**arguments))

    @written_out(FragmentOptions)
    def to_table(
        self,
        columns: Columns = None,
        filter: Any = None,
        limit: int | None = None,
        offset: int | None = None,
        with_row_id: bool = False,
        with_row_address: bool = False,
        **options: Unpack[FragmentOptions],
    ) -> pa.Table:
        """Its rows as a table."""
        return self.scanner(
            columns=columns,
            filter=filter,
            limit=limit,
            offset=offset,
            with_row_id=with_row_id,
            with_row_address=with_row_address,
            **options,
        ).to_table()

    @written_out(ScanArguments)
    def to_batches(self, **arguments: Unpack[ScanArguments]) -> Iterator[pa.RecordBatch]:
        """Its rows as a stream; arguments as for `scanner`."""
        return self.scanner(**arguments).to_batches()

    @written_out(ScanOptions)
    def to_pandas(
        self, columns: Columns = None, *, blob_mode: BlobMode | None = None, **options: Unpack[ScanOptions]
    ) -> Any:
        """Its rows as a pandas frame; options as for `scanner`, `blob_mode` as for its `to_pandas`."""
        return self.scanner(columns=columns, **options).to_pandas(blob_mode=blob_mode)

    def count_rows(self, filter: Any = None) -> int:
        """Rows, all of them or those a filter selects."""
        return self.scanner(filter=filter).count_rows()

    def head(self, num_rows: int) -> pa.Table:
        """Return the first `num_rows` rows of the fragment that are not deleted."""
        return self.to_table(limit=num_rows)

    def take(self, indices: Sequence[int] | pa.Array[Any], columns: Columns = None) -> pa.Table:
        """Rows by position among its live rows."""
        projection = plan_projection(self._snapshot.manifest.schema, columns)
        manifest = replace(self._snapshot.manifest, fragments=(self._fragment,))
        return take_rows(replace(self._snapshot, manifest=manifest, whole=self._snapshot.manifest), indices, projection)

    def open_session(self, columns: Columns = None, with_row_address: bool | None = None) -> FragmentSession:
        """What takes rows of the same columns again and again."""
        return FragmentSession(self, columns, with_row_address=bool(with_row_address))

    def delete(self, predicate: Any) -> Fragment | None:
        """The fragment without the rows a filter selects, None when none is left; commit it with Delete."""
        return delete_matching(self._snapshot, self._fragment, predicate)

    def delete_rows(self, offsets: Iterable[int]) -> Fragment | None:
        """The fragment without rows named by their place in its files, None when none is left; commit it with Delete."""
        return delete_offsets(self._snapshot, self._fragment, offsets)

    def merge(
        self, data_obj: Any, left_on: str, right_on: str | None = None, schema: pa.Schema | None = None
    ) -> tuple[Fragment, Schema]:
        """The fragment with the columns of another table, joined by a key, and the schema then; commit all with Merge."""
        return join_fragment_columns(self._snapshot, self._fragment, data_obj, left_on, right_on, schema)

    def merge_columns(
        self,
        value_func: Any,
        columns: Sequence[str] | None = None,
        batch_size: int | None = None,
        reader_schema: pa.Schema | None = None,
    ) -> tuple[Fragment, Schema]:
        """The fragment with new columns, made as for `add_columns`, and the schema then; commit all with Merge."""
        return add_fragment_columns(
            self._snapshot,
            self._fragment,
            value_func,
            read_columns=columns,
            batch_size=batch_size,
            reader_schema=reader_schema,
        )

    def update_columns(
        self,
        data_obj: Any,
        left_on: str = "_rowid",
        right_on: str | None = None,
        schema: pa.Schema | None = None,
        *,
        with_offsets: bool = False,
    ) -> tuple[Fragment, list[int]] | tuple[Fragment, list[int], bytes]:
        """The fragment with new values in existing columns, where a row of `data_obj` has the key, and the fields.

        Commit it with Update and UpdateMode.REWRITE_COLUMNS. `with_offsets`: also the rows that changed, a portable Roaring
        bitmap for `updated_fragment_offset_bitmaps`. Raises InputError, SchemaMismatchError.
        """
        changed, fields, rows = update_fragment_columns(self._snapshot, self._fragment, data_obj, left_on, right_on, schema)
        return (changed, fields, rows) if with_offsets else (changed, fields)

    def validate(self) -> None:
        """Open its files and compare their rows with the manifest. Raises CorruptFileError."""
        from lance_core.dataset.maintain.validate import check_fragment

        check_fragment(FragmentReader(self._snapshot, self._fragment))


class FragmentSession:
    """Takes rows of one fragment, of columns that are chosen once."""

    def __init__(self, fragment: LanceFragment, columns: Columns, *, with_row_address: bool) -> None:
        self._snapshot = fragment._snapshot
        manifest = replace(self._snapshot.manifest, fragments=(fragment.metadata,))
        self._alone = replace(self._snapshot, manifest=manifest)
        self._projection = plan_projection(manifest.schema, columns, with_row_address=with_row_address)

    def take(self, indices: Sequence[int] | pa.Array[Any]) -> pa.Table:
        """Rows by position among the living ones."""
        return take_rows(self._alone, indices, self._projection)


def _reopen(snapshot: Snapshot, fragment: Fragment) -> LanceFragment:
    return LanceFragment(snapshot, fragment=fragment)


_KEYS = ("_rowid", "_rowaddr")


def alone(snapshot: Snapshot, fragment: Fragment) -> Snapshot:
    """The version as if it had one fragment; new fields get the ids they would get in the whole version."""
    highest = next_field_id(snapshot.manifest) - 1
    manifest = replace(snapshot.manifest, fragments=(fragment,), max_allocated_field_id=highest)
    return replace(snapshot, manifest=manifest, whole=snapshot.manifest)


def delete_matching(snapshot: Snapshot, fragment: Fragment, predicate: Any) -> Fragment | None:
    """The fragment without the rows a filter selects; None when none is left. Raises FilterError."""
    expr = as_filter(predicate, snapshot.arrow_schema)
    if expr is None:
        raise InputError("delete needs a predicate", cure='Pass "true" to delete all rows.')
    only = alone(snapshot, fragment)
    return _without(only, fragment, matching_offsets(only, expr).get(fragment.id))


def delete_offsets(snapshot: Snapshot, fragment: Fragment, offsets: Iterable[int]) -> Fragment | None:
    """The fragment without rows named by their place in its files; None when none is left."""
    wanted = np.unique(np.fromiter((int(offset) for offset in offsets), np.int64))
    beyond = wanted[(wanted < 0) | (wanted >= fragment.physical_rows)]
    if len(beyond):
        raise InputError(f"fragment {fragment.id} has {fragment.physical_rows} rows, no row {beyond[0]}")
    gone = np.setdiff1d(wanted, read_deleted(snapshot, fragment), assume_unique=True)
    return _without(alone(snapshot, fragment), fragment, gone)


def _without(snapshot: Snapshot, fragment: Fragment, gone: Ints | None) -> Fragment | None:
    if gone is None or len(gone) == 0:
        return fragment
    return next(iter(stage_deletions(snapshot, {fragment.id: gone}).updated), None)


def add_fragment_columns(
    snapshot: Snapshot,
    fragment: Fragment,
    transforms: Any,
    *,
    read_columns: Sequence[str] | None,
    batch_size: int | None,
    reader_schema: pa.Schema | None,
) -> tuple[Fragment, Schema]:
    """The fragment with new columns, and the table's schema with them. What columns may be made of: see `add_columns`."""
    if isinstance(transforms, BatchUDF) and transforms.checkpoint is not None:
        raise InputError(
            "a checkpoint file is only supported by add_columns of a table",
            cure="Keep track of finished fragments in your own code.",
        )
    only = alone(snapshot, fragment)
    if evolve.is_rows(transforms):
        return _merged(stage_reader(only, open_source(transforms, reader_schema)))
    return _merged(evolve.stage_add(only, transforms, read_columns, batch_size))


def join_fragment_columns(
    snapshot: Snapshot, fragment: Fragment, data: Any, left_on: str, right_on: str | None, schema: pa.Schema | None
) -> tuple[Fragment, Schema]:
    """The fragment with the columns of another table, and the table's schema with them. See `merge`."""
    return _merged(stage_join(alone(snapshot, fragment), data, left_on, right_on, schema))


def _merged(edit: StagedEdit) -> tuple[Fragment, Schema]:
    operation = edit.transaction.operation
    assert isinstance(operation, Merge)
    return operation.fragments[0], operation.schema


def update_fragment_columns(
    snapshot: Snapshot, fragment: Fragment, data: Any, left_on: str, right_on: str | None, schema: pa.Schema | None
) -> tuple[Fragment, list[int], bytes]:
    """The fragment with new values where rows of `data` have the key: it, the fields that changed, the rows that did.

    The rows are offsets in the fragment's files, as a portable Roaring bitmap. Raises InputError, SchemaMismatchError.
    """
    source = open_source(data, schema)
    right = pa.Table.from_batches([*source.batches], schema=source.schema).combine_chunks()
    key = right_on or left_on
    names = _updated_names(snapshot, right, left_on, key)
    keys = one_array(right.column(key))
    values = {name: _as(one_array(right.column(name)), snapshot.arrow_schema.field(name)) for name in names}
    table = snapshot.manifest.schema
    part = table.project(item.id for name in names for item in table.descend(table.find(name).id))
    matched: list[Ints] = []
    rows_before = 0

    def compute(batch: pa.RecordBatch) -> pa.RecordBatch:
        nonlocal rows_before
        left = {name: batch.column(batch.schema.get_field_index(name)) for name in names}
        found = pc.index_in(batch.column(batch.schema.get_field_index(left_on)), value_set=keys)
        own = np.arange(batch.num_rows, dtype=np.int64)
        picked = np.where(
            pc.is_valid(found), numpy_of(cast("Any", pc.fill_null(cast("Any", found), 0))) + batch.num_rows, own
        )
        matched.append(rows_before + own[picked >= batch.num_rows])
        rows_before += batch.num_rows
        arrays = [pa.concat_arrays([left[name], values[name]]).take(arrow_of(picked)) for name in names]
        return pa.RecordBatch.from_arrays(arrays, names=names)

    file = write_column_file(reader_of(snapshot, fragment), part, reads=[left_on, *names], compute=compute)
    offsets = np.concatenate(matched) if matched else np.empty(0, np.int64)
    living = np.setdiff1d(offsets, read_deleted(snapshot, fragment), assume_unique=True)
    changed = with_columns_moved(fragment, file)
    return changed, [*file.fields], encode_bitmap(living.tolist())


def _as(array: Any, field: Any) -> Any:
    if array.type.equals(field.type):
        return array
    try:
        return array.cast(field.type)
    except ARROW_ERRORS as error:
        raise SchemaMismatchError(f"new values of {field.name!r} are {array.type}, not {field.type}: {error}") from error


def _updated_names(snapshot: Snapshot, right: pa.Table, left_on: str, key: str) -> list[str]:
    here = snapshot.arrow_schema.names
    if left_on not in here and left_on not in _KEYS:
        raise InputError(f"no column {left_on!r} in this table to join on", cure=f"Its columns: {', '.join(here)}.")
    if key not in right.column_names:
        raise InputError(f"no column {key!r} among the new values", cure="Pass right_on.")
    names = [name for name in right.column_names if name != key]
    unknown = [name for name in names if name not in here]
    if unknown or not names:
        what = f"column {unknown[0]!r} is not in this table" if unknown else "there are no new values besides the key"
        raise InputError(f"cannot update columns: {what}", cure="Add columns with merge_columns." if unknown else None)
    if left_on in names:
        raise InputError(f"cannot update {left_on!r}, the key")
    return names
