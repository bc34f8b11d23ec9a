"""What changed between two versions: the change feed of a table with stable row ids.

::

    begin 3, end 5     inserted   rows of version 5 created in 4 or 5
                       updated    rows of version 5 created until 3 and changed in 4 or 5
                       deleted    ids of version 3 that version 5 has no more, and of rows that came and went in between

Begin is excluded, end included. Without stable row ids nobody knows who a row was, so only `list_transactions` works.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lance_core.arrow_numpy import arrow_of
from lance_core.dataset.query.scanner import LanceScanner
from lance_core.dataset.scan.request import ScanRequest
from lance_core.dataset.snapshot.fragment_reader import reader_of
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.dataset.versions.transaction_log import read_transactions
from lance_core.errors import InputError
from lance_core.table.transaction import Transaction

_CREATED, _UPDATED = "_row_created_at_version", "_row_last_updated_at_version"


@dataclass(frozen=True)
class DatasetDelta:
    """The changes after version `begin` until version `end` of a table."""

    snapshot: Snapshot
    begin: int
    end: int

    def get_inserted_rows(self) -> pa.RecordBatchReader:
        """Inserted rows, as they are at the end: all columns, `_rowid` and both version columns."""
        return self._rows(f"{_CREATED} > {self.begin} AND {_CREATED} <= {self.end}")

    def get_updated_rows(self) -> pa.RecordBatchReader:
        """Rows that were there and changed, as they are at the end."""
        return self._rows(f"{_CREATED} <= {self.begin} AND {_UPDATED} > {self.begin} AND {_UPDATED} <= {self.end}")

    def get_deleted_row_ids(self) -> pa.RecordBatchReader:
        """Ids (`_rowid`: uint64, ascending) of rows that went. InputError without stable row ids."""
        end = self._at_end()
        if not end.manifest.uses_stable_row_ids:
            raise InputError(f"{end.uri} has no stable row ids, so deleted rows cannot be identified", uri=end.uri)
        before = _living_ids(end.at(self.begin)) if 0 < self.begin < self.end else np.empty(0, np.uint64)
        gone = np.setdiff1d(before, _living_ids(end))
        schema = pa.schema([pa.field("_rowid", pa.uint64())])
        return pa.RecordBatchReader.from_batches(schema, [pa.record_batch([arrow_of(gone)], schema=schema)])

    def list_transactions(self) -> list[Transaction]:
        """What made the versions, oldest first. Versions without a transaction are skipped."""
        found = read_transactions(self.snapshot.store, range(self.begin + 1, self.end + 1))
        return [item for item in found if item is not None]

    def _rows(self, condition: str) -> pa.RecordBatchReader:
        end = self._at_end()
        columns = [*end.visible_schema.names, "_rowid", _CREATED, _UPDATED]
        return LanceScanner(end, ScanRequest(columns=columns, filter=condition)).to_reader()

    def _at_end(self) -> Snapshot:
        return self.snapshot if self.end == self.snapshot.version else self.snapshot.at(self.end)


def open_delta(snapshot: Snapshot, *, compared_against: int | None, begin: int | None, end: int | None) -> DatasetDelta:
    """The changes since `compared_against`, or from `begin` (excluded) to `end`; InputError when neither is complete."""
    if compared_against is not None:
        return DatasetDelta(snapshot, compared_against, snapshot.version)
    if begin is None or end is None:
        raise InputError("delta needs two versions", cure="Pass compared_against, or both begin_version and end_version.")
    return DatasetDelta(snapshot, begin, end)


def _living_ids(snapshot: Snapshot) -> Any:
    parts = []
    for fragment in snapshot.manifest.fragments:
        reader = reader_of(snapshot, fragment)
        parts.append(np.delete(reader.row_ids, reader.deleted))
    return np.concatenate(parts) if parts else np.empty(0, np.uint64)
