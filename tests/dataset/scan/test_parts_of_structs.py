"""Parts of structs: a projection reads those fields alone, in every file version, whatever the filter reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from lance_core.dataset.scan.plan import plan_scan
from lance_core.dataset.scan.projection import plan_parts, plan_projection
from lance_core.dataset.scan.sinks import scan
from lance_core.dataset.snapshot.snapshot import Snapshot, open_snapshot
from lance_core.expr import parse_filter

_INNER = pa.struct([("a", pa.string()), ("b", pa.int64())])
_SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("p", pa.struct([("x", pa.int64()), ("y", _INNER)])),
        pa.field("k", pa.struct([("a", pa.int32()), ("b", pa.int64())]), metadata={"lance-encoding:packed": "true"}),
        ("l", pa.list_(pa.struct([("u", pa.int64()), ("v", pa.int64())]))),
    ]
)
_FULL = {
    "id": [1, 2, 3],
    "p": [{"x": n, "y": {"a": f"a{n}", "b": n * 10}} for n in (1, 2, 3)],
    "k": [{"a": n, "b": -n} for n in (1, 2, 3)],
    "l": [[{"u": 1, "v": 2}], [], [{"u": 3, "v": 4}, {"u": 5, "v": 6}]],
}
_WITH_NULLS = {
    **_FULL,
    "p": [None, {"x": None, "y": None}, {"x": 3, "y": {"a": None, "b": 30}}],
    "l": [None, [None], [{"u": None, "v": 4}]],
}
_WANTED = [
    pa.schema([("p", pa.struct([("x", pa.int64())]))]),
    pa.schema([("p", pa.struct([("y", pa.struct([("b", pa.int64())]))])), ("id", pa.int64())]),
    pa.schema([("k", pa.struct([("b", pa.int64())]))]),
]


def _read(snapshot: Snapshot, wanted: pa.Schema, where: str | None = None) -> pa.Table:
    schema = snapshot.manifest.schema
    test = parse_filter(where, snapshot.arrow_schema) if where else None
    parts = plan_parts(schema, wanted.names, wanted)
    plan = plan_scan(schema, snapshot.manifest.fragments, parts, filter=test)
    return pa.Table.from_batches(list(scan(snapshot, plan, batch_size=2)), parts.arrow_schema)


@pytest.fixture(params=["legacy", "2.0", "2.1", "2.2", "2.3"])
def snapshot(request: Any, tmp_path: Path) -> Snapshot:
    rows = _FULL if request.param in ("legacy", "2.0") else _WITH_NULLS
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table(rows, schema=_SCHEMA), uri, data_storage_version=request.param)
    return open_snapshot(uri)


@pytest.mark.parametrize("wanted", _WANTED, ids=lambda wanted: wanted.names[0])
@pytest.mark.parametrize("where", [None, "p.x = 3", "p.y.a IS NULL"])
def test_a_part_is_what_the_whole_has_of_it(snapshot: Snapshot, wanted: pa.Schema, where: str | None) -> None:
    whole = _read(snapshot, pa.schema([snapshot.arrow_schema.field(name) for name in wanted.names]), where)
    found = _read(snapshot, wanted, where)
    assert [field.type for field in found.schema] == [field.type for field in wanted]
    assert found.to_pylist() == whole.cast(wanted).to_pylist()


def test_only_the_fields_of_the_part_are_read(snapshot: Snapshot) -> None:
    schema = snapshot.manifest.schema
    found = plan_parts(schema, ["p"], _WANTED[1])
    assert found.field_ids == {schema.find("p.y.b").id}
    assert plan_parts(schema, ["id", "l"], _SCHEMA).field_ids == plan_projection(schema, ["id", "l"]).field_ids


@pytest.mark.parametrize("kind", [pa.struct([]), pa.struct([("nope", pa.int64())]), pa.int64()])
def test_what_is_no_part_is_read_whole(snapshot: Snapshot, kind: Any) -> None:
    schema = snapshot.manifest.schema
    found = plan_parts(schema, ["p"], pa.schema([("p", kind)]))
    assert found == plan_projection(schema, ["p"])


def test_the_struct_of_an_extension_type_is_read_whole(tmp_path: Path) -> None:
    kind = pa.struct([("x", pa.int64()), ("y", pa.int64())])
    named = pa.field("e", kind, metadata={"ARROW:extension:name": "of.others", "ARROW:extension:metadata": ""})
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"e": [{"x": 1, "y": 2}]}, schema=pa.schema([named])), uri)
    schema = open_snapshot(uri).manifest.schema
    found = plan_parts(schema, ["e"], pa.schema([("e", pa.struct([("y", pa.int64())]))]))
    assert found == plan_projection(schema, ["e"])
