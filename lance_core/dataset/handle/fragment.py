"""The handle on one fragment: `LanceDataset.get_fragments()`.

::

    fragment = dataset.get_fragments()[0]
    fragment.fragment_id, fragment.count_rows(), fragment.to_table(columns=["id"])
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from lance_core.cached import cached_property
from lance_core.commit.deletion_files import deletion_file_path
from lance_core.dataset.arguments import written_out
from lance_core.dataset.handle.fragment_edits import (
    add_fragment_columns,
    delete_matching,
    delete_offsets,
    join_fragment_columns,
    update_fragment_columns,
)
from lance_core.dataset.handle.protocol import TableHandle
from lance_core.dataset.query.scan_options import FragmentOptions, ScanArguments, ScanOptions, plan_request
from lance_core.dataset.query.scanner import LanceScanner
from lance_core.dataset.scan.postprocess import BlobMode
from lance_core.dataset.scan.projection import Columns, plan_projection
from lance_core.dataset.scan.take import take_rows
from lance_core.dataset.snapshot.fragment_reader import FragmentReader
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.dataset.write.describe_file import describe_file
from lance_core.dataset.write.sources import ReaderLike
from lance_core.dataset.write.write_progress import Progress
from lance_core.errors import InputError
from lance_core.format.fragment import DataFile, Fragment
from lance_core.format.fragments import FragmentList
from lance_core.format.schema import Schema
from lance_core.shortage import verbs_tell_shortages

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
