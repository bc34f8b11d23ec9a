"""Small tables for tests of the log: real data files of one int64 column, staged and committed in a few lines."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from lance.file import LanceFileReader, LanceFileWriter

from lance_core.arrow import schema_from_arrow
from lance_core.commit import naming
from lance_core.commit.loop import commit_transaction
from lance_core.commit.manifests import load_manifest
from lance_core.errors import NotFoundError
from lance_core.format.fragment import DataFile, Fragment
from lance_core.format.manifest import Manifest
from lance_core.io.store import Store
from lance_core.publish.model import Attempt, StagedTransaction
from lance_core.publish.stage import begin, finish_attempt
from lance_core.table.operations import Append, Overwrite
from lance_core.table.transaction import Transaction

ARROW_SCHEMA = pa.schema([pa.field("a", pa.int64())])
SCHEMA = schema_from_arrow(ARROW_SCHEMA)


def file_bytes(values: Sequence[int]) -> bytes:
    """A data file of column "a" as the official library writes it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.lance"
        writer = LanceFileWriter(str(path), ARROW_SCHEMA)
        writer.write_batch(pa.table({"a": pa.array(values, pa.int64())}, schema=ARROW_SCHEMA))
        writer.close()
        return path.read_bytes()


class Content:
    """Data files by their values, encoded once: the faulty-store tests write thousands of them."""

    def __init__(self) -> None:
        self._bytes: dict[tuple[int, ...], bytes] = {}

    def of(self, values: Sequence[int]) -> bytes:
        key = tuple(values)
        if key not in self._bytes:
            self._bytes[key] = file_bytes(values)
        return self._bytes[key]


CONTENT = Content()


def write_fragment(store: Store, values: Sequence[int], *, attempt: str | None = None) -> Fragment:
    """A fragment without an id whose one file is in the store."""
    name = naming.data_file_name(attempt)
    data = CONTENT.of(values)
    writer = store.open_writer(naming.data_path(name))
    writer.write(data)
    writer.close()
    return Fragment(0, (DataFile(name, (0,), (0,), 2, 2, len(data)),), len(values))


def create(store: Store, values: Sequence[int] = (1, 2, 3)) -> Manifest:
    """Version 1."""
    operation = Overwrite((write_fragment(store, values),), SCHEMA)
    return commit_transaction(store, Transaction(0, str(uuid.uuid4()), operation))


def append(store: Store, values: Sequence[int], *, read_version: int | None = None) -> Manifest:
    """The next version."""
    version = load_manifest(store).version if read_version is None else read_version
    return commit_transaction(store, Transaction(version, str(uuid.uuid4()), Append((write_fragment(store, values),))))


def stage(
    store: Store,
    values: Sequence[int],
    *,
    identity: str | None = None,
    read_version: int | None = None,
    overwrite: bool = False,
    spec: dict[str, Any] | None = None,
    lease_seconds: float = 3600,
    replaces: tuple[str, ...] = (),
) -> StagedTransaction:
    """A staged append, a creating one when there is no table (read version 0), or an overwrite.

    `replaces`: for a commit that stages again, the attempt in whose place it is, and the commit.
    """
    version = _version(store) if read_version is None else read_version
    request = Attempt(
        identity=identity or str(uuid.uuid4()),
        spec=spec or {"kind": "overwrite" if overwrite else "append"},
        read_version=version,
        base=_base(store, version),
        lease_seconds=lease_seconds,
        replaces=replaces,
    )
    return finish(store, begin(store, request), values, overwrite=overwrite)


def finish(store: Store, attempt: Attempt, values: Sequence[int], *, overwrite: bool = False) -> StagedTransaction:
    """Write the data and finish an attempt."""
    fragment = write_fragment(store, values, attempt=attempt.attempt)
    properties = {}
    if overwrite:
        operation: Any = Overwrite((fragment,), SCHEMA)
    elif attempt.read_version == 0:
        operation, properties = Overwrite((fragment,), SCHEMA), {"lance_core.creates": "append"}
    else:
        operation = Append((fragment,))
    transaction = Transaction(attempt.read_version, attempt.identity, operation, properties=properties)
    return finish_attempt(store, attempt, transaction, rows=len(values), bytes=fragment.files[0].file_size_bytes or 0)


def rows_of(store: Store, version: int | None = None) -> list[int]:
    """All values of a version, sorted, read through the official library's file reader."""
    found: list[int] = []
    for fragment in load_manifest(store, version).fragments:
        (file,) = fragment.files
        data = bytes(store.get(naming.data_path(file.path)))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "x.lance"
            path.write_bytes(data)
            found += LanceFileReader(str(path)).read_all().to_table()["a"].to_pylist()
    return sorted(found)


def live_rows(store: Store) -> list[int]:
    """Like `rows_of` by the bytes alone: which known contents the newest version refers to. Needs no reader."""
    by_bytes = {data: values for values, data in CONTENT._bytes.items()}
    files = [file.path for fragment in load_manifest(store).fragments for file in fragment.files]
    return sorted(value for path in files for value in by_bytes[bytes(store.get(naming.data_path(path)))])


def paths(store: Store) -> set[str]:
    """Everything on the store, unfinished writes too."""
    return {entry.path for entry in store.list("")} | {entry.path for entry in store.list_unfinished("")}


def _base(store: Store, version: int) -> str:
    try:
        return load_manifest(store, version).transaction_file if version else ""
    except NotFoundError:
        return ""


def _version(store: Store) -> int:
    from lance_core.commit.manifests import find_latest_version

    return find_latest_version(store) or 0
