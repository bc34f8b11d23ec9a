"""Blobs as inputs of declared columns: digested when they are computed, and not read again because their rows moved."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core import blob_array, blob_field
from lance_core.computed import blob_inputs, moves
from lance_core.errors import InputError, NotFoundError

NAME = "our.images:embed"
VERSIONS = ("2.0", "2.1", "2.2")
SIZES = (0, 10, 3_000, 70_000, 300_000)


def content(key: int) -> bytes | None:
    """Inline, packed, dedicated and empty ones, and nulls."""
    return None if key % 6 == 5 else random.Random(key).randbytes(SIZES[key % len(SIZES)])


def blob_rows(version: str, values: dict[int, Any]) -> pa.Table:
    ids = pa.field("id", pa.int64())
    if version == "2.2":
        field = blob_field("b", inline_size_threshold=1_000, dedicated_size_threshold=100_000)
        column: Any = blob_array(values.values())
    else:
        field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
        column = pa.array(values.values(), pa.large_binary())
    return pa.table([pa.array(values, pa.int64()), column], schema=pa.schema([ids, field]))


def write(uri: str, version: str, keys: range, *, library: Any = lance_core, **options: Any) -> None:
    rows = blob_rows(version, {key: content(key) for key in keys})
    mode = "append" if Path(uri).exists() else "create"
    library.write_dataset(rows, uri, mode=mode, data_storage_version=version, **options)


def told(data: bytes | None) -> str | None:
    return None if data is None else f"{len(data)} {hashlib.sha256(data).hexdigest()[:8]}"


class Embed:
    """Counts the rows and the bytes that it is given."""

    def __init__(self) -> None:
        self.rows = self.size = self.calls = self.largest = 0

    def __call__(self, batch: pa.RecordBatch) -> list[str | None]:
        assert batch.schema.field("b").type == pa.large_binary()
        found = batch.column("b").to_pylist()
        sizes = [len(data or b"") for data in found]
        self.rows, self.size, self.calls = self.rows + len(found), self.size + sum(sizes), self.calls + 1
        self.largest = max(self.largest, sum(sizes))
        return [told(data) for data in found]

    def taken(self) -> int:
        rows, self.rows = self.rows, 0
        return rows


def declare(uri: str, **options: Any) -> None:
    given = {"function": NAME, "inputs": ["b"], "type": pa.string(), "on_error": "skip", **options}
    lance_core.declare_column(uri, "made", **given)


def done(report: Any) -> int:
    """Rows that were computed, or got what was computed for an equal blob a moment before."""
    counts = report.columns["made"]
    return int(counts.rows_given + counts.reused)


def refresh(uri: str, embed: Any, **options: Any) -> Any:
    return lance_core.refresh_columns(uri, functions={NAME: embed}, **options)


def check(uri: str, expected: dict[int, Any] | None = None) -> None:
    """Every value is what the blob beside it says, as the official library reads it."""
    table = lance.dataset(uri).to_table(columns=["id", "b", "made"], blob_handling="all_binary")
    for row in table.to_pylist():
        if row["made"] != told(row["b"]):
            raise AssertionError((row["id"], row["made"], told(row["b"])))
    if expected is not None:
        assert {row["id"]: row["b"] for row in table.to_pylist()} == expected


@pytest.fixture
def blob_reads(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many blobs were read since it was asked last, the empty ones and nulls left out."""
    count = 0
    plain = blob_inputs._bytes_of

    def counted(places: Any) -> Any:
        nonlocal count
        count += sum(place is not None and place.size > 0 for place in places)
        return plain(places)

    monkeypatch.setattr(blob_inputs, "_bytes_of", counted)

    def taken() -> int:
        nonlocal count
        found, count = count, 0
        return found

    return taken


def with_bytes(keys: Any) -> int:
    return sum(bool(content(key)) for key in keys)


@pytest.mark.parametrize("writer", [lance_core, lance], ids=["ours", "theirs"])
@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_read_and_what_is_computed(tmp_path: Path, version: str, writer: Any, blob_reads: Callable[[], int]) -> None:
    uri, embed = str(tmp_path / "t.lance"), Embed()
    write(uri, version, range(12), library=writer, max_rows_per_file=5)
    declare(uri)
    report = refresh(uri, embed)
    assert (done(report), report.columns["made"].new, blob_reads()) == (12, 12, with_bytes(range(12)))
    embed.taken()
    check(uri, {key: content(key) for key in range(12)})
    assert (refresh(uri, embed).stale, embed.taken(), blob_reads()) == (0, 0, 0)
    write(uri, version, range(12, 17), library=writer)
    report = refresh(uri, embed)
    assert (report.stale, done(report), blob_reads()) == (5, 5, with_bytes(range(12, 17)))
    check(uri)


@pytest.mark.parametrize("compactor", ["ours", "deferred", "theirs"])
@pytest.mark.parametrize("version", VERSIONS)
def test_behind_a_compaction_no_blob_is_read_again(
    tmp_path: Path, version: str, compactor: str, blob_reads: Callable[[], int]
) -> None:
    uri, embed = str(tmp_path / "t.lance"), Embed()
    write(uri, version, range(12), max_rows_per_file=4)
    declare(uri)
    refresh(uri, embed)
    lance_core.dataset(uri).delete("id IN (1, 6)")
    write(uri, version, range(12, 15))
    embed.taken(), blob_reads()
    if compactor == "theirs":
        lance.dataset(uri).optimize.compact_files(target_rows_per_fragment=100)
    else:
        options = {"defer_index_remap": True} if compactor == "deferred" else {}
        lance_core.dataset(uri).optimize.compact_files(target_rows_per_fragment=100, **options)
    assert len(lance_core.dataset(uri).get_fragments()) == 1
    dry = refresh(uri, embed, dry_run=True)
    assert (dry.columns["made"].new, blob_reads()) == (3, 0)
    report = refresh(uri, embed)
    assert (report.stale, done(report), blob_reads()) == (3, 3, with_bytes(range(12, 15)))
    embed.taken()
    check(uri)
    lance_core.dataset(uri).delete("id = 3")
    assert (refresh(uri, embed).stale, embed.taken(), blob_reads()) == (0, 0, 0)
    assert (refresh(uri, embed, deep=True).stale, embed.taken()) == (0, 0)
    assert blob_reads() == with_bytes({*range(15)} - {1, 6, 3})


@pytest.mark.parametrize("version", VERSIONS)
def test_compactions_of_compactions_and_deletions_between(
    tmp_path: Path, version: str, blob_reads: Callable[[], int]
) -> None:
    uri, embed = str(tmp_path / "t.lance"), Embed()
    write(uri, version, range(24), max_rows_per_file=3)
    lance_core.dataset(uri).delete("id % 7 = 2")
    declare(uri)
    refresh(uri, embed)
    embed.taken(), blob_reads()
    for target, where in ((6, "id = 4"), (12, "id IN (0, 10, 11)"), (100, "id = 20")):
        lance_core.dataset(uri).optimize.compact_files(target_rows_per_fragment=target)
        lance_core.dataset(uri).delete(where)
    assert (refresh(uri, embed).stale, embed.taken(), blob_reads()) == (0, 0, 0)
    check(uri)


@pytest.mark.parametrize("updater", ["ours", "theirs"])
def test_rows_that_are_written_again_are_read_and_not_computed(
    tmp_path: Path, updater: str, blob_reads: Callable[[], int]
) -> None:
    """An update moves rows too, but it may say anything of them: their content tells."""
    uri, embed = str(tmp_path / "t.lance"), Embed()
    write(uri, "2.2", range(10))
    declare(uri)
    refresh(uri, embed)
    embed.taken(), blob_reads()
    opened = lance_core.dataset(uri) if updater == "ours" else lance.dataset(uri)
    opened.update({"id": "id + 100"}, where="id IN (2, 3)")
    report = refresh(uri, embed)
    assert done(report) == report.stale <= 2
    assert blob_reads() <= 2 * 2
    check(uri)


@pytest.mark.parametrize("version", VERSIONS)
def test_other_blobs_are_computed(tmp_path: Path, version: str) -> None:
    uri, embed = str(tmp_path / "t.lance"), Embed()
    write(uri, version, range(10), max_rows_per_file=4)
    declare(uri)
    refresh(uri, embed)
    embed.taken()
    changed = {2: b"other bytes", 3: b"", 4: None, 5: b"a null before", 11: b"new"}
    found = lance_core.dataset(uri).merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    found.execute(blob_rows(version, changed))
    lance_core.dataset(uri).optimize.compact_files(target_rows_per_fragment=100)
    report = refresh(uri, embed)
    assert report.stale == done(report) <= 5
    check(uri, {**{key: content(key) for key in range(10)}, **changed})


def test_what_a_restore_brings_back_is_right_and_costs_no_call(tmp_path: Path) -> None:
    uri, embed = str(tmp_path / "t.lance"), Embed()
    write(uri, "2.2", range(8), max_rows_per_file=4)
    declare(uri)
    refresh(uri, embed)
    before = lance_core.dataset(uri).version
    lance_core.dataset(uri).delete("id = 3")
    lance_core.dataset(uri).optimize.compact_files(target_rows_per_fragment=100)
    refresh(uri, embed)
    embed.taken()
    lance_core.dataset(uri).checkout_version(before).restore()
    assert (refresh(uri, embed).stale, embed.taken()) == (0, 0)
    check(uri, {key: content(key) for key in range(8)})


def test_deleted_rows_that_were_never_computed_come_back_stale(tmp_path: Path) -> None:
    uri, embed = str(tmp_path / "t.lance"), Embed()
    write(uri, "2.2", range(8))
    declare(uri)
    before = lance_core.dataset(uri).version
    lance_core.dataset(uri).delete("id IN (1, 2)")
    refresh(uri, embed)
    fragment = lance_core.dataset(uri).snapshot.manifest.fragments[0]
    assert fragment.deletion_file is not None
    lance_core.dataset(uri).checkout_version(before).restore()
    refresh(uri, embed)
    check(uri, {key: content(key) for key in range(8)})


def test_without_the_log_blobs_are_read_and_nothing_is_computed(tmp_path: Path, blob_reads: Callable[[], int]) -> None:
    import datetime as dt

    uri, embed = str(tmp_path / "t.lance"), Embed()
    write(uri, "2.2", range(8), max_rows_per_file=4)
    declare(uri)
    refresh(uri, embed)
    embed.taken(), blob_reads()
    lance_core.dataset(uri).optimize.compact_files(target_rows_per_fragment=100)
    lance_core.dataset(uri).update_config({"a": "b"})
    lance_core.dataset(uri).cleanup_old_versions(dt.timedelta(0))
    assert (refresh(uri, embed).stale, embed.taken(), blob_reads()) == (0, 0, with_bytes(range(8)))
    check(uri)


def test_what_was_computed_by_half_is_not_read_twice(tmp_path: Path, blob_reads: Callable[[], int]) -> None:
    """A budget, rows that failed, and a compaction behind them: only what is given to the function is read."""
    uri = str(tmp_path / "t.lance")
    write(uri, "2.2", range(10), max_rows_per_file=10)
    declare(uri, batch_size=3)

    class Refuses(Embed):
        def __call__(self, batch: pa.RecordBatch) -> list[str | None]:
            if any(data == content(2) for data in batch.column("b").to_pylist()):
                raise ValueError("no picture")
            return super().__call__(batch)

    refuses = Refuses()
    report = refresh(uri, refuses, max_rows=6)
    assert (report.columns["made"].failed_now, report.columns["made"].left) == (1, 7)
    blob_reads()
    lance_core.dataset(uri).delete("id = 0")
    write(uri, "2.2", range(10, 12))
    lance_core.dataset(uri).optimize.compact_files(target_rows_per_fragment=100)
    report = refresh(uri, refuses, retry_failed=False)
    assert (report.columns["made"].new, report.columns["made"].left) == (9, 1)
    assert blob_reads() == with_bytes(range(3, 12))
    embed = Embed()
    assert (refresh(uri, embed).columns["made"].failed, embed.taken(), blob_reads()) == (1, 1, 1)
    check(uri)


def test_calls_are_bounded_in_bytes_and_a_large_blob_is_a_call_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri, embed = str(tmp_path / "t.lance"), Embed()
    write(uri, "2.2", range(15))
    declare(uri)
    monkeypatch.setenv("LANCE_BATCH_BYTES", "100000")
    refresh(uri, embed)
    assert embed.largest == 300_000
    assert embed.calls >= 6
    check(uri)


def test_rows_that_where_leaves_out_have_blobs_that_nobody_reads(tmp_path: Path, blob_reads: Callable[[], int]) -> None:
    uri, embed = str(tmp_path / "t.lance"), Embed()
    write(uri, "2.2", range(10))
    declare(uri, where="id < 4")
    report = refresh(uri, embed)
    assert (embed.taken(), report.columns["made"].not_wanted, blob_reads()) == (4, 6, with_bytes(range(4)))
    lance_core.dataset(uri).update({"id": "id - 7"}, where="id = 8")
    refresh(uri, embed)
    assert (embed.taken(), lance_core.dataset(uri).count_rows("made IS NULL")) == (1, 5)


def test_objects_outside_count_by_what_the_store_says_of_them(tmp_path: Path, blob_reads: Callable[[], int]) -> None:
    uri, embed = str(tmp_path / "t.lance"), Embed()
    media = tmp_path / "media"
    media.mkdir()
    for name in "abc":
        (media / name).write_bytes(name.encode() * 20)
    uris = {key: f"file://{media}/{name}" for key, name in enumerate("abc")}
    options = {"storage_options": {"allow_external_blob_outside_bases": "true"}}
    lance_core.write_dataset(blob_rows("2.2", uris), uri, data_storage_version="2.2", allow_external_blob_outside_bases=True)
    declare(uri)
    with pytest.raises(InputError, match="outside the table's registered base paths"):
        refresh(uri, embed)
    refresh(uri, embed, **options)
    assert lance_core.dataset(uri).to_table(columns=["made"]).column(0).to_pylist() == [
        told(name.encode() * 20) for name in "abc"
    ]
    embed.taken(), blob_reads()
    lance_core.dataset(uri).delete("id = 0")
    (media / "b").write_bytes(b"B" * 21)
    assert (refresh(uri, embed, **options).stale, blob_reads()) == (0, 0)
    report = refresh(uri, embed, **options, deep=True)
    assert (report.columns["made"].changed, embed.taken()) == (1, 1)
    (media / "c").unlink()
    with pytest.raises(NotFoundError):
        refresh(uri, embed, **options, deep=True)


@pytest.mark.parametrize(
    "options",
    [{"sql": "octet_length(b)", "function": None, "inputs": None, "type": None}, {"where": "b IS NOT NULL"}],
    ids=["sql", "where"],
)
def test_only_functions_read_blobs(tmp_path: Path, options: dict[str, Any]) -> None:
    uri = str(tmp_path / "t.lance")
    write(uri, "2.1", range(3))
    if options.get("sql"):
        options = {**options, "on_error": "fail"}
    with pytest.raises(InputError, match=r"'b' holds blobs, which (SQL|where) cannot read"):
        declare(uri, **options)


def test_a_mixed_group_is_proven_where_its_rows_were_checked(tmp_path: Path, blob_reads: Callable[[], int]) -> None:
    """Others carry evidence along with other blobs; a compaction with checked rows proves those alone."""
    uri, embed = str(tmp_path / "t.lance"), Embed()
    write(uri, "2.1", range(6), max_rows_per_file=3)
    declare(uri)
    refresh(uri, embed)
    embed.taken(), blob_reads()
    carried = lance.dataset(uri).to_table(filter="id = 4", blob_handling="all_binary")
    place = carried.schema.get_field_index("b")
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    liar = carried.set_column(place, field, pa.array([b"other"], pa.large_binary()))
    lance.dataset(uri).delete("id = 4")
    lance.write_dataset(liar, uri, mode="append")
    lance.dataset(uri).optimize.compact_files(target_rows_per_fragment=100)
    report = refresh(uri, embed)
    assert (report.columns["made"].changed, embed.taken()) == (1, 1)
    assert blob_reads() <= 2
    check(uri)


def test_what_cannot_be_read_of_the_log_proves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri, embed = str(tmp_path / "t.lance"), Embed()
    write(uri, "2.2", range(6), max_rows_per_file=3)
    declare(uri)
    refresh(uri, embed)
    embed.taken()
    lance_core.dataset(uri).optimize.compact_files(target_rows_per_fragment=100)

    def lost(*given: Any) -> Any:
        raise NotFoundError("gone")

    monkeypatch.setattr(moves, "transaction_of", lost)
    assert (refresh(uri, embed).stale, embed.taken()) == (0, 0)
    check(uri)
