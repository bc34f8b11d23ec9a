"""`ORDER BY ... LIMIT n`, and `count`, `min` and `max`, beside Spark's own answers over the same rows as Parquet.

All of it runs with the bridge, where the scan takes part in both, and without.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import lance
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark.conftest import REMOTE, WITH_BRIDGE, needs_classic

pytestmark = pytest.mark.spark
with_bridge = pytest.mark.skipif(not WITH_BRIDGE, reason="only the bridge takes these into its scan")

ROWS, PER_FILE = 1_500, 500
NAN, OTHER_NAN = float("nan"), np.frombuffer(b"\x01\x00\x00\x00\x00\x00\xf8\xff", np.float64)[0]
FIRST, LAST = dt.datetime(1, 1, 3), dt.datetime(9999, 12, 28, 23, 59, 59, 999999)


def _either(*values: Any) -> Any:
    return lambda by: by.choice(values)


def _moment(by: random.Random) -> dt.datetime:
    return by.choice([FIRST, LAST, dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=by.randint(-(10**6), 10**6))])


KINDS: dict[str, tuple[pa.DataType, Any]] = {
    "boolean": (pa.bool_(), _either(True, False)),
    "tiny": (pa.int8(), lambda by: by.randint(-128, 127)),
    "small": (pa.int16(), lambda by: by.randint(-(2**15), 2**15 - 1)),
    "int": (pa.int32(), lambda by: by.randint(-(2**31), 2**31 - 1)),
    "long": (pa.int64(), lambda by: by.choice([-(2**63), 2**63 - 1, by.randint(-99, 99)])),
    "single": (pa.float32(), _either(NAN, -0.0, 0.0, float("inf"), float("-inf"), 1e-45, -1e-45, 1.5)),
    "real": (pa.float64(), _either(NAN, OTHER_NAN, -NAN, -0.0, 0.0, float("inf"), float("-inf"), 5e-324, *range(9))),
    "zeros": (pa.float64(), _either(0.0, -0.0)),
    "money": (pa.decimal128(9, 2), lambda by: Decimal(by.randint(-(10**9) + 1, 10**9 - 1)).scaleb(-2)),
    "huge": (pa.decimal128(38, 3), lambda by: Decimal(by.choice([-1, 1]) * by.randint(0, 10**38 - 1)).scaleb(-3)),
    "text": (pa.string(), _either("", "a", "B", "\x7f", "\x80", "ÿ", "\U0001f600", "\ue000", "ab", "a" * 40)),
    "bytes": (pa.binary(), _either(b"", b"\x00", b"\x7f", b"\x80", b"\xff", b"\x80\x00", b"\xff" * 20)),
    "day": (pa.date32(), lambda by: _moment(by).date()),
    "zoned": (pa.timestamp("us", "UTC"), _moment),
    "local": (pa.timestamp("us"), _moment),
    "absent": (pa.int64(), lambda by: None),
}
NARROWER: dict[str, tuple[pa.DataType, pa.DataType, Any]] = {
    "byte": (pa.uint8(), pa.int16(), lambda by: by.randint(0, 255)),
    "most": (pa.uint64(), pa.decimal128(20, 0), lambda by: by.choice([0, 2**63, 2**64 - 1, by.randint(0, 9)])),
    "half": (pa.float16(), pa.float32(), lambda by: np.float16(by.choice([NAN, -0.0, 0.0, 1.5, -2.25, float("inf")]))),
    "words": (pa.large_string(), pa.string(), _either("x", "y", "\U0001f600")),
    "nanos": (pa.timestamp("ns"), pa.timestamp("us"), lambda by: dt.datetime(2000, 1, 1, 0, 0, by.randint(0, 59))),
    "coded": (pa.dictionary(pa.int32(), pa.string()), pa.string(), _either("one", "two")),
}
"""Kinds of a table that Spark knows as another: the table's type, Spark's, values."""
SORTED = (*KINDS, *NARROWER)
ORDERS = [(way, nulls) for way in ("ASC", "DESC") for nulls in ("FIRST", "LAST")]


class Both(NamedTuple):
    """The same rows as a table and as Parquet."""

    lance: Any
    parquet: Any
    uri: str


@pytest.fixture(scope="module")
def session(spark: Any) -> Any:
    from lance_core.spark.bridge import is_enabled

    if not is_enabled(spark):
        pytest.importorskip("pyspark.sql.datasource", reason="no Python data sources before Spark 4.0")
        from lance_core.spark.source import register

        register(spark)
    return spark


@pytest.fixture(scope="module")
def both(session: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    by, folder = random.Random(7), tmp_path_factory.mktemp("top")
    stored: dict[str, Any] = {"id": pa.array(range(ROWS), pa.int64())}
    known = dict(stored)
    for name, (kind, make) in KINDS.items():
        stored[name] = known[name] = pa.array([None if by.random() < 0.03 else make(by) for _ in range(ROWS)], kind)
    for name, (kind, theirs, make) in NARROWER.items():
        values = [None if by.random() < 0.03 else make(by) for _ in range(ROWS)]
        stored[name] = pa.array(values, kind)
        known[name] = pa.array([value if value is None or name != "half" else float(value) for value in values], theirs)
    # What no row is sorted by, and is read of the first rows alone.
    known["list"] = stored["list"] = pa.array(
        [[row, None] if row % 3 else None for row in range(ROWS)], pa.list_(pa.int64())
    )
    known["struct"] = stored["struct"] = pa.array([{"k": row, "t": f"t{row}"} if row % 5 else None for row in range(ROWS)])
    stored["vector"] = pa.array([[row, -row] for row in range(ROWS)], pa.list_(pa.float32(), 2))
    known["vector"] = stored["vector"].cast(pa.list_(pa.float32()))
    uri, place = str(folder / "t.lance"), str(folder / "t.parquet")
    lance.write_dataset(pa.table(stored), uri, max_rows_per_file=PER_FILE, data_storage_version="2.2")
    lance.dataset(uri).delete("id % 7 = 3 OR id >= 1000 AND id < 1020")
    gone = [row % 7 == 3 or 1_000 <= row < 1_020 for row in range(ROWS)]
    pq.write_table(pa.table(known).filter(pa.array([not is_gone for is_gone in gone])), place)
    parquet = session.read.option("datetimeRebaseMode", "CORRECTED").parquet(place)
    # A task for each fragment, so that first rows of several tasks meet.
    frame = session.read.format("lance").option("rowsPerPartition", str(PER_FILE)).load(uri)
    frame.createOrReplaceTempView("top_lance")
    parquet.createOrReplaceTempView("top_parquet")
    yield Both(frame, parquet, uri)
    session.catalog.dropTempView("top_lance")
    session.catalog.dropTempView("top_parquet")


def _known(rows: Iterable[Any]) -> list[str]:
    """Rows as texts: NaN is as NaN, and the two zeros are one."""
    return [repr([0.0 if value == 0 and isinstance(value, float) else value for value in row]) for row in rows]


def _plan(frame: Any) -> str:
    if REMOTE:
        return str(frame._explain_string())
    return str(frame._jdf.queryExecution().executedPlan().toString())


def _sql(session: Any, query: str) -> tuple[Any, list[str], list[str]]:
    ours = session.sql(query.format("top_lance"))
    return ours, _known(ours.collect()), _known(session.sql(query.format("top_parquet")).collect())


def _some(items: Sequence[Any], share: int) -> Sequence[Any]:
    """All with the bridge; every so manieth without, whose rows Spark sorts alone."""
    return items if WITH_BRIDGE else items[::share]


@pytest.mark.parametrize("name", SORTED)
def test_the_first_rows_by_one_column(session: Any, both: Both, name: str) -> None:
    ranks = ", ".join(
        f"row_number() OVER (ORDER BY `{name}` {way} NULLS {nulls}, id) r{number}"
        for number, (way, nulls) in enumerate(ORDERS)
    )
    ranked = session.sql(f"SELECT id, {ranks} FROM top_parquet").collect()
    for number, (way, nulls) in _some([*enumerate(ORDERS)], 3):
        most = 10 if number % 2 else 1
        expected = [row["id"] for row in sorted(ranked, key=lambda row: row[f"r{number}"])[:most]]
        found = session.sql(f"SELECT id FROM top_lance ORDER BY `{name}` {way} NULLS {nulls}, id LIMIT {most}")
        assert [row["id"] for row in found.collect()] == expected, (way, nulls)
        if WITH_BRIDGE:
            assert f"first {most} by {name} {way} NULLS {nulls}, id ASC NULLS FIRST" in _plan(found)


@pytest.mark.parametrize("name", ["real", "text", "absent", "huge"])
def test_all_columns_of_the_first_rows(session: Any, both: Both, name: str) -> None:
    for way, most in _some([("ASC", 10), ("DESC", 30), ("ASC", ROWS + 1)], 2):
        _, found, expected = _sql(session, f"SELECT * FROM {{}} ORDER BY `{name}` {way}, id LIMIT {most}")
        assert found == expected


@pytest.mark.parametrize("seed", range(12))
def test_the_first_rows_by_several_columns(session: Any, both: Both, seed: int) -> None:
    by = random.Random(seed)
    if not WITH_BRIDGE and seed % 4:
        pytest.skip("a few are enough where Spark sorts alone")
    keys = [f"`{name}` {by.choice(['ASC', 'DESC'])} NULLS {by.choice(['FIRST', 'LAST'])}" for name in by.sample(SORTED, 3)]
    few = [f"`{name}` {by.choice(['ASC', 'DESC'])}" for name in by.sample(["boolean", "zeros", "absent", "coded"], 2)]
    order = ", ".join([*by.choice([keys, few, [*few, *keys]]), "id"])
    most = by.choice([1, 10, 20])
    # Equal in any order of two: without the number at the end the keys of the first rows are still the same.
    columns = ", ".join(f"`{name}`" for name in ("id", "struct", "boolean", "real"))
    _, found, expected = _sql(session, f"SELECT {columns} FROM {{}} ORDER BY {order} LIMIT {most}")
    assert found == expected
    names = ", ".join(part.split()[0] for part in order.split(", ")[:-1])
    without = order.removesuffix(", id")
    _, found, expected = _sql(session, f"SELECT {names} FROM {{}} ORDER BY {without} LIMIT {most} OFFSET 3")
    assert found == expected


def test_a_filter_comes_before_the_first_rows(session: Any, both: Both) -> None:
    for where in ("real > 2", "text = 'a'", "id >= 600 AND money < 0", "id = 3", "id < 5 AND id % 2 = 0", "zoned IS NULL"):
        ours, found, expected = _sql(session, f"SELECT id, real FROM {{}} WHERE {where} ORDER BY real DESC, id LIMIT 7")
        assert found == expected, where
        assert "first 7" not in _plan(ours)
    kept = session.read.format("lance").option("filter", "id >= 600 AND id % 2 = 0").load(both.uri)
    first = kept.orderBy(kept["real"].desc(), "id").limit(7)
    expected = both.parquet.where("id >= 600 AND id % 2 = 0").orderBy(both.parquet["real"].desc(), "id").limit(7)
    assert _known(first.select("id", "real").collect()) == _known(expected.select("id", "real").collect())
    if WITH_BRIDGE:
        assert "first 7" in _plan(first)


@with_bridge
def test_what_is_not_of_the_scan(session: Any, both: Both) -> None:
    for order in ("id + 1", "struct", "struct.k", "list", "-id", "lower(text)"):
        ours, found, expected = _sql(session, f"SELECT id FROM {{}} ORDER BY {order}, id LIMIT 5")
        assert found == expected, order
        assert "first 5" not in _plan(ours), order
    assert "first" not in _plan(session.sql("SELECT id FROM top_lance ORDER BY id LIMIT 100000"))
    assert "first" not in _plan(both.lance.select("_rowid").orderBy("_rowid").limit(3))


@with_bridge
def test_rows_have_their_addresses_and_parts_of_structs(session: Any, both: Both) -> None:
    found = both.lance.select("id", "_fragid", "_rowaddr", "struct.t").orderBy(both.lance["int"], "id").limit(10)
    assert "first 10" in _plan(found)
    for row in found.collect():
        assert (row["_fragid"], row["_rowaddr"] & 0xFFFFFFFF) == (row["id"] // PER_FILE, row["id"] % PER_FILE)
        assert row["t"] == (f"t{row['id']}" if row["id"] % 5 else None)


@with_bridge
@needs_classic
def test_a_task_gives_no_more_rows_than_are_wanted(session: Any, both: Both) -> None:
    found = both.lance.orderBy("money").limit(10)
    found.collect()
    plan = found._jdf.queryExecution().executedPlan()
    while plan.children().size():
        plan = plan.children().head()
    assert plan.metrics().apply("numOutputRows").value() == 10 * ROWS // PER_FILE


def test_first_rows_in_larger_queries(session: Any, both: Both) -> None:
    top = "(SELECT id, real, text FROM {0} ORDER BY real {1}, id LIMIT 5)"
    queries = [
        f"SELECT * FROM {top.format('{0}', 'ASC')} UNION ALL SELECT * FROM {top.format('{0}', 'DESC')} ORDER BY id, real",
        f"SELECT count(*), max(id) FROM {top.format('{0}', 'DESC')}",
        f"SELECT a.id, b.text FROM {top.format('{0}', 'DESC')} a JOIN {{0}} b ON a.id = b.id WHERE b.id % 3 = 1",
        f"SELECT * FROM {top.format('{0}', 'DESC')} WHERE id % 2 = 0",
        "SELECT text, count(*) n FROM {0} GROUP BY text ORDER BY n, text LIMIT 3",
        "SELECT count(*) n FROM {0} ORDER BY n LIMIT 1",
        "SELECT id + 1 AS b FROM (SELECT id, money AS m FROM {0}) ORDER BY m DESC, id LIMIT 4",
        "SELECT max(id), min(money) FROM (SELECT * FROM {0} ORDER BY id DESC LIMIT 7)",
    ]
    for query in queries:
        _, found, expected = _sql(session, query)
        assert sorted(found) == sorted(expected), query


def test_totals_of_all_columns(session: Any, both: Both) -> None:
    functions = ", ".join(f"min(`{name}`), max(`{name}`), count(`{name}`)" for name in SORTED)
    ours, found, expected = _sql(session, f"SELECT count(*), {functions} FROM {{}}")
    assert found == expected
    if WITH_BRIDGE:
        assert "each task's count(*), min(boolean), max(boolean), count(boolean), " in _plan(ours)


def test_totals_in_larger_queries(session: Any, both: Both) -> None:
    queries = {
        "SELECT max(id) - min(id), count(real) + 1 FROM {}": True,
        "SELECT max(id), count(DISTINCT boolean) FROM {}": False,
        "SELECT max(id) FROM {} WHERE real > 1": False,
        "SELECT boolean, max(real) FROM {} GROUP BY boolean ORDER BY 1": False,
        "SELECT max(id + 1) FROM {}": False,
        "SELECT max(struct.k), count(list) FROM {}": False,
        "SELECT max(id), sum(id) FROM {}": False,
        "SELECT min(text) FROM {} HAVING max(id) > 3": True,
        "SELECT max(id) FILTER (WHERE id < 9) FROM {}": False,
        "SELECT id FROM {} WHERE id = (SELECT max(id) FROM {})": True,
    }
    for query, is_taken in queries.items():
        ours, found, expected = _sql(session, query.replace("{}", "{0}"))
        assert found == expected, query
        if WITH_BRIDGE:
            assert ("each task's" in _plan(ours)) == is_taken, query


def test_nothing_to_sort_or_to_count(session: Any, tmp_path: Path) -> None:
    empty, gone = str(tmp_path / "empty.lance"), str(tmp_path / "gone.lance")
    table = pa.table({"id": pa.array([1, 2, 3]), "x": [0.5, None, 1.5]})
    lance.write_dataset(table.slice(0, 0), empty)
    lance.write_dataset(table, gone)
    lance.dataset(gone).delete("true")
    for uri in (empty, gone):
        frame = session.read.format("lance").load(uri)
        assert frame.orderBy("x").limit(2).collect() == []
        assert tuple(frame.selectExpr("count(x)", "count(*)", "min(x)", "max(id)").collect()[0]) == (0, 0, None, None)
        assert frame.orderBy("x").limit(0).collect() == []
    kept = session.read.format("lance").option("filter", "id > 5").load(gone)
    assert tuple(kept.selectExpr("count(*)", "max(x)").collect()[0]) == (0, None)


def test_rows_with_ids_of_their_own_and_an_index(session: Any, tmp_path: Path) -> None:
    uri = str(tmp_path / "ids.lance")
    table = pa.table({"id": pa.array(range(4_000), pa.int64()), "x": pa.array([(i * 37) % 4_000 for i in range(4_000)])})
    lance.write_dataset(table, uri, max_rows_per_file=1_000, enable_stable_row_ids=True)
    lance.dataset(uri).create_scalar_index("x", "BTREE")
    lance.dataset(uri).update({"x": "x + 10000"}, where="id < 3")
    lance.dataset(uri).delete("x = 3999")
    frame = session.read.format("lance").load(uri)
    found = frame.orderBy(frame["x"].desc()).limit(5).collect()
    assert [row["x"] for row in found] == [10_074, 10_037, 10_000, 3_998, 3_997]
    assert [row["id"] for row in found[:3]] == [2, 1, 0]
    kept = session.read.format("lance").option("filter", "x < 50").load(uri)
    assert [row["x"] for row in kept.orderBy(kept["x"].desc()).limit(2).collect()] == [49, 48]
    assert tuple(kept.selectExpr("min(x)", "max(x)", "count(x)").collect()[0]) == (1, 49, 48)
    assert tuple(frame.selectExpr("min(x)", "max(x)").collect()[0]) == (1, 10_074)


def test_blobs_of_the_first_rows(session: Any, tmp_path: Path) -> None:
    uri = str(tmp_path / "blobs.lance")
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    values = [None if row % 9 == 0 else b"%d" % row * 100 for row in range(200)]
    columns = [pa.array(range(200), pa.int64()), pa.array(values, pa.large_binary())]
    lance.write_dataset(pa.table(columns, schema=pa.schema([("id", pa.int64()), field])), uri, data_storage_version="2.1")
    frame = session.read.format("lance").load(uri)
    found = frame.orderBy(frame["id"].desc()).limit(3).collect()
    assert [(row["id"], row["b"] and bytes(row["b"])) for row in found] == [(row, values[row]) for row in (199, 198, 197)]
