"""Lance tables as sources of jobs that run in this process, alone and in SQL over several of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_core
from lance_core.dataset.query.table_view import TableView, as_sql, named_columns
from lance_core.errors import CorruptFileError, InputError, NotFoundError, SourceMissingError
from lance_core.io.resolve import resolve_store
from lance_core.io.wrapped import CountingStore
from lance_core.jobs import api
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.spec import AppendSpec, SourceSpec
from lance_core.jobs.specs.sql import lance_source, read_sources, sql_spec
from tests.jobs.edit_support import commit, identity, ids, make_table, rows

duckdb = pytest.importorskip("duckdb")


@pytest.fixture
def lake(tmp_path: Path) -> dict[str, str]:
    """Orders in four fragments, two versions; customers; an empty place for a result."""
    orders = make_table(str(tmp_path / "orders.lance"), *(rows(start, start + 10, start // 10) for start in (0, 10, 20, 30)))
    people = pa.table({"day": pa.array([0, 1, 2], pa.int32()), "name": ["a", "b", "c"]})
    return {
        "orders": orders,
        "people": make_table(str(tmp_path / "people.lance"), people),
        "daily": str(tmp_path / "daily.lance"),
    }


def read(lake: dict[str, str], sql: str, **versions: Any) -> list[tuple[Any, ...]]:
    tables = read_sources({name: lance_source(lake[name], **versions.get(name, {})) for name in ("orders", "people")})
    found = api.query(sql, tables, options_of=lambda _: {}).read_all()
    return [tuple(row.values()) for row in found.to_pylist()]


def change(lake: dict[str, str], sql: str, key: str = "1") -> dict[str, Any]:
    sources = {name: lance_source(uri) for name, uri in lake.items()}
    spec = sql_spec(sql, sources, identity=identity(lake["daily"], key))
    return commit(spec.uri, run_job(spec))


def test_queries_over_several_tables(lake: dict[str, str]) -> None:
    joined = "SELECT name, count(*), sum(x) FROM orders JOIN people USING (day) WHERE id >= 5 GROUP BY name ORDER BY name"
    assert read(lake, joined) == [("a", 5, 17.5), ("b", 10, 72.5), ("c", 10, 122.5)]
    window = "SELECT id FROM orders QUALIFY row_number() OVER (PARTITION BY day ORDER BY id DESC) = 1 ORDER BY id"
    assert read(lake, window) == [(9,), (19,), (29,), (39,)]
    twice = "SELECT count(*) FROM orders a JOIN orders b ON a.id = b.id + 1"
    assert read(lake, twice) == [(39,)]


def test_columns_that_a_query_means_without_their_names(lake: dict[str, str]) -> None:
    assert read(lake, "FROM people") == [(0, "a"), (1, "b"), (2, "c")]
    assert read(lake, "SELECT p FROM people p WHERE p.day = 1") == [({"day": 1, "name": "b"},)]
    assert read(lake, "SELECT name, sum(x) FROM orders NATURAL JOIN people WHERE id < 12 GROUP BY name ORDER BY name") == [
        ("a", 22.5), ("b", 10.5 / 2 + 5.25),
    ]  # fmt: skip
    assert read(lake, "SELECT COLUMNS('^n') FROM people") == [("a",), ("b",), ("c",)]
    assert read(lake, "WITH q AS (SELECT 1) FROM people LIMIT 1") == [(0, "a")]


def test_a_column_that_the_engine_does_not_know_may_be_beside_those_that_a_query_names(tmp_path: Path) -> None:
    half = pa.table({"id": [1, 2], "h": pa.array([1.0, 2.0], pa.float32()).cast(pa.float16())})
    uri = make_table(str(tmp_path / "t.lance"), half)
    tables = read_sources({"t": lance_source(uri)})
    assert api.query("SELECT max(id) AS id FROM t", tables, options_of=lambda _: {}).read_all().to_pylist() == [{"id": 2}]
    with pytest.raises(InputError, match="Unsupported"):
        api.query("SELECT * FROM t", tables, options_of=lambda _: {})


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("SELECT sum(price) FROM o", "price"),
        ("SELECT count(*) FROM o WHERE id > 1", "id"),
        ("WITH q AS (SELECT id FROM o) SELECT max(id) FROM q", "id"),
        ("SELECT sum(price) FROM o NATURAL JOIN b", "id price day"),
        ("SELECT sum(price) FROM (FROM o) -- a comment", "id price day"),
        ("SELECT id FROM o UNION ALL FROM b", "id price day"),
        ("SELECT id * 2 FROM o", "id price day"),
        ("TABLE o", "id price day"),
        ("SELECT 'select' AS a, id FROM o", "id"),
    ],
)
def test_a_query_narrows_a_table_only_where_it_names_its_columns(sql: str, columns: str) -> None:
    assert named_columns(sql, ["id", "price", "day"]) == columns.split()


def test_a_table_is_read_at_one_version(lake: dict[str, str]) -> None:
    lance.dataset(lake["orders"]).tags.create("early", 2)
    count = "SELECT count(*) FROM orders"
    assert read(lake, count, orders={"version": 1}) == [(10,)]
    assert read(lake, count, orders={"version": "early"}) == [(20,)]
    tables = read_sources({"orders": lance_source(lake["orders"])})
    pinned = api.query("SELECT id FROM orders", tables, options_of=lambda _: {})
    lance_core.dataset(lake["orders"]).delete("id < 30")
    assert pinned.read_all().num_rows == 40
    assert read(lake, count) == [(10,)]


def test_only_the_columns_and_rows_that_are_needed_are_read(tmp_path: Path) -> None:
    wide = pa.table({"id": range(20_000), "small": range(20_000), "big": [os.urandom(100) for _ in range(20_000)]})
    ds = lance_core.write_dataset(wide, str(tmp_path / "t.lance"), max_rows_per_file=5_000)
    ds.create_scalar_index("id", "BTREE")
    store = CountingStore(resolve_store(ds.uri))
    snapshot = lance_core.dataset(ds.uri).snapshot
    connection = duckdb.connect()

    def bytes_of(sql: str) -> int:
        from dataclasses import replace

        connection.register("t", TableView(replace(snapshot, store=store)))
        store.reset()
        connection.execute(sql).fetchall()
        return store.counts.bytes_read

    everything = bytes_of("SELECT max(big), sum(id), sum(small) FROM t")
    assert everything > 2_000_000
    assert bytes_of("SELECT sum(small) FROM t") < everything / 5
    assert bytes_of("SELECT big FROM t WHERE id = 7") < everything / 5


def test_conditions_become_our_sql_only_where_both_mean_the_same() -> None:
    schema = pa.schema([("id", pa.int64()), ("name", pa.string()), ("x", pa.float64())])
    field = pc.field
    assert as_sql((field("id") > 3) & (field("name") == "o'k"), schema) == "`id` > 3 AND `name` = 'o''k'"
    for other in (
        field("id") != 3,
        (field("id") == 3) | (field("id") == 4),
        (field("id") == 3) & (field("id") != 4),
        ~(field("id") == 3),
        field("name") == "(id == 3)",
        field("id").isin([3]),
        field("name").is_null(),
        field("absent") == 3,
    ):
        told = as_sql(other, schema)
        assert told is None or told == "`name` = '(id == 3)'"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM read_parquet('https://127.0.0.1:1/x')",
        "COPY orders TO '/tmp/out.csv'",
        "ATTACH 'other.db'",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "SELECT * FROM other_frame",
    ],
)
def test_a_query_sees_its_tables_only(lake: dict[str, str], sql: str) -> None:
    other_frame = pa.table({"a": [1]})
    assert other_frame.num_rows == 1
    with pytest.raises(InputError):
        read(lake, sql)


def test_statements_change_a_table_exactly_once(lake: dict[str, str]) -> None:
    fill = "INSERT INTO daily SELECT day, count(*) AS n, sum(x) AS x FROM orders JOIN people USING (day) GROUP BY day"
    assert change(lake, fill)["rows_added"] == 3
    assert change(lake, fill)["version"] == 1
    change(lake, "UPDATE daily d SET n = d.n + 1, x = 0.5 WHERE d.day = 1", "2")
    change(lake, "DELETE FROM daily WHERE day IN (SELECT day FROM people WHERE name = 'a')", "3")
    assert lance.dataset(lake["daily"]).to_table().sort_by("day").to_pylist() == [
        {"day": 1, "n": 11, "x": 0.5},
        {"day": 2, "n": 10, "x": 122.5},
    ]
    merge = (
        "MERGE INTO daily t USING (SELECT day, 99::BIGINT AS n FROM people) s ON t.day = s.day "
        "WHEN MATCHED AND target.n = 11 THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    ).replace("target.n", "t.n")
    change(lake, merge, "4")
    changed = lance.dataset(lake["daily"]).to_table(columns=["day", "n"]).sort_by("day")
    assert changed["n"].to_pylist() == [99, 99, 10]
    change(
        lake, "INSERT INTO daily REPLACE WHERE day = 2 SELECT day, 1::BIGINT AS n, 0.0 AS x FROM people WHERE day = 2", "5"
    )
    change(lake, "INSERT INTO daily (day) SELECT 7", "6")
    assert sorted(lance.dataset(lake["daily"]).to_table()["day"].to_pylist()) == [0, 1, 2, 7]
    change(lake, "CREATE OR REPLACE TABLE daily AS SELECT name FROM people", "7")
    assert lance.dataset(lake["daily"]).schema.names == ["name"]


def test_a_lance_table_is_a_source_of_any_write(lake: dict[str, str]) -> None:
    append = AppendSpec(
        uri=lake["daily"], identity=identity(lake["daily"]), source=SourceSpec(format="lance", paths=(lake["orders"],))
    )
    commit(lake["daily"], run_job(append))
    assert ids(lake["daily"]) == [*range(40)]


def test_refusals_name_what_is_wrong(lake: dict[str, str]) -> None:
    with pytest.raises(InputError, match="is only supported with Spark"):
        run_job(
            AppendSpec(
                uri=lake["daily"], source=SourceSpec(format="lance", paths=(lake["orders"],), options={"filter": "x"})
            )
        )
    with pytest.raises(InputError, match="not one of the Lance tables orders, people, daily"):
        change(lake, "DELETE FROM nowhere")
    with pytest.raises((NotFoundError, SourceMissingError)):
        read({**lake, "people": lake["people"] + "x"}, "SELECT * FROM people")
    with pytest.raises(InputError, match="the query failed"):
        read(lake, "SELECT absent FROM orders")


def test_a_damaged_table_is_named_as_such(lake: dict[str, str]) -> None:
    for path in Path(lake["orders"], "data").iterdir():
        path.write_bytes(b"\0" * path.stat().st_size)
    with pytest.raises(CorruptFileError):
        read(lake, "SELECT sum(x) FROM orders")


def test_a_sort_that_outgrows_memory_spills_to_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lance_core.dataset.query.sandbox._memory_limit", lambda: 48 << 20)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    sql = "SELECT i, hash(i)::VARCHAR || repeat('x', 60) AS s FROM range(600000) AS t(i) ORDER BY s"
    found = api.query(sql, {}, options_of=lambda _: {})
    first = found.read_next_batch()
    assert first.num_rows
    assert any(tmp_path.rglob("duckdb_temp*"))
    rest = sum(batch.num_rows for batch in found)
    assert first.num_rows + rest == 600_000
    assert not [*tmp_path.glob("lance-scratch-*")]
