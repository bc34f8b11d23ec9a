"""A temporary directory that fails gives typed errors, with the cure, and keeps nothing."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import InputError, StoreError, StoreRefusedError
from lance_core.scratch import scratch_folder


@pytest.mark.parametrize(
    ("number", "kind", "retryable"),
    [(errno.ENOSPC, StoreRefusedError, False), (errno.EROFS, StoreRefusedError, False), (errno.EIO, StoreError, True)],
)
def test_failures_of_the_disk_are_typed(number: int, kind: type[StoreError], retryable: bool) -> None:
    with (
        pytest.raises(kind, match="temporary files for sorting cannot be written") as found,
        scratch_folder("sorting") as place,
    ):
        (place / "part").write_bytes(b"1")
        raise OSError(number, os.strerror(number))
    assert found.value.retryable is retryable and "TMPDIR" in str(found.value)
    assert not place.exists()


def test_errors_of_the_library_pass() -> None:
    with pytest.raises(InputError, match="wrong"), scratch_folder("sorting"):
        raise InputError("wrong")


def test_an_index_build_without_a_temporary_directory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = lance_core.write_dataset(pa.table({"s": ["b", "a"]}), str(tmp_path / "t.lance"))

    def full(*_: object, **__: object) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("tempfile.mkdtemp", full)
    with pytest.raises(StoreRefusedError, match="sorting an index"):
        table.create_scalar_index("s", "BTREE")
    assert lance_core.dataset(str(tmp_path / "t.lance")).version == 1
