"""JSON indices over a path: built by us or by the official library, asked by both, carried through time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.indices import IndexConfig as OfficialConfig

from lance_core.dataset.handle.open import dataset
from lance_core.errors import CorruptFileError, InputError, UnsupportedFeatureError
from lance_core.index.base import ID, VALUE
from lance_core.index.over_json import extracted
from lance_core.indices import IndexConfig
from lance_core.io.cache import shared_cache
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.indices import BuildIndexSpec
from lance_core.jobs.specs.spec import CommitSpec
from lance_core.scratch import BatchFile

# path, target, what the official library asks its index too, what only ours answers (it does not convert)
CASES: list[tuple[str, str, list[str], list[str]]] = [
    ("a", "btree", ["json_get_int(j,'a') = 3", "json_get_int(j,'a') > 4", "json_get_int(j,'a') is null",
                    "json_get_int(j,'a') in (1, 2)", "json_get_int(j,'a') = 3 and x > 100"], []),
    ("f", "btree", ["json_get_float(j,'f') > 50", "json_get_float(j,'f') <= 3.25"], []),
    ("$.b.c", "btree", [], ["json_get_string(json_get(j,'b'),'c') = 's two'"]),
    ("flag", "bitmap", [], ["json_get_bool(j,'flag')", "json_get_bool(j,'flag') = false"]),
    ("a", "bitmap", ["json_get_int(j,'a') = 3", "json_get_int(j,'a') between 1 and 2"], []),
    ("x", "zonemap", ["json_get_int(j,'x') = 120", "json_get_int(j,'x') > 190"], []),
    ("s", "ngram", [], ["contains(json_get_string(j,'s'),'ray')"]),
]  # fmt: skip
OTHERS = ["json_get_float(j,'a') = 3.0", "json_get_string(j,'a') = '3'", "json_extract(j,'$.a') = '3'",
          "json_get_int(j,'$.a') = 3", "json_exists(j,'$.b.c')", "json_get_int(j,'nothing') is null"]  # fmt: skip


def documents(count: int, first: int = 0) -> pa.Table:
    words = ("one", "two", "three")
    values: list[Any] = [
        {"a": n % 7, "b": {"c": f"s {words[n % 3]}"}, "f": n / 2 + 0.25, "flag": n % 2 == 0, "s": f"gamma ray {n}", "x": n}
        for n in range(first, first + count)
    ]
    values[3] = {}
    texts = pa.array([*(json.dumps(value) for value in values[:-1]), None], pa.json_())
    return pa.table({"x": range(first, first + count), "j": texts})


def make(path: Path, *, stable: bool = False) -> str:
    lance.write_dataset(documents(200), str(path), max_rows_per_file=60, enable_stable_row_ids=stable)
    lance.dataset(str(path)).delete("x % 10 = 1")
    return str(path)


def check(uri: str, where: str) -> None:
    expected = lance.dataset(uri).scanner(columns=["x"], filter=where, use_scalar_index=False).to_table()["x"].to_pylist()
    assert dataset(uri).to_table(["x"], filter=where, use_scalar_index=False)["x"].to_pylist() == expected, where
    assert dataset(uri).to_table(["x"], filter=where, strict_index=True)["x"].to_pylist() == expected, where


@pytest.mark.parametrize("builder", ["ours", "theirs"])
@pytest.mark.parametrize(("path", "target", "shared", "alone"), CASES, ids=[f"{c[1]}-{c[0]}" for c in CASES])
def test_same_rows(tmp_path: Path, path: str, target: str, shared: list[str], alone: list[str], builder: str) -> None:
    uri = make(tmp_path / "t.lance")
    config = {"path": path, "target_index_type": target}
    if builder == "ours":
        dataset(uri).create_scalar_index("j", IndexConfig("json", config), name="by_path")
    else:
        lance.dataset(uri).create_scalar_index("j", OfficialConfig(index_type="json", parameters=config), name="by_path")
    lance.write_dataset(documents(40, first=500), uri, mode="append")
    for where in (*shared, *alone):
        check(uri, where)
        assert "by_path (Json)" in dataset(uri).scanner(filter=where).explain_plan(), where
    for where in shared:
        theirs = lance.dataset(uri)
        assert "@by_path" in theirs.scanner(filter=where).explain_plan(), where
        check(uri, where)
        found = dataset(uri).to_table(["x"], filter=where)["x"].to_pylist()
        assert sorted(theirs.to_table(columns=["x"], filter=where)["x"].to_pylist()) == found
    for where in OTHERS:
        check(uri, where)


@pytest.mark.parametrize("target", ["btree", "bitmap", "zonemap", "ngram"])
def test_entry_is_the_official_one(tmp_path: Path, target: str) -> None:
    uri = make(tmp_path / "t.lance")
    config = {"path": "x" if target == "zonemap" else "s", "target_index_type": target}
    dataset(uri).create_scalar_index("j", IndexConfig("json", config), name="ours")
    lance.dataset(uri).create_scalar_index("j", OfficialConfig(index_type="json", parameters=config), name="theirs")
    ours, theirs = sorted(dataset(uri).snapshot.manifest.indices, key=lambda index: index.name)
    assert ours.details == theirs.details and ours.index_version == theirs.index_version
    assert {file.path for file in ours.files} == {file.path for file in theirs.files}
    told = {item.name: item.index_type for item in lance.dataset(uri).describe_indices()}
    assert told == {item.name: item.index_type for item in dataset(uri).describe_indices()}


def test_through_time(tmp_path: Path) -> None:
    uri = make(tmp_path / "t.lance")
    ours = dataset(uri)
    ours.create_scalar_index("j", "JSON", name="by_a", path="a", target_index_type="BTREE")
    ours.create_scalar_index("j", "JSON", name="by_x", path="x", target_index_type="ZONEMAP",
                             target_index_parameters={"rows_per_zone": 16})  # fmt: skip
    questions = [
        "json_get_int(j,'a') = 3 and json_get_int(j,'x') > 100",
        "json_get_int(j,'x') < 30",
        "json_get_int(j,'a') > 5",
    ]
    for number in range(4):
        lance.write_dataset(documents(50, first=1000 * (number + 1)), uri, mode="append")
        ours = dataset(uri)
        ours.delete(f"x % 13 = {number}")
        if number == 1:
            ours.optimize.compact_files(target_rows_per_fragment=1000)
        if number == 2:
            ours.optimize.optimize_indices()
            assert ours.index_statistics("by_a")["num_unindexed_rows"] == 0
            assert ours.index_statistics("by_x")["segments"][0]["rows_per_zone"] == 16
        if number == 3:
            ours.optimize.compact_files(target_rows_per_fragment=1000, defer_index_remap=True)
        for where in questions:
            check(uri, where)


def test_as_a_job(tmp_path: Path) -> None:
    uri = make(tmp_path / "t.lance")
    parameters = {"path": "a", "target_index_type": "btree"}
    spec = BuildIndexSpec(uri=uri, column="j", index_type="JSON", name="j_a", parameters=parameters, rows_per_segment=60)
    staged: Any = run_job(spec)
    run_job(CommitSpec.of([staged], uri=uri))
    assert len(dataset(uri).describe_indices()[0].segments) > 1
    check(uri, "json_get_int(j,'a') = 3")


def test_stable_row_ids(tmp_path: Path) -> None:
    uri = make(tmp_path / "t.lance", stable=True)
    dataset(uri).create_scalar_index("j", IndexConfig("json", {"path": "a", "target_index_type": "bitmap"}), name="ours")
    lance.dataset(uri).create_scalar_index(
        "j", OfficialConfig(index_type="json", parameters={"path": "x", "target_index_type": "zonemap"}), name="theirs"
    )
    for where in ("json_get_int(j,'a') = 3", "json_get_int(j,'x') = 120", "json_get_int(j,'x') > 50"):
        check(uri, where)
    for target in ("btree", "zonemap"):
        with pytest.raises(UnsupportedFeatureError, match="stable row ids"):
            dataset(uri).create_scalar_index("j", IndexConfig("json", {"path": "a", "target_index_type": target}))


def test_refusals_and_damage(tmp_path: Path) -> None:
    uri = make(tmp_path / "t.lance")
    table = dataset(uri)
    for parameters in (
        {},
        {"path": "b"},
        {"path": "$.b["},
        {"path": "a", "target_index_type": "inverted"},
        {"path": "a", "target_index_type": "bloomfilter"},
        {"path": "a", "target_index_type": "ngram"},
        {"path": "a", "target_index_parameters": "{"},
        {"path": "a", "target_index_parameters": {"colour": 1}},
    ):
        with pytest.raises(InputError):
            table.create_scalar_index("j", IndexConfig("json", parameters))
    with pytest.raises(InputError):
        table.create_scalar_index("x", IndexConfig("json", {"path": "a"}))
    assert not table.has_index
    table.create_scalar_index("j", IndexConfig("json", {"path": "a"}))
    for file in (tmp_path / "t.lance" / "_indices").glob("*/*"):
        file.unlink()
    shared_cache().clear()
    where = "json_get_int(j,'a') = 3"
    expected = dataset(uri).to_table(["x"], filter=where, use_scalar_index=False)
    with pytest.warns(RuntimeWarning, match="not used"):
        assert dataset(uri).to_table(["x"], filter=where).equals(expected)
    with pytest.raises(CorruptFileError, match="cannot be searched"):
        dataset(uri).to_table(["x"], filter=where, strict_index=True)


def batches_of(*groups: list[str | None]) -> list[pa.RecordBatch]:
    first, made = 0, []
    for texts in groups:
        ids = pa.array(range(first, first + len(texts)), pa.uint64())
        made.append(pa.RecordBatch.from_arrays([pa.array(texts, pa.json_()), ids], names=[VALUE, ID]))
        first += len(texts)
    return made


@pytest.mark.parametrize("limit", [1 << 30, 0])
def test_the_type_of_values_is_that_of_all_batches(tmp_path: Path, limit: int) -> None:
    groups = batches_of(['{"a": 3}', None], ["{}"], [], ['{"a": 0.5}', '{"a": 4}'], ['{"a": 9}'])
    found = extracted(groups, pa.json_(), "a", place=tmp_path, limit=limit)
    assert bool([*tmp_path.iterdir()]) is (limit == 0)
    table = pa.Table.from_batches(found.batches())
    assert found.type == pa.float64()
    assert table.column(VALUE).to_pylist() == [3.0, None, None, 0.5, 4.0, 9.0]
    assert table.column(ID).to_pylist() == [*range(6)]
    whole = extracted(batches_of(['{"a": 1}', "{}"], ['{"a": 2}']), pa.json_(), "a", place=tmp_path, limit=limit)
    assert [batch.column(VALUE).to_pylist() for batch in whole.batches()] == [[1, None], [2]]
    assert extracted(batches_of(["{}"]), pa.json_(), "a", place=tmp_path, limit=limit).type == pa.string()
    with pytest.raises(InputError, match="have the types int, str;"):
        extracted(batches_of(['{"a": 1}'], ['{"a": "x"}']), pa.json_(), "a", place=tmp_path, limit=limit)


def test_an_index_whose_values_were_spilled_answers_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = make(tmp_path / "t")
    monkeypatch.setattr("lance_core.index.over_json._SHARE", 1 << 40)
    written: list[Path] = []
    write = BatchFile.write

    def writes(file: Path, *rest: Any) -> BatchFile:
        written.append(file)
        return write(file, *rest)

    monkeypatch.setattr(BatchFile, "write", writes)
    dataset(uri).create_scalar_index("j", IndexConfig("json", {"path": "a", "target_index_type": "btree"}))
    assert written
    assert not any(file.exists() for file in written)
    check(uri, "json_get_int(j,'a') > 4")
