"""One source, one schema: what a text file's columns are, and which values are refused, is the same in both executions.

A sweep of values by formats, through the worker's own reader and through Spark; the table is read by the official library.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from lance_core.errors import InputError, LanceError
from lance_core.jobs.run import run_job
from lance_core.jobs.runtime.local_runner import LocalRunner
from lance_core.jobs.specs.spec import AppendSpec, CommitSpec, SourceSpec
from lance_core.spark.runner import SparkRunner

VALUES: dict[str, list[Any]] = {
    "whole": [1, 2, None],
    "large": [2**40, -1, None],
    "fraction": [0.5, -2.25, None],
    "truth": [True, False, None],
    "text": ["Köln", "a,b", None],
    "zeros": ["007", "12", None],
    "day": ["2013-01-01", "2013-12-31", None],
    "moment": ["2013-01-01 10:00:00", "2013-01-01 10:00:01", None],
    "iso": ["2013-01-01T10:00:00", "2013-01-01T10:00:01", None],
    "instant": ["2013-01-01T10:00:00Z", "2013-07-01T10:00:00Z", None],
    "mixed": ["1", "x", None],
    "nothing": [None, None, None],
}
TYPED: dict[str, Any] = {
    "day": pa.date32(), "moment": pa.timestamp("us"), "iso": pa.timestamp("us"), "instant": pa.timestamp("us", "UTC"),
}  # fmt: skip


def written(folder: Path, name: str, values: list[Any]) -> SourceSpec:
    """The values in a file of a format, with a row number."""
    path = folder / f"rows.{name}"
    rows = list(enumerate(values))
    if name == "csv":
        quoted = ["" if value is None else f'"{value}"' if "," in str(value) else str(value) for value in values]
        path.write_text("n,v\n" + "".join(f"{number},{text}\n" for number, text in enumerate(quoted)), encoding="utf-8")
        return SourceSpec(format="csv", paths=(str(path),), options={"header": "true", "inferSchema": "true"})
    if name == "json":
        path.write_text("".join(json.dumps({"n": number, "v": value}) + "\n" for number, value in rows), encoding="utf-8")
    else:
        table = pa.table({"n": pa.array(range(len(values)), pa.int64()), "v": values})
        {"parquet": pq.write_table, "orc": orc.write_table}[name](table, str(path))
    return SourceSpec(format=name, paths=(str(path),))


@dataclass(frozen=True)
class Landed:
    """What a source became: its schema and rows, or the refusal."""

    schema: Any = None
    rows: Any = None
    refusal: str = ""


def append(uri: str, source: SourceSpec, runner: Any) -> Landed:
    """The table after an append, by the official library."""
    try:
        run_job(AppendSpec(uri=uri, source=source, identity=uri.rpartition("/")[2]), runner=runner)
        run_job(CommitSpec(uri=uri))
    except LanceError as error:
        return Landed(refusal=str(error))
    dataset = lance.dataset(uri)
    return Landed(dataset.schema, dataset.to_table().sort_by("n").to_pylist())


@pytest.fixture
def runners(spark: Any) -> Iterator[dict[str, Any]]:
    yield {"local": LocalRunner(), "spark": SparkRunner(lambda: spark)}


CASES = [(name, kind) for name in ("csv", "json", "parquet", "orc") for kind in VALUES]


def possible(name: str, kind: str) -> bool:
    """Whether a format can hold the values: ORC has no column of nulls alone."""
    return not (kind == "nothing" and name in ("orc", "parquet"))


@pytest.mark.parametrize("name", ["csv", "json", "parquet", "orc"])
def test_both_executions_make_the_same_table(name: str, tmp_path: Path, runners: dict[str, Any]) -> None:
    differ = []
    for kind in VALUES:
        if not possible(name, kind):
            continue
        folder = tmp_path / kind
        folder.mkdir()
        source = written(folder, name, VALUES[kind])
        made = {which: append(f"{folder}/{which}.lance", source, runner) for which, runner in runners.items()}
        local, spark = made["local"], made["spark"]
        same = _units(local.schema) == _units(spark.schema) and local.rows == spark.rows
        if not same or local.refusal or not local.rows:
            differ.append((kind, str(local.schema), str(spark.schema), local.rows, spark.rows, local.refusal, spark.refusal))
    assert differ == [], "\n".join(map(str, differ))


def _units(schema: Any) -> Any:
    """The schema without the unit of timestamps: Spark has microseconds only."""
    if schema is None:
        return None
    kinds = [pa.timestamp("us", field.type.tz) if pa.types.is_timestamp(field.type) else field.type for field in schema]
    return list(zip(schema.names, kinds, strict=True))


TARGETS = {
    "zeros": pa.string(), "whole": pa.float64(), "fraction": pa.float32(), "day": pa.string(), "large": pa.int64(),
    "mixed": pa.string(), "nothing": pa.int32(), "moment": pa.timestamp("ms"), "truth": pa.bool_(),
}  # fmt: skip


@pytest.mark.parametrize("name", ["csv", "json"])
def test_where_a_table_is_its_types_are_the_schema(name: str, tmp_path: Path, runners: dict[str, Any]) -> None:
    found = []
    for kind, target in TARGETS.items():
        folder = tmp_path / kind
        folder.mkdir()
        source = written(folder, name, VALUES[kind])
        made = {}
        for which, runner in runners.items():
            uri = f"{folder}/{which}.lance"
            lance.write_dataset(pa.table({"n": pa.array([-1], pa.int64()), "v": pa.array([None], target)}), uri)
            made[which] = append(uri, source, runner)
        if made["local"].refusal or made["local"] != made["spark"] or made["local"].schema.field("v").type != target:
            found.append((kind, made))
    assert found == [], "\n".join(map(str, found))


BAD = {
    "a word among numbers": (pa.int64(), b"n,v\n0,1\n1,abc\n", ("line 3", "'v'", "abc")),
    "a fraction among whole numbers": (pa.int64(), b"n,v\n0,1.5\n", ("line 2", "'v'", "1.5")),
    "a date that is none": (pa.date32(), b"n,v\n0,2013-02-30\n", ("line 2", "'v'", "2013-02-30")),
    "a number that is too large": (pa.int8(), b"n,v\n0,300\n", ("line 2", "'v'", "300")),
    "a row without a value": (pa.int64(), b"n,v\n0,1\n1\n", ("line 3", "expected 2 columns")),
    "bytes of another encoding": (pa.string(), "n,v\n0,Köln\n".encode("latin-1"), ("line 2", "'v'", "encoding")),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("has_table", [True, False])
def test_a_value_that_does_not_fit_is_an_error_with_row_and_column(
    name: str, has_table: bool, tmp_path: Path, runners: dict[str, Any]
) -> None:
    kind, content, words = BAD[name]
    (tmp_path / "rows.csv").write_bytes(content)
    for which, runner in runners.items():
        uri = f"{tmp_path}/{which}.lance"
        if has_table:
            lance.write_dataset(pa.table({"n": pa.array([-1], pa.int64()), "v": pa.array([None], kind)}), uri)
        options = {"header": "true", "inferSchema": "true"}
        schema = None if has_table or "encoding" in name else f"n BIGINT, v {_ddl(kind)}"
        source = SourceSpec(format="csv", paths=(f"{tmp_path}/rows.csv",), options=options, schema=schema)
        made = append(uri, source, runner)
        assert [word for word in words if word not in made.refusal] == [], (which, made)
        assert not has_table or lance.dataset(uri).version == 1


def _ddl(kind: Any) -> str:
    return {pa.int64(): "BIGINT", pa.date32(): "DATE", pa.int8(): "TINYINT", pa.string(): "STRING"}[kind]


def test_an_encoding_that_is_named_is_read(tmp_path: Path, runners: dict[str, Any]) -> None:
    (tmp_path / "rows.csv").write_bytes("n,v\n0,Köln\n".encode("latin-1"))
    for which, runner in runners.items():
        options = {"header": "true", "inferSchema": "true", "encoding": "ISO-8859-1"}
        made = append(
            f"{tmp_path}/{which}.lance", SourceSpec(format="csv", paths=(f"{tmp_path}/rows.csv",), options=options), runner
        )
        assert made.rows == [{"n": 0, "v": "Köln"}], made


def test_nulls_for_what_does_not_fit_are_to_be_had_in_spark(tmp_path: Path, runners: dict[str, Any]) -> None:
    (tmp_path / "rows.csv").write_text("n,v\n0,1\n1,abc\n")
    options = {"header": "true", "mode": "PERMISSIVE"}
    source = SourceSpec(format="csv", paths=(f"{tmp_path}/rows.csv",), options=options, schema="n BIGINT, v BIGINT")
    assert append(f"{tmp_path}/spark.lance", source, runners["spark"]).rows == [{"n": 0, "v": 1}, {"n": 1, "v": None}]
    with pytest.raises(InputError, match="mode"):
        run_job(AppendSpec(uri=f"{tmp_path}/local.lance", source=source), runner=runners["local"])
