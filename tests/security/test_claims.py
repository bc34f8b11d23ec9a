"""What a manifest and the files beside it claim is checked before memory or time is spent on it."""

from __future__ import annotations

import base64
import io
import json
import shutil
import struct
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.commit.deletion_files import decode_deletions, encode_deletions
from lance_core.errors import CorruptFileError, InputError, LanceError
from lance_core.format.schema import Schema
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.edits import DeleteSpec
from lance_core.jobs.specs.spec import CommitSpec
from lance_core.rowids.ipc_size import claimed_size
from lance_core.table.draft import ManifestDraft, TableOptions
from lance_core.table.operations import Project
from lance_core.wire.manifest_file import FOOTER, section_bytes
from lance_core.wire.pb import rowids_pb2, table_pb2, transaction_pb2


@pytest.fixture
def uri(tmp_path: Path) -> str:
    place = str(tmp_path / "t.lance")
    lance_core.write_dataset(pa.table({"id": range(10)}), place, enable_stable_row_ids=True)
    lance_core.dataset(place).delete("id = 3")
    return place


def rewrite(uri: str, change: Callable[[Any], object]) -> None:
    """Change the newest manifest as somebody with a protobuf compiler would."""
    path = min((Path(uri) / "_versions").glob("*.manifest"))
    data = path.read_bytes()
    position = FOOTER.unpack(data[-FOOTER.size :])[0]
    message = table_pb2.Manifest.FromString(section_bytes(data, position, what="manifest"))
    change(message)
    body = message.SerializeToString()
    path.write_bytes(data[:position] + struct.pack("<I", len(body)) + body + FOOTER.pack(position, 0, 2, b"LANC"))


def _no_files(message: Any) -> None:
    message.fragments[0].ClearField("files")
    message.fragments[0].ClearField("inline_row_ids")
    message.reader_feature_flags = message.writer_feature_flags = 0


def _many_rows(rows: int) -> Callable[[Any], None]:
    def change(message: Any) -> None:
        message.fragments[0].physical_rows = rows

    return change


def _row_ids(end: int) -> Callable[[Any], None]:
    def change(message: Any) -> None:
        sequence = rowids_pb2.RowIdSequence()
        sequence.segments.add().range.end = end
        message.fragments[0].inline_row_ids = sequence.SerializeToString()
        message.fragments[0].physical_rows = end

    return change


def _nested(depth: int) -> Callable[[Any], None]:
    def change(message: Any) -> None:
        for number in range(depth):
            parent = -1 if number == 0 else 99 + number
            message.fields.add(id=100 + number, parent_id=parent, name="n", logical_type="struct")

    return change


CLAIMS: dict[str, Callable[[Any], object]] = {
    "rows without a file": _no_files,
    "2^40 rows": _many_rows(1 << 40),
    "2^31 rows": _many_rows(1 << 31),
    "more rows than the file": _many_rows(11),
    "more deletions than rows": lambda message: setattr(message.fragments[0].deletion_file, "num_deleted_rows", 11),
    "row ids for 2^31 rows": _row_ids(1 << 31),
    "500 nested fields": _nested(500),
    "100000 nested fields": _nested(100_000),
    "its own parent": lambda message: message.fields[0].MergeFrom(type(message.fields[0])(id=5, parent_id=5)),
    "a column twice": lambda message: message.fields.add(id=1, parent_id=-1, name="id", logical_type="int64"),
    "a parent of minus seven": lambda message: message.fields.add(id=1, parent_id=-7, name="x", logical_type="int64"),
    "a field below a number": lambda message: message.fields.add(id=1, parent_id=0, name="x", logical_type="int64"),
    "a negative field id": lambda message: setattr(message.fields[0], "id", -1),
    "another version": lambda message: setattr(message, "version", 7),
    "the year 36812": lambda message: setattr(message.timestamp, "seconds", 1 << 40),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_is_refused_before_anything_is_spent_on_it(uri: str, name: str) -> None:
    rewrite(uri, CLAIMS[name])
    began = time.monotonic()
    with pytest.raises(LanceError):
        lance_core.dataset(uri).to_table(with_row_id=True)
    assert time.monotonic() - began < 20


@pytest.mark.parametrize(
    "name", ["a column twice", "a parent of minus seven", "a field below a number", "a negative field id"]
)
def test_a_schema_that_contradicts_itself_opens_no_table(uri: str, name: str) -> None:
    rewrite(uri, CLAIMS[name])
    for verb in (lance_core.dataset, lambda uri: run_job(DeleteSpec(uri=uri, predicate="id = 5"))):
        with pytest.raises(CorruptFileError, match=r"named 'id'|-7|of type int64|negative id"):
            verb(uri)


def test_names_that_differ_by_case_and_children_of_one_name_are_no_contradiction(tmp_path: Path) -> None:
    place = str(tmp_path / "t.lance")
    point = pa.array([{"x": n, "y": -n} for n in range(3)])
    lance_core.write_dataset(pa.table({"id": range(3), "ID": range(3), "p": point}), place)
    rewrite(place, lambda message: setattr(message.fields[4], "name", "x"))
    assert lance_core.dataset(place).to_table(columns=["id", "ID"], filter="ID = 1").to_pylist() == [{"id": 1, "ID": 1}]
    assert lance_core.dataset(place).count_rows() == 3


def test_a_commit_of_a_schema_that_contradicts_itself_changes_nothing(uri: str) -> None:
    snapshot = lance_core.dataset(uri)
    schema = Schema((*snapshot.lance_schema.fields, replace(snapshot.lance_schema.fields[0], id=7)))
    draft = ManifestDraft(None, options=TableOptions())
    with pytest.raises(InputError, match="two columns are named 'id'"):
        Project(schema=schema, preserves_nullability=True).apply(draft)


def _schema_changes() -> list[tuple[int, str, Any]]:
    """Every field of a table of nested columns, with each of its values like that of another field, or of none."""
    return [
        (place, what, value)
        for place in range(7)
        for what, values in (("name", ("id", "s", "p", "x", "y", "item", "_rowid", "")), ("id", (0, 2, 4, -1, 99)),
                             ("parent_id", (-1, -7, 0, 1, 2, 3, 6, 99)),
                             ("logical_type", ("int64", "string", "struct", "list", "map", "")))
        for value in values
    ]  # fmt: skip


def _judge_schema_change(good: Path, work: Path, change: tuple[int, str, Any]) -> None:
    place, what, value = change
    shutil.copytree(good, work)
    rewrite(str(work), lambda message: setattr(message.fields[place], what, value))
    for verb in (
        lambda ds: ds.to_table(), lambda ds: ds.to_table(filter="id = 5"), lambda ds: ds.to_table(filter="p.x = 5"),
        lambda ds: ds.add_columns({"more": "id + 1"}), lambda ds: ds.update({"s": "'x'"}, where="id = 2"),
        lambda ds: ds.alter_columns({"path": "s", "name": "t"}), lambda ds: ds.create_scalar_index("id", "BTREE"),
        lambda ds: ds.delete("id = 3"), lambda ds: ds.drop_columns(["s"]), lambda ds: ds.optimize.compact_files(),
    ):  # fmt: skip
        with suppress(LanceError):
            verb(lance_core.dataset(str(work)))


@pytest.fixture(scope="module")
def nested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("nested") / "t.lance"
    point = pa.array([{"x": n, "y": -n} for n in range(10)])
    rows = pa.table({"id": range(10), "s": ["a"] * 10, "p": point, "l": [[n] for n in range(10)]})
    lance_core.write_dataset(rows, str(place))
    return place


def test_a_share_of_wrong_schemas_end_in_an_answer_or_a_typed_error(nested: Path, tmp_path: Path) -> None:
    for number, change in enumerate(_schema_changes()[::19]):
        _judge_schema_change(nested, tmp_path / str(number), change)


@pytest.mark.slow
@pytest.mark.parametrize("place", range(7))
def test_wrong_schemas_end_in_an_answer_or_a_typed_error(nested: Path, tmp_path: Path, place: int) -> None:
    for number, change in enumerate(item for item in _schema_changes() if item[0] == place):
        _judge_schema_change(nested, tmp_path / str(number), change)


def test_counting_rows_judges_claims_too(uri: str) -> None:
    for rows in (1 << 33, 1 << 40, 5):
        rewrite(uri, _many_rows(rows))
        if rows < 1 << 32:
            assert lance_core.dataset(uri).count_rows() == rows - 1
        else:
            with pytest.raises(CorruptFileError):
                lance_core.dataset(uri).count_rows()


@pytest.mark.parametrize("verb", ["compact", "optimize", "describe", "validate"])
def test_an_index_on_a_field_that_is_not_there_is_a_typed_error(uri: str, verb: str) -> None:
    lance_core.dataset(uri).create_scalar_index("id", "BTREE")
    lance_core.write_dataset(pa.table({"id": range(10)}), uri, mode="append")
    rewrite(uri, lambda message: message.ClearField("fields"))
    ds = lance_core.dataset(uri)
    verbs = {"compact": ds.optimize.compact_files, "optimize": ds.optimize.optimize_indices,
             "describe": ds.describe_indices, "validate": ds.validate}  # fmt: skip
    with suppress(LanceError):
        verbs[verb]()


@pytest.mark.parametrize("number", [2**31, 2**63])
def test_a_staged_transaction_on_a_fragment_that_is_not_there_is_a_typed_error(uri: str, number: int) -> None:
    staged: Any = run_job(DeleteSpec(uri=uri, predicate="id = 5", identity=str(uuid.UUID(int=5))))
    (path,) = (Path(uri) / "_transactions").glob(f"*{uuid.UUID(int=5)}*.txn")
    message = transaction_pb2.Transaction.FromString(path.read_bytes())
    message.delete.deleted_fragment_ids.append(number)
    path.write_bytes(message.SerializeToString())
    (record,) = Path(uri).glob(f"_lance_core/decisions/{uuid.UUID(int=5)}.000001.json")
    inline = {"transaction": base64.b64encode(message.SerializeToString()).decode()}
    record.write_text(json.dumps({**json.loads(record.read_text()), **inline}))
    other: Any = run_job(DeleteSpec(uri=uri, predicate="id = 6", identity=str(uuid.UUID(int=6))))
    before = lance_core.dataset(uri).version
    with pytest.raises(CorruptFileError, match=f"fragment {number}, which version {before} does not have"):
        run_job(CommitSpec.of([staged, other], uri=uri))
    assert lance_core.dataset(uri).version == before


@pytest.mark.parametrize("where", ["file", "record", "both"])
def test_a_staged_transaction_of_another_uuid_is_not_published(uri: str, where: str) -> None:
    specs = [DeleteSpec(uri=uri, predicate=f"id = {number}", identity=str(uuid.UUID(int=number))) for number in (5, 6)]
    staged: Any = [run_job(spec) for spec in specs]
    (path,) = (Path(uri) / "_transactions").glob(f"*{specs[0].identity}*.txn")
    (record,) = Path(uri).glob(f"_lance_core/decisions/{specs[0].identity}.000001.json")
    message = transaction_pb2.Transaction.FromString(path.read_bytes())
    message.uuid = "/etc/passwd"
    if where != "record":
        path.write_bytes(message.SerializeToString())
    forged = base64.b64encode(message.SerializeToString()).decode()
    plain = json.loads(record.read_text())
    if where == "file":
        del plain["transaction"]
    else:
        plain["transaction"] = forged
    record.write_text(json.dumps(plain))
    before = lance_core.dataset(uri).version
    # A commit of one may read the file, and not the record's copy of it: what it finds there is genuine then.
    alone = [CommitSpec.of(staged[:1], uri=uri), CommitSpec(uri=uri, identities=(specs[0].identity,))]
    for spec in (CommitSpec.of(staged, uri=uri), *(alone if where != "record" else ())):
        with pytest.raises(CorruptFileError, match="the uuid is '/etc/passwd'"):
            run_job(spec)
    assert lance_core.dataset(uri).version == before
    again: Any = [run_job(spec) for spec in specs] if where != "record" else staged[1:]
    result: Any = run_job(CommitSpec.of(again, uri=uri))
    # What was staged anew took the place of finished work, and a version without rows says so.
    assert (result.num_versions, result.version) == (1, before + (1 if where == "record" else 2))


@pytest.mark.parametrize("kind", ["array", "bitmap"])
def test_a_small_deletion_file_does_not_become_large(kind: str) -> None:
    huge = encode_deletions(np.arange(20_000_000, dtype=np.int64), file_type="bitmap")
    if kind == "array":
        sink = io.BytesIO()
        schema = pa.schema([pa.field("row_id", pa.uint32(), nullable=False)])
        with pa.ipc.new_file(sink, schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
            writer.write_batch(pa.record_batch([pa.array(np.zeros(50_000_000, np.uint32))], schema=schema))
        huge = sink.getvalue()
        assert len(huge) < 40_000 < 200_000_000 <= claimed_size(huge, what="x")
    before = pa.default_memory_pool().max_memory()
    with pytest.raises(CorruptFileError):
        decode_deletions(huge, file_type=kind, where="x", expected=10)
    assert pa.default_memory_pool().max_memory() <= max(before, 210_000_000)


def test_every_deletion_file_of_ours_is_within_its_claim() -> None:
    for count in (0, 1, 7, 63, 64, 65, 1000, 4999):
        offsets = np.arange(count, dtype=np.int64)
        data = encode_deletions(offsets, file_type="array")
        assert decode_deletions(data, file_type="array", where="x", expected=count).tolist() == offsets.tolist()
    data = encode_deletions(np.arange(100, dtype=np.int64), file_type="array")
    for position in range(0, len(data), 3):
        damaged = bytearray(data)
        damaged[position] ^= 0xFF
        with suppress(LanceError):
            decode_deletions(bytes(damaged), file_type="array", where="x", expected=100)


@pytest.mark.parametrize(
    "text",
    [b"[]", b"3", b"{", b'{"a":' * 50_000, b'{"version": NaN}', b'{"version": -1}', b'{"version": 1e999}',
     b'{"version": 1, "branch": 3}', b'{"version": 1, "metadata": "x"}', b'{"version": 1, "createdAt": 5}',
     b'{"version": 1, "createdAt": "yesterday"}', b'{"version": ' + b"9" * 5000 + b"}"],
)  # fmt: skip
def test_a_tag_that_is_none_is_a_typed_error(uri: str, text: bytes) -> None:
    lance_core.dataset(uri).tags.create("good", 1)
    (path,) = (Path(uri) / "_refs" / "tags").glob("*.json")
    path.write_bytes(text)
    with pytest.raises(LanceError):
        lance_core.dataset(uri).tags.list()
