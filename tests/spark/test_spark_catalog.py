"""Tables by name in Spark's SQL: names, time travel, rows that statements change, metadata tables, CALL, streams.

What SQL left behind is read by the official library.
"""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyspark
import pytest

import lance_core
from lance_core.errors import InputError
from lance_core.spark.bridge import catalog_class
from lance_core.spark.bridge.catalog import open_catalog
from tests.spark.conftest import needs_bridge, needs_classic, new_session

pytestmark = [pytest.mark.spark, needs_bridge]
HAS_CALL = int(pyspark.__version__.split(".")[0]) >= 4
FILLS = tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 2)
CREATE = (
    "CREATE TABLE lake.sales.orders (id BIGINT NOT NULL, name STRING, price DOUBLE, v ARRAY<FLOAT>) "
    "TBLPROPERTIES ('v.arrow.fixed-size-list.size'='2', 'enable_stable_row_ids'='true', 'team'='shop')"
)
ROWS = "INSERT INTO lake.sales.orders VALUES (1, 'a', 1.5, array(1, 2)), (2, 'b', 2.5, array(3, 4)), (3, 'c', NULL, NULL)"


MERGES = {
    "that only inserts": "WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, 'mine')",
    "that updates too": (
        "WHEN MATCHED THEN UPDATE SET name = 'mine' WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, 'mine')"
    ),
}


@pytest.fixture
def sql(spark: Any, tmp_path: Path) -> Any:
    """Runs a statement against a new catalog `lake`; its rows as tuples."""
    session = new_session(spark)
    session.conf.set("spark.sql.catalog.lake", catalog_class())
    session.conf.set("spark.sql.catalog.lake.uri", str(tmp_path))

    def run(text: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in session.sql(text).collect()]

    session.conf.set("spark.sql.ansi.enabled", "true")  # as from Spark 4.0 on
    run.session = session  # type: ignore[attr-defined]
    return run


def few(number: int, name: str | None = None) -> str:
    """An order of which the rest is not known; Spark wants every column of a row that SQL inserts until 4.2."""
    text = "NULL" if name is None else f"'{name}'"
    return f"(name, id) VALUES ({text}, {number})" if FILLS else f"VALUES ({number}, {text}, NULL, NULL)"


@pytest.fixture
def orders(sql: Any) -> Any:
    """`lake.sales.orders` with three rows."""
    sql("CREATE NAMESPACE lake.sales")
    sql(CREATE)
    sql(ROWS)
    return sql


def _official(tmp_path: Path, name: str = "orders") -> Any:
    catalog, _ = open_catalog({"uri": str(tmp_path)})
    from lance_core.catalog.locate import find_table

    return lance.dataset(find_table(catalog, ["sales", name]).uri)


def test_names(orders: Any, tmp_path: Path) -> None:
    sql = orders
    assert sql("SHOW NAMESPACES IN lake") == [("sales",)]
    assert sql("SHOW TABLES IN lake.sales") == [("sales", "orders", False)]
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        sql("SELECT * FROM lake.sales.none")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        sql(CREATE)
    with pytest.raises(Exception, match="SCHEMA_ALREADY_EXISTS"):
        sql("CREATE NAMESPACE lake.sales")
    with pytest.raises(Exception, match="SCHEMA_NOT_EMPTY"):
        sql("DROP NAMESPACE lake.sales")
    with pytest.raises(Exception, match="no partitions"):
        sql("CREATE TABLE lake.sales.parted (id BIGINT, day DATE) PARTITIONED BY (day)")
    theirs = _official(tmp_path)
    assert theirs.schema.field("v").type == pa.list_(pa.float32(), 2)
    assert theirs.has_stable_row_ids
    assert theirs.to_table().to_pydict() == {
        "id": [1, 2, 3], "name": ["a", "b", "c"], "price": [1.5, 2.5, None], "v": [[1.0, 2.0], [3.0, 4.0], None],
    }  # fmt: skip
    assert ("team", "shop") in sql("SHOW TBLPROPERTIES lake.sales.orders")
    sql("DROP TABLE lake.sales.orders")
    sql("DROP NAMESPACE lake.sales")
    assert sql("SHOW NAMESPACES IN lake") == []


def test_statements_change_rows(orders: Any, tmp_path: Path) -> None:
    sql = orders
    ids = dict(sql("SELECT id, _rowid FROM lake.sales.orders"))
    sql(f"INSERT INTO lake.sales.orders {few(4, 'd')}")
    sql("UPDATE lake.sales.orders SET price = coalesce(price, 0) + 10 WHERE id >= 2")
    sql("DELETE FROM lake.sales.orders WHERE id = 1")  # decided by Lance
    sql("DELETE FROM lake.sales.orders WHERE sqrt(price) > 3.5")  # decided by Spark: 12.5
    assert sql("SELECT id, name, price FROM lake.sales.orders ORDER BY id") == [(3, "c", 10.0), (4, "d", 10.0)]
    assert _official(tmp_path).to_table(columns=["id", "price"]).to_pydict() == {"id": [3, 4], "price": [10.0, 10.0]}
    assert dict(sql("SELECT id, _rowid FROM lake.sales.orders"))[3] == ids[3], "a row that changes keeps its id"
    assert [row[0] for row in sql("SELECT operation FROM lake.sales.orders.versions ORDER BY version")][-3:] == [
        "Update", "Delete", "Delete",
    ]  # fmt: skip
    before = sql("SELECT max(version) FROM lake.sales.orders.versions")
    sql("UPDATE lake.sales.orders SET price = 1 WHERE id = 99")
    assert sql("SELECT max(version) FROM lake.sales.orders.versions") == before, "no row changes, no version"
    sql("TRUNCATE TABLE lake.sales.orders")
    assert sql("SELECT count(*) FROM lake.sales.orders") == [(0,)]


def test_a_merge(orders: Any, tmp_path: Path) -> None:
    sql = orders
    sql("CREATE TABLE lake.sales.new AS SELECT id * 2 AS id, concat('n', id) AS name FROM range(1, 4)")
    ids = dict(sql("SELECT id, _rowid FROM lake.sales.orders"))
    sql(
        "MERGE INTO lake.sales.orders t USING lake.sales.new s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET name = s.name WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name) "
        "WHEN NOT MATCHED BY SOURCE AND t.id = 3 THEN DELETE"
    )
    found = _official(tmp_path).to_table(columns=["id", "name", "v"], with_row_id=True).sort_by("id").to_pydict()
    assert found["id"] == [1, 2, 4, 6]
    assert found["name"] == ["a", "n1", "n2", "n3"]
    assert found["v"] == [[1.0, 2.0], [3.0, 4.0], None, None]
    assert found["_rowid"][:2] == [ids[1], ids[2]]
    assert len(set(found["_rowid"])) == 4
    sql("INSERT INTO lake.sales.new VALUES (2, 'again')")
    with pytest.raises(Exception, match="MERGE_CARDINALITY_VIOLATION"):
        sql(
            "MERGE INTO lake.sales.orders t USING lake.sales.new s ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = s.name"
        )
    assert _official(tmp_path).count_rows() == 4
    assert _leftovers(_official(tmp_path).uri) == []


def test_rows_that_change_keep_what_was_computed_for_them(orders: Any, tmp_path: Path) -> None:
    uri = _official(tmp_path).uri
    lance_core.declare_column(uri, "double", sql="price * 2")
    lance_core.declare_column(uri, "label", sql="concat(name, '!')")
    lance_core.refresh_columns(uri)
    orders("UPDATE lake.sales.orders SET name = upper(name) WHERE sqrt(id) > 1.2")
    orders(
        "MERGE INTO lake.sales.orders t USING (SELECT 1 AS id UNION ALL SELECT 9) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = array(7, 8) WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, 'new')"
    )
    found = _official(tmp_path).to_table(columns=["id", "name", "double", "label"]).sort_by("id").to_pydict()
    assert found["double"] == [3.0, 5.0, None, None]
    assert found["label"] == ["a!", "b!", "c!", None], "of what the rows were before"
    told = lance_core.refresh_columns(uri).columns
    assert (told["double"].changed, told["double"].new) == (0, 1)
    assert (told["label"].changed, told["label"].new) == (2, 1)
    assert orders("SELECT label FROM lake.sales.orders ORDER BY id") == [("a!",), ("B!",), ("C!",), ("new!",)]


def _leftovers(uri: str) -> list[str]:
    """Data files that no version names."""
    table = lance_core.dataset(uri)
    named = {file.path for version in table.versions() for item in lance_core.dataset(uri, version["version"])
             .snapshot.manifest.fragments for file in item.files}  # fmt: skip
    return [path.name for path in Path(uri, "data").iterdir() if path.name not in named]


@pytest.mark.parametrize("merge", MERGES)
def test_a_merge_that_others_made_wrong_is_refused(orders: Any, tmp_path: Path, merge: str) -> None:
    """It inserts a key that another writer inserts meanwhile: it would be there twice."""
    sql, uri = orders, _official(tmp_path).uri
    marker, go = tmp_path / "began", tmp_path / "go"
    sql.session.udf.register("slow", _wait_for(str(marker), str(go)), "bigint")
    errors: list[Exception] = []

    def run() -> None:
        source = "(SELECT slow(id) AS id FROM range(7, 8))"
        try:
            sql(f"MERGE INTO lake.sales.orders t USING {source} s ON t.id = s.id {MERGES[merge]}")
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    while not marker.exists():
        assert thread.is_alive()
        time.sleep(0.05)
    theirs = lance.dataset(uri)
    row = pa.table({"id": [7], "name": ["theirs"], "price": [1.0], "v": pa.array([None], pa.list_(pa.float32(), 2))})
    theirs.merge_insert("id").when_not_matched_insert_all().execute(row.cast(theirs.schema))
    go.touch()
    thread.join()
    assert len(errors) == 1
    assert "Run the statement again" in str(errors[0])
    assert lance.dataset(uri).to_table(filter="id = 7").column("name").to_pylist() == ["theirs"]
    assert _leftovers(uri) == []


def _wait_for(began: str, go: str) -> Any:
    def wait(number: int) -> int:
        Path(began).touch()
        while not Path(go).exists():
            time.sleep(0.05)
        return number

    return wait


def test_overwrite_and_replace(orders: Any, tmp_path: Path) -> None:
    sql = orders
    sql("INSERT INTO lake.sales.orders REPLACE WHERE id >= 2 SELECT 60L, 'sixty', 6.0D, NULL")
    assert sql("SELECT id, name FROM lake.sales.orders ORDER BY id") == [(1, "a"), (60, "sixty")]
    with pytest.raises(Exception, match=r"(?i)predicate|satisf"):
        sql("INSERT INTO lake.sales.orders REPLACE WHERE id >= 2 SELECT 1L, 'no', 6.0D, NULL")
    with pytest.raises(Exception, match=r"(?i)overwrite"):
        sql("INSERT INTO lake.sales.orders REPLACE WHERE price > 1.0 SELECT 1L, 'no', 6.0D, NULL")  # NaN differs
    sql("INSERT OVERWRITE lake.sales.orders SELECT 7L, 'seven', 7.0D, array(1, 1)")
    theirs = _official(tmp_path)
    assert theirs.to_table().to_pylist() == [{"id": 7, "name": "seven", "price": 7.0, "v": [1.0, 1.0]}]
    sql("REPLACE TABLE lake.sales.orders AS SELECT 1 AS x")
    assert sql("SELECT * FROM lake.sales.orders") == [(1,)]
    assert sql(f"SELECT id FROM lake.sales.orders VERSION AS OF {theirs.version}") == [(7,)], "the history stays"
    sql("CREATE OR REPLACE TABLE lake.sales.empty (y STRING)")
    assert sql("SELECT count(*) FROM lake.sales.empty") == [(0,)]
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        sql("CREATE TABLE lake.sales.half AS SELECT id, 1 / (id - 3) AS x FROM range(5)")
    assert ("sales", "half", False) not in sql("SHOW TABLES IN lake.sales") or not _exists(sql, "half"), (
        "whole or not at all"
    )


def _exists(sql: Any, name: str) -> bool:
    try:
        sql(f"SELECT * FROM lake.sales.{name}")
    except Exception:
        return False
    return True


def test_time_travel_and_metadata(orders: Any, tmp_path: Path) -> None:
    sql = orders
    theirs = _official(tmp_path)
    first = theirs.version
    theirs.tags.create("good", first)
    theirs.create_branch("trial")
    sql(f"INSERT INTO lake.sales.orders {few(4)}")
    assert sql("SELECT count(*) FROM lake.sales.orders") == [(4,)]
    for chosen in (f"VERSION AS OF {first}", "VERSION AS OF 'good'", "VERSION AS OF 'trial'"):
        assert sql(f"SELECT count(*) FROM lake.sales.orders {chosen}") == [(3,)]
    ((moment,),) = sql(f"SELECT unix_micros(committed_at) FROM lake.sales.orders.versions WHERE version = {first}")
    # Spark knows microseconds; the version was made within that one.
    chosen = f"TIMESTAMP AS OF timestamp_micros({moment + 1})"
    assert sql(f"SELECT count(*) FROM lake.sales.orders {chosen}") == [(3,)]
    with pytest.raises(Exception, match=r"(?i)version 99"):
        sql("SELECT * FROM lake.sales.orders VERSION AS OF 99")
    sql(f"INSERT INTO lake.sales.orders.branch_trial {few(5)}")
    sql(f"INSERT INTO lake.sales.orders.branch_trial {few(6)}")
    assert sql("SELECT count(*) FROM lake.sales.orders.branch_trial") == [(5,)]
    assert sql("SELECT count(*) FROM lake.sales.orders") == [(4,)]
    assert sql("SELECT name, version FROM lake.sales.orders.tags") == [("good", first)]
    assert sql("SELECT name, parent_version FROM lake.sales.orders.branches") == [("trial", first)]
    assert sum(row[0] for row in sql("SELECT num_rows FROM lake.sales.orders.fragments")) == 4
    assert len(sql("SELECT path FROM lake.sales.orders.files")) == len(sql("SELECT id FROM lake.sales.orders.fragments"))


def test_alterations(orders: Any, tmp_path: Path) -> None:
    sql = orders
    sql("ALTER TABLE lake.sales.orders ADD COLUMNS (note STRING, n INT)")
    sql("ALTER TABLE lake.sales.orders RENAME COLUMN note TO remark")
    sql("ALTER TABLE lake.sales.orders ALTER COLUMN n TYPE BIGINT")
    sql("ALTER TABLE lake.sales.orders DROP COLUMN name")
    sql("ALTER TABLE lake.sales.orders ALTER COLUMN id DROP NOT NULL")
    sql("ALTER TABLE lake.sales.orders SET TBLPROPERTIES ('a'='b')")
    sql("ALTER TABLE lake.sales.orders UNSET TBLPROPERTIES ('team')")
    theirs = _official(tmp_path)
    assert {field.name: str(field.type) for field in theirs.schema} == {
        "id": "int64", "price": "double", "v": "fixed_size_list<item: float>[2]", "remark": "string", "n": "int64",
    }  # fmt: skip
    assert theirs.schema.field("id").nullable
    assert theirs.to_table(columns=["remark", "n"]).to_pydict() == {"remark": [None] * 3, "n": [None] * 3}
    assert {name: value for name, value in sql("SHOW TBLPROPERTIES lake.sales.orders") if name in ("a", "team")} == {
        "a": "b"
    }
    with pytest.raises(Exception, match="NOT NULL"):
        sql("ALTER TABLE lake.sales.orders ADD COLUMN m INT NOT NULL")
    with pytest.raises(Exception, match="FIRST, AFTER"):
        sql("ALTER TABLE lake.sales.orders ADD COLUMN m INT FIRST")


@pytest.mark.skipif(not HAS_CALL, reason="Spark's SQL has CALL from 4.0 on")
def test_calls(orders: Any, tmp_path: Path) -> None:
    sql = orders
    sql(f"INSERT INTO lake.sales.orders {few(4)}")
    dict(sql("CALL lake.system.build_index(table => 'sales.orders', column => 'id', index_type => 'BTREE')"))
    assert [(row[0], row[1]) for row in sql("SELECT name, type FROM lake.sales.orders.indices")] == [("id_idx", "BTree")]
    report = dict(sql("CALL lake.system.compact(table => 'sales.orders')"))
    assert int(report["fragments_added"]) == 1
    assert len(_official(tmp_path).get_fragments()) == 1
    sql("CALL lake.system.tag(table => 'sales.orders', name => 'good')")
    assert _official(tmp_path).tags.list()["good"]["version"] == int(report["version"])
    sql("DELETE FROM lake.sales.orders WHERE id = 4")
    sql(f"CALL lake.system.restore(table => 'sales.orders', version => {report['version']})")
    assert sql("SELECT count(*) FROM lake.sales.orders") == [(4,)]
    with pytest.raises(Exception, match=r"no table 'sales.none'"):
        sql("CALL lake.system.compact(table => 'sales.none')")
    with pytest.raises(Exception, match=r"(?i)strategy"):
        sql("CALL lake.system.compact(table => 'sales.orders', strategy => 'sideways')")


def test_a_stream_adds_each_batch_once(orders: Any, tmp_path: Path) -> None:
    """The last batch runs again, as after a crash between the commit and the checkpoint's note of it."""
    sql = orders
    incoming, checkpoint = tmp_path / "incoming", tmp_path / "checkpoint"
    incoming.mkdir()
    session = sql.session

    def run() -> None:
        stream = session.readStream.schema("id BIGINT, name STRING, price DOUBLE, v ARRAY<FLOAT>").json(str(incoming))
        query = stream.writeStream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        query.toTable("lake.sales.orders").awaitTermination()

    (incoming / "1.json").write_text('{"id": 10, "name": "x", "v": [1, 1]}\n')
    run()
    (incoming / "2.json").write_text('{"id": 11, "name": "y"}\n{"id": 12, "name": "z"}\n')
    run()
    assert sql("SELECT count(*) FROM lake.sales.orders") == [(6,)]
    table = _official(tmp_path)
    newest = max(int(path.name) for path in (checkpoint / "commits").iterdir() if path.name.isdigit())
    for path in (checkpoint / "commits").iterdir():
        if str(newest) in path.name:
            path.unlink()
    lance_core.dataset(table.uri).cleanup_old_versions(retain_versions=1)
    lance.write_dataset(table.to_table().slice(0, 1), table.uri, mode="append")
    run()
    found: list[Any] = lance.dataset(table.uri).to_table().column("id").to_pylist()
    assert sorted(found) == [1, 1, 2, 3, 10, 11, 12]


@needs_classic
def test_the_example_of_the_page_runs(spark: Any, tmp_path: Path) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "spark.md").read_text(encoding="utf-8")
    (text,) = [block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "catalogs=" in block]
    exec(compile(text.replace("s3://lake", str(tmp_path)), "spark.md", "exec"), {"__name__": "example"})
    assert _official(tmp_path).schema.field("v").type == pa.list_(pa.float32(), 128)


def test_settings_of_a_catalog(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"unknown setting 'regoin'.*region"):
        open_catalog({"uri": str(tmp_path), "regoin": "x"})
    with pytest.raises(InputError, match="needs the setting uri"):
        open_catalog({})
