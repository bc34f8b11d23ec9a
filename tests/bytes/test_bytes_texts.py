"""Strings of 2.0 files by release 0.13: lists whose items are the bytes, in the next column (fixtures/make_texts.py)."""

from __future__ import annotations

import shutil
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import CorruptFileError
from lance_core.file.open import open_file
from lance_core.format.encoding20 import List
from lance_core.io.local.store import LocalStore
from tests.bytes import byte_files as files

TABLE = Path(__file__).parent / "fixtures" / "texts" / "0.13.0"
DATA = sorted(TABLE.glob("data/*.lance"))


def expected() -> pa.Table:
    with pa.ipc.open_file(TABLE / "expected.arrow") as reader:
        return reader.read_all()


def test_the_table_is_read() -> None:
    dataset, table = lance_core.dataset(str(TABLE)), expected()
    assert not list(files.differences(dataset.to_table(), table))
    assert not list(files.differences(lance.dataset(TABLE).to_table(), table))
    picks = np.array([table.num_rows - 1, 3, 3, 70, 0])
    assert not list(files.differences(dataset.take(picks.tolist()), files.take(table, picks)))
    assert not list(files.differences(dataset.to_table(columns=["o", "n"]), table.select(["o", "n"])))
    assert dataset.to_table(filter="o = 'k5'").column("n").to_pylist() == [5]


@pytest.mark.parametrize("path", DATA, ids=lambda path: str(DATA.index(path)))
def test_single_files_are_read(path: Path) -> None:
    opened = open_file(LocalStore(TABLE), f"data/{path.name}")
    (column,) = opened.columns([0])  # type: ignore[attr-defined]
    assert isinstance(column.pages[0].layout, List)
    table = files.batches_of(opened, opened.schema, batch_size=17)
    start = 0 if table.column("n")[0].as_py() == 0 else 70
    assert not list(files.differences(table, expected().slice(start, table.num_rows)))


def test_it_is_compacted_into_what_it_was(tmp_path: Path) -> None:
    shutil.copytree(TABLE, tmp_path / "t")
    lance_core.dataset(str(tmp_path / "t")).optimize.compact_files()
    assert len(lance.dataset(tmp_path / "t").get_fragments()) == 1
    assert not list(files.differences(lance.dataset(tmp_path / "t").to_table(), expected()))


def test_bytes_that_are_missing_are_noticed(tmp_path: Path) -> None:
    path = DATA[0]
    raw = bytearray(path.read_bytes())
    raw[8:16] = (1 << 40).to_bytes(8, "little")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.lance").write_bytes(raw)
    opened = files.open_at(tmp_path)
    with pytest.raises(CorruptFileError):
        files.batches_of(opened, opened.schema)
