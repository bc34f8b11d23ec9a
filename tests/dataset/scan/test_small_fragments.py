"""Filters over many tiny fragments, filters on addresses, and deletes that indices answer: the same rows as the slow way."""

from __future__ import annotations

import datetime as dt
import shutil
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.dataset.edit import select_rows as matching
from lance_core.dataset.edit.key_lookup import _join, match_keys
from lance_core.dataset.scan import small_fragments as sweep
from lance_core.dataset.scan.plan import nearby
from lance_core.errors import CorruptFileError, InputError
from lance_core.expr import parse_filter

ROWS, FRAGMENT_ROWS = 600, 20


def _table(rows: int = ROWS) -> pa.Table:
    numbers = np.random.default_rng(5).permutation(rows)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "maybe": pa.array([None if value % 3 == 0 else int(value) for value in numbers], pa.int32()),
            "text": pa.array([f"row {value}" for value in numbers]),
            "flag": pa.array([bool(value % 2) for value in numbers]),
            "same": pa.array(np.full(rows, 7), pa.int16()),
            "none": pa.nulls(rows, pa.float64()),
            "real": pa.array(numbers / 8),
            "kind": pa.array([f"k{value % 5}" for value in numbers]).dictionary_encode(),
            "day": pa.array([dt.date(2024, 1, 1) + dt.timedelta(days=int(value)) for value in numbers]),
            "items": pa.array([[int(value)] * (value % 3) for value in numbers], pa.list_(pa.int64())),
            "point": pa.array([{"x": int(value), "y": None} for value in numbers]),
        }
    )


FILTERS = [
    "id = 333",
    "id >= 590 or id < 4",
    "id % 97 = 3",
    "maybe > 500",
    "maybe is null and id < 20",
    "text = 'row 77' or text like '%99'",
    "flag and id < 9",
    "same = 7 and id = 12",
    "same = 8",
    "none is null and id > 595",
    "none > 1",
    "real between 3 and 4",
    "kind = 'k3' and id < 40",
    "day = date '2024-03-01'",
    "point.x = 5",
    "id < 10 and _rowoffset < 10",
    "_rowaddr % 7 = 1 and id < 100",
    "_rowoffset = 19",
    "true",
    "false",
]


@pytest.fixture(scope="module")
def swept_tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Tables of 30 tiny fragments: by version, written by pylance and by us, some rows deleted, one fragment emptied."""
    root = tmp_path_factory.mktemp("swept")
    found = {}
    for version in ("2.0", "2.1", "2.2"):
        for name, write in (("theirs", _write_theirs), ("ours", _write_ours)):
            uri = str(root / f"{name}-{version}.lance")
            write(uri, version)
            lance.dataset(uri).delete("id % 11 = 0 or (_rowaddr >= 4294967296 and _rowaddr < 8589934592)")
            found[f"{name} {version}"] = uri
    return found


def _write_theirs(uri: str, version: str) -> None:
    lance.write_dataset(_table(), uri, max_rows_per_file=FRAGMENT_ROWS, data_storage_version=version)


def _write_ours(uri: str, version: str) -> None:
    lance_core.write_dataset(_table(), uri, max_rows_per_file=FRAGMENT_ROWS, data_storage_version=version)


@pytest.mark.parametrize("which", ["theirs 2.0", "theirs 2.1", "theirs 2.2", "ours 2.1", "ours 2.2"])
@pytest.mark.parametrize("filter", FILTERS)
def test_the_same_rows_as_one_fragment_at_a_time(
    swept_tables: dict[str, str], which: str, filter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = swept_tables[which]
    columns = ["id", "text", "items", "maybe"]
    found = lance_core.dataset(uri).to_table(columns=columns, filter=filter, with_row_address=True)
    counted = lance_core.dataset(uri).count_rows(filter)
    limited = lance_core.dataset(uri).to_table(columns=["id"], filter=filter, limit=3, offset=1)
    offsets = matching.select_offsets(_snapshot(uri), parse_filter(filter, lance_core.dataset(uri).schema))
    monkeypatch.setattr(sweep, "MIN_TASKS", 10**9)
    slow = lance_core.dataset(uri).to_table(columns=columns, filter=filter, with_row_address=True)
    assert found.equals(slow)
    assert counted == slow.num_rows
    assert limited["id"].to_pylist() == slow["id"].to_pylist()[1:4]
    addresses = [number << 32 | int(offset) for number, part in sorted(offsets.items()) for offset in part]
    assert addresses == slow["_rowaddr"].to_pylist()
    if "_rowoffset" not in filter:
        theirs = lance.dataset(uri).to_table(columns=columns, filter=filter, with_row_address=True)
        assert theirs["_rowaddr"].to_pylist() == addresses


@pytest.mark.parametrize("filter", ["id = 333", "maybe > 500", "text = 'row 77'", "same = 8", "none > 1", "real > 70"])
def test_tiny_fragments_are_really_answered_together(swept_tables: dict[str, str], filter: str) -> None:
    snapshot = _snapshot(swept_tables["theirs 2.2"])
    tasks = [*sweep.swept(snapshot, lance_core.dataset(swept_tables["theirs 2.2"]).scanner(filter=filter).plan)]
    assert all(task.picked is not None for task in tasks)
    assert len(tasks) < 29


def _snapshot(uri: str) -> Any:
    return lance_core.dataset(uri).snapshot


@pytest.mark.parametrize("place", [-3, -30, -60, 0, 9])
def test_damage_among_tiny_fragments_is_told(tmp_path: Path, place: int) -> None:
    uri = tmp_path / "t.lance"
    ds = lance_core.write_dataset(_table().select(["id", "maybe"]), str(uri), max_rows_per_file=FRAGMENT_ROWS)
    path = uri / "data" / ds.get_fragments()[17].data_files()[0].path
    data = bytearray(path.read_bytes())
    data[place] ^= 0xFF
    path.write_bytes(data)
    try:
        found = lance_core.dataset(str(uri)).to_table(filter="id >= 0").num_rows
    except CorruptFileError as error:
        assert path.name in str(error)
    else:
        assert found <= ROWS  # values are not checksummed; a flipped bit of one is a value


def test_fragments_of_many_shapes(tmp_path: Path) -> None:
    """Columns added later, renamed, dropped; a fragment that is large; one without the column."""
    uri = str(tmp_path / "t.lance")
    ds = lance_core.write_dataset(_table(200).select(["id", "maybe"]), uri, max_rows_per_file=10)
    ds.add_columns({"twice": "id * 2"})
    ds.alter_columns({"path": "maybe", "name": "perhaps"})
    lance_core.write_dataset(pa.table({"id": pa.array([1000, 1001], pa.int64())}), uri, mode="append")
    big = pa.table({"id": pa.array(range(2000, 52_000), pa.int64()), "twice": pa.array(range(4000, 104_000, 2), pa.int64())})
    lance_core.write_dataset(big, uri, mode="append")
    for filter in (
        "twice = 40",
        "twice is null",
        "perhaps > 190",
        "id = 1001",
        "id in (5, 1000, 51999)",
        "twice = 2 * id and id > 51990",
    ):
        ours = lance_core.dataset(uri).to_table(filter=filter, with_row_address=True)
        assert ours.equals(lance.dataset(uri).to_table(filter=filter, with_row_address=True)), filter


ADDRESSES = [
    "_rowaddr = 8589934597",
    "_rowaddr in (8589934597, 12884901888, 3)",
    "_rowaddr >= 115964116992",
    "8589934597 > _rowaddr",
    "_rowaddr > 8589934597 and _rowaddr <= 17179869184 and id > 100",
    "_rowid = 8589934597",
    "_rowid between 3 and 9",
    "_rowaddr = 8589934597 or id = 5",
    "not (_rowaddr >= 8589934597)",
    "_rowaddr = 99999999999999",
]


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("filter", ADDRESSES)
def test_filters_on_addresses(tmp_path: Path, filter: str, stable: bool) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(_table().select(["id"]), uri, max_rows_per_file=FRAGMENT_ROWS, enable_stable_row_ids=stable)
    theirs = lance.dataset(uri)
    theirs.delete("id % 5 = 0")
    snapshot = _snapshot(uri)
    kept = nearby(snapshot.manifest, snapshot.manifest.fragments, parse_filter(filter, snapshot.arrow_schema))
    ours = lance_core.dataset(uri).to_table(filter=filter, with_row_address=True, with_row_id=True)
    assert ours.equals(theirs.to_table(filter=filter, with_row_address=True, with_row_id=True).select(ours.column_names))
    assert {address >> 32 for address in ours["_rowaddr"].to_pylist()} <= {fragment.id for fragment in kept}
    if "or" not in filter and "not" not in filter and not (stable and "_rowid" in filter):
        assert len(kept) < 30


@pytest.mark.parametrize("kind", ["BTREE", "BITMAP", "ZONEMAP"])
@pytest.mark.parametrize("stable", [False, True])
def test_delete_and_update_ask_indices(tmp_path: Path, kind: str, stable: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deleted rows, fragments without an index, a filter the index answers only in part: as the official library deletes."""
    uri = str(tmp_path / "t.lance")
    source = _table().select(["id", "maybe", "text"])
    lance.write_dataset(source, uri, max_rows_per_file=100, enable_stable_row_ids=stable)
    theirs = lance.dataset(uri)
    theirs.create_scalar_index("id", kind)
    theirs.delete("id < 50")
    lance.write_dataset(source.slice(0, 150), uri, mode="append")
    other = str(tmp_path / "other.lance")
    shutil.copytree(uri, other)
    seen = []
    real = matching.serve

    def spy(*args: Any, **kwargs: Any) -> Any:
        seen.append(real(*args, **kwargs))
        return seen[-1]

    monkeypatch.setattr(matching, "serve", spy)
    for filter in ("id = 77", "id >= 560 and maybe > 570", "id in (1, 60, 61)", "id between 100 and 130 and text like '%5'"):
        ours, reference = lance_core.dataset(uri), lance.dataset(other)
        assert ours.delete(filter) == reference.delete(filter)
        assert _content(uri) == _content(other)
    lance_core.dataset(uri).update({"maybe": "id + 1"}, where="id > 500 and id < 520")
    lance.dataset(other).update({"maybe": "cast(id + 1 as int)"}, where="id > 500 and id < 520")
    assert _content(uri) == _content(other)
    assert all(served.uses for served in seen)
    lance.dataset(uri).validate()


def _content(uri: str) -> list[tuple[Any, ...]]:
    rows = lance.dataset(uri).to_table().to_pylist()
    return sorted(((row["id"], row["maybe"] is None, row["maybe"], row["text"]) for row in rows), key=repr)


@pytest.mark.parametrize("seed", range(12))
def test_keys_that_are_looked_up_match_as_joined_ones(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    uri = str(tmp_path / "t.lance")
    size = [pa.int8(), pa.int16(), pa.int32(), pa.int64()][seed % 4]
    low, high = (-100, 100) if size == pa.int8() else (-400, 400)
    keys = rng.integers(low, high, 500)
    table = pa.table(
        {"key": pa.array(keys, size, mask=rng.random(500) < 0.1 if seed % 2 else None), "n": pa.array(range(500))}
    )
    lance.write_dataset(table, uri, max_rows_per_file=60)
    lance.dataset(uri).delete(f"n % {seed + 2} = 1")
    wanted = rng.permutation(np.arange(low + 20, high - 20))[: 20 + seed * 5]
    source = pa.table({"key": pa.array(wanted, size), "n": pa.array(np.arange(len(wanted)))})
    snapshot = _snapshot(uri)
    addresses, rows = match_keys(snapshot, source, ["key"])
    joined = sorted(zip(*(part.tolist() for part in _join(snapshot, source, ["key"])), strict=True))
    assert list(zip(addresses.tolist(), rows.tolist(), strict=True)) == joined


def test_a_key_that_is_twice_in_the_source_is_still_ambiguous(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    ds = lance_core.write_dataset(pa.table({"key": [1, 2, 3], "n": [0, 0, 0]}), uri)
    source = pa.table({"key": [2, 2], "n": [8, 9]})
    with pytest.raises(InputError, match="several rows of the source"):
        ds.merge_insert("key").when_matched_update_all().execute(source)
