"""What LanceDB computed is taken over where its record proves it, and computed where it does not."""

from __future__ import annotations

import datetime as dt
import hashlib
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_core
from lance_core.computed.lancedb_record import _entries
from lance_core.format.schema import Field
from lance_core.io.local.store import LocalStore

FIXTURE = Path(__file__).parent / "data" / "lancedb_refreshed.lance"
"""Made by `make` with lancedb 0.40.0."""


@pytest.fixture(params=["stored", "made now"])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A table of two fragments whose column LanceDB declared and refreshed twice."""
    place = tmp_path / "t.lance"
    if request.param == "stored":
        shutil.copytree(FIXTURE, place)
    else:
        make(place)
    return str(place)


def make(place: Path) -> None:
    """The table; of the stored one, too."""
    lancedb = pytest.importorskip("lancedb")
    table = lancedb.connect(str(place.parent)).create_table(place.stem, rows(1, 2, 3))
    table.add_columns(computed={"y": "x * 2"})
    table.refresh_column("y")
    table.add(rows(4))
    table.refresh_column("y")


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "x": pa.array([10 * item for item in ids], pa.int64())})


def refreshed(uri: str) -> tuple[int, int]:
    """Rows that were given to the expression, and rows that were stale; behind it all is right and fresh."""
    counts = lance_core.refresh_columns(uri).columns["y"]
    table = lance_core.dataset(uri).to_table().to_pylist()
    assert all(row["y"] == 2 * row["x"] for row in table), table
    assert lance_core.refresh_columns(uri, deep=True).stale == 0
    return counts.rows_given, counts.stale


def test_what_its_record_proves_is_taken_over(uri: str) -> None:
    assert refreshed(uri) == (0, 4)


def test_an_input_that_changed_is_computed(uri: str) -> None:
    lance_core.dataset(uri).update({"x": "x + 1"}, where="id = 2")
    assert refreshed(uri) == (1, 4)


def test_a_compaction_ends_what_its_record_proves(uri: str) -> None:
    lance_core.dataset(uri).optimize.compact_files()
    assert refreshed(uri) == (4, 4)


@pytest.mark.parametrize("how", ["gone", "cut", "another"])
def test_without_its_record_all_is_computed(uri: str, how: str) -> None:
    for place in Path(uri, "_computed").glob("*.sig"):
        if how == "gone":
            place.unlink()
        else:
            place.write_bytes(place.read_bytes()[:-1] if how == "cut" else b"CSIG\x01" + bytes(4))
    assert refreshed(uri) == (4, 4)


def test_without_the_versions_of_its_record_all_is_computed(uri: str) -> None:
    lance_core.dataset(uri).cleanup_old_versions(dt.timedelta(0), delete_unverified=True)
    assert refreshed(uri) == (4, 4)


@pytest.mark.parametrize("is_refreshed", [False, True])
def test_values_that_others_wrote_over_are_computed(uri: str, is_refreshed: bool) -> None:
    """By us, where LanceDB's refresh left them."""
    official = pytest.importorskip("lance")
    lancedb = pytest.importorskip("lancedb")
    opened = official.dataset(uri)
    spoilt = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "y": pa.array([7, 7, 7], pa.int64())})
    changed, fields = opened.get_fragments()[0].update_columns(spoilt, "id")[:2]
    operation = official.LanceOperation.Update(
        updated_fragments=[changed], fields_modified=fields, update_mode="rewrite_columns"
    )
    official.LanceDataset.commit(uri, operation, read_version=opened.version)
    table = lancedb.connect(str(Path(uri).parent)).open_table("t")
    table.add(rows(5))
    assert lance_core.dataset(uri).count_rows("y = 7") == 3
    if is_refreshed:
        table.refresh_column("y")
    # It knows the files of a table by where that is: one that was copied it computes anew, of another it leaves them.
    assert refreshed(uri) in ([(0, 5), (3, 5)] if is_refreshed else [(4, 5)])


def test_another_declaration_is_computed(uri: str) -> None:
    lance_core.declare_column(uri, "y", sql="x + x")
    assert refreshed(uri) == (4, 4)


def test_what_it_computed_behind_our_refresh_is_taken_over(uri: str) -> None:
    lancedb = pytest.importorskip("lancedb")
    assert refreshed(uri) == (0, 4)
    table = lancedb.connect(str(Path(uri).parent)).open_table("t")
    for number, expected in ((6, 1), (7, 0)):
        table.add(rows(number))
        table.refresh_column("y")
        assert refreshed(uri)[0] == expected, "its first record behind ours is of all that was there, computed or not"


def test_a_name_that_leads_elsewhere_is_not_read(tmp_path: Path) -> None:
    key = "computed_refresh.source_signature"
    (tmp_path / "_computed").mkdir()
    for name in ("../../etc/passwd", "a" * 63, "A" * 64):
        told: dict[str, Any] = {key: f"sidecar:{name}".encode()}
        item = Field(name="y", id=1, parent_id=-1, logical_type="int64", nullable=True, metadata=told)
        with pytest.raises(ValueError, match="no digest"):
            _entries(LocalStore(str(tmp_path)), item)
    data = b"CSIG\x01" + (1).to_bytes(4, "little") + bytes(range(12))
    name = hashlib.sha256(data).hexdigest()
    (tmp_path / "_computed" / f"{name}.sig").write_bytes(data)
    item = Field(
        name="y", id=1, parent_id=-1, logical_type="int64", nullable=True, metadata={key: f"sidecar:{name}".encode()}
    )
    assert _entries(LocalStore(str(tmp_path)), item) == {0x03020100: bytes(range(4, 12))}
