"""The handle on one fragment: `LanceDataset.get_fragments()`.

::

    fragment = dataset.get_fragments()[0]
    fragment.fragment_id, fragment.count_rows(), fragment.to_table(columns=["id"])
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from lance_core.dataset.fragments import FragmentReader
from lance_core.dataset.options import SCAN_HINTS, SCAN_REFUSED, check_options
from lance_core.dataset.projection import Columns, plan_projection
from lance_core.dataset.scanner import LanceScanner, ScanRequest
from lance_core.dataset.snapshot import Snapshot
from lance_core.dataset.take import take_rows
from lance_core.format.fragment import DataFile, DeletionFile, Fragment


class LanceFragment:
    """One fragment of one version."""

    def __init__(self, snapshot: Snapshot, fragment: Fragment) -> None:
        self._snapshot = snapshot
        self._fragment = fragment

    def __repr__(self) -> str:
        return f"LanceFragment(id={self.fragment_id}, data_files={[file.path for file in self._fragment.files]})"

    def __reduce__(self) -> Any:
        return LanceFragment, (self._snapshot, self._fragment)

    @property
    def fragment_id(self) -> int:
        """The fragment's id in the table."""
        return self._fragment.id

    @property
    def metadata(self) -> Fragment:
        """What the manifest says about it."""
        return self._fragment

    @property
    def schema(self) -> pa.Schema:
        """The table's schema."""
        return self._snapshot.arrow_schema

    @property
    def physical_rows(self) -> int:
        """Rows in its files, deleted ones too."""
        return self._fragment.physical_rows

    @property
    def num_deletions(self) -> int:
        """Deleted rows."""
        return self._fragment.num_deleted_rows

    def data_files(self) -> list[DataFile]:
        """Its data files."""
        return [*self._fragment.files]

    def deletion_file(self) -> DeletionFile | None:
        """Its deletion file, if it has one."""
        return self._fragment.deletion_file

    def scanner(
        self,
        *,
        columns: Columns = None,
        batch_size: int | None = None,
        filter: Any = None,
        limit: int | None = None,
        offset: int | None = None,
        with_row_id: bool = False,
        with_row_address: bool = False,
        **options: Any,
    ) -> LanceScanner:
        """A scan of this fragment alone."""
        check_options("scanner", options, hints=SCAN_HINTS, refused=SCAN_REFUSED)
        request = ScanRequest(columns, filter, limit, offset, batch_size, with_row_id, with_row_address, [self._fragment])
        return LanceScanner(self._snapshot, request)

    def to_table(
        self,
        columns: Columns = None,
        filter: Any = None,
        limit: int | None = None,
        offset: int | None = None,
        with_row_id: bool = False,
        with_row_address: bool = False,
        **options: Any,
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

    def to_batches(self, **options: Any) -> Iterator[pa.RecordBatch]:
        """Its rows as a stream; options as for `scanner`."""
        return self.scanner(**options).to_batches()

    def to_pandas(self, **options: Any) -> Any:
        """Its rows as a pandas frame."""
        return self.to_table(**options).to_pandas()

    def count_rows(self, filter: Any = None) -> int:
        """Rows, all of them or those a filter selects."""
        return self.scanner(filter=filter).count_rows()

    def head(self, num_rows: int) -> pa.Table:
        """Its first rows."""
        return self.to_table(limit=num_rows)

    def take(self, indices: Sequence[int] | pa.Array[Any], columns: Columns = None) -> pa.Table:
        """Rows by position among its living rows."""
        projection = plan_projection(self._snapshot.manifest.schema, columns)
        alone = replace(self._snapshot, manifest=replace(self._snapshot.manifest, fragments=(self._fragment,)))
        return take_rows(alone, indices, projection)

    def validate(self) -> None:
        """Open its files and compare their rows with the manifest. Raises CorruptFileError."""
        from lance_core.dataset.validate import check_fragment

        check_fragment(FragmentReader(self._snapshot, self._fragment))
