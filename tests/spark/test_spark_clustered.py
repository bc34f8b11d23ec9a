"""Tables whose fragments hold one value of a column each, joined and grouped beside the same rows as Parquet.

All of it runs with the bridge, which tells Spark so, and without.
"""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lance_core.spark.clustered import KeyedGroup, clustering
from lance_core.spark.options import parse_options
from lance_core.spark.table_reader import TableReader
from tests.spark.conftest import WITH_BRIDGE, needs_bridge

pytestmark = pytest.mark.spark

BUCKETING = "spark.sql.sources.v2.bucketing"
PRUNING = "spark.sql.optimizer.dynamicPartitionPruning"
SETTINGS = {
    f"{BUCKETING}.enabled": "true",
    f"{BUCKETING}.pushPartValues.enabled": "true",
    f"{BUCKETING}.partiallyClusteredDistribution.enabled": "false",
    f"{BUCKETING}.shuffle.enabled": "false",
    f"{PRUNING}.reuseBroadcastOnly": "true",
    f"{PRUNING}.fallbackFilterRatio": "0.5",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
}
JOIN = "SELECT l.k, l.x, r.x AS y FROM {left} l JOIN {right} r ON l.k = r.k"
GROUPS = "SELECT k, count(*) AS n, sum(x) AS total, max(t) AS t FROM {left} GROUP BY k"
OTHERS = (
    "SELECT l.k, r.k AS j, l.x, r.x AS y FROM {left} l LEFT JOIN {right} r ON l.k = r.k",
    "SELECT l.k, r.k AS j, l.x, r.x AS y FROM {left} l FULL JOIN {right} r ON l.k = r.k AND l.x < r.x",
    "SELECT k, x FROM {left} WHERE k NOT IN (SELECT k FROM {right} WHERE k IS NOT NULL)",
    "SELECT l.k, count(*) AS n FROM {left} l JOIN {right} r ON l.k = r.k GROUP BY l.k",
    "SELECT k, t, count(DISTINCT x) AS n FROM {left} GROUP BY k, t",
    "SELECT k, x FROM {left} WHERE x < 3 UNION SELECT k, x FROM {right}",
)
KINDS: dict[str, tuple[pa.DataType, Callable[[int], Any]]] = {
    "small": (pa.int16(), lambda day: -day),
    "int": (pa.int32(), lambda day: day),
    "long": (pa.int64(), lambda day: day * 2**40),
    "byte": (pa.uint8(), lambda day: 200 + day),
    "text": (pa.string(), lambda day: f"Tag {day} \U0001f600"),
    "date": (pa.date32(), lambda day: dt.date(1969, 12, 28) + dt.timedelta(days=day)),
    "zoned": (pa.timestamp("us", "UTC"), lambda day: dt.datetime(1969, 12, 28, 5, 4, 3, 21) + dt.timedelta(days=day)),
    "local": (pa.timestamp("ms"), lambda day: dt.datetime(2024, 3, day, 1, 2, 3, 4000)),
}
ROWS = 6
LEFT, RIGHT = (1, 2, 3, 4, 4, 2), (2, 3, 4, 5, 3)
numbers = count()


class Lake(NamedTuple):
    """Tables and the same rows as Parquet, as views of a session with `SETTINGS`."""

    session: Any
    folder: Path

    def add(self, name: str, fragments: Sequence[pa.Table], *, indexed: bool = True, options: Any = ()) -> str:
        """A table with a fragment of each; the view `{name}_lance`, and `{name}_parquet` of the rows that are left."""
        uri = str(self.folder / f"{name}{next(numbers)}.lance")
        for number, rows in enumerate(fragments):
            lance.write_dataset(rows, uri, mode="append" if number else "create")
        if indexed:
            lance.dataset(uri).create_scalar_index("k", "ZONEMAP")
        self.show(name, uri, options=options)
        return uri

    def show(self, name: str, uri: str, *, options: Any = ()) -> None:
        """Views of the newest version."""
        place = str(self.folder / f"{name}{next(numbers)}.parquet")
        pq.write_table(lance.dataset(uri).to_table(), place)
        reading = self.session.read.format("lance").options(**{"rowsPerPartition": str(ROWS), **dict(options)})
        reading.load(uri).createOrReplaceTempView(f"{name}_lance")
        self.session.read.parquet(place).createOrReplaceTempView(f"{name}_parquet")

    def rows(self, query: str, source: str) -> list[str]:
        """Sorted texts of them."""
        found = self.session.sql(query.format(left=f"left_{source}", right=f"right_{source}")).collect()
        return sorted(repr(tuple(row)) for row in found)

    def plan(self, query: str) -> str:
        """As Spark shows it before it runs."""
        return str(self.session.sql("EXPLAIN " + query.format(left="left_lance", right="right_lance")).first()[0])

    def check(self, *queries: str) -> None:
        """The rows of Parquet."""
        for query in queries:
            assert self.rows(query, "lance") == self.rows(query, "parquet"), query

    def check_moved(self, query: str, moved: bool) -> None:
        """Rows as those of Parquet, and whether Spark moves them between tasks."""
        self.check(query)
        if WITH_BRIDGE:
            assert ("Exchange" in self.plan(query)) == moved, self.plan(query)


@pytest.fixture
def lake(formats: Any, tmp_path: Path) -> Iterator[Lake]:
    for name, value in SETTINGS.items():
        formats.conf.set(name, value)
    yield Lake(formats, tmp_path)
    for name in SETTINGS:
        formats.conf.unset(name)
    for side in ("left", "right"):
        for source in ("lance", "parquet"):
            formats.catalog.dropTempView(f"{side}_{source}")


def _day(day: int | None, *, kind: str = "int", rows: int = ROWS, first: int = 0) -> pa.Table:
    arrow, make = KINDS[kind]
    value = None if day is None else make(day)
    numbers = range(first, first + rows)
    return pa.table({"k": pa.array([value] * rows, arrow), "x": pa.array(numbers), "t": [f"t{day}"] * rows})


def _days(days: Sequence[int], kind: str = "int") -> list[pa.Table]:
    return [_day(day, kind=kind, first=10 * place) for place, day in enumerate(days)]


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_those_of_parquet_and_none_moves(lake: Lake, kind: str) -> None:
    lake.add("left", _days(LEFT, kind))
    lake.add("right", _days(RIGHT, kind))
    lake.check_moved(JOIN, moved=False)
    lake.check_moved(GROUPS, moved=False)
    if kind in ("int", "text"):
        lake.check(*OTHERS)


def test_without_the_setting_rows_move_as_ever(lake: Lake) -> None:
    lake.session.conf.set(f"{BUCKETING}.enabled", "false")
    lake.add("left", _days(LEFT))
    lake.add("right", _days(RIGHT))
    lake.check_moved(JOIN, moved=True)
    lake.check_moved(GROUPS, moved=True)


def test_only_a_column_that_is_read(lake: Lake) -> None:
    lake.add("left", _days(LEFT))
    lake.check_moved("SELECT t, count(*) AS n FROM {left} GROUP BY t", moved=True)
    lake.check_moved("SELECT k, t, count(*) AS n FROM {left} GROUP BY k, t", moved=False)


@pytest.mark.parametrize("fault", ["two values", "a null", "all null", "behind the index", "no index", "another kind"])
def test_rows_of_a_table_that_is_not_clustered_move(lake: Lake, fault: str) -> None:
    days = _days(LEFT)
    if fault in ("two values", "a null"):
        days[2] = pa.concat_tables([days[2].slice(1), _day(9 if fault == "two values" else None, rows=1)])
    if fault == "all null":
        days.append(_day(None))
    uri = lake.add("left", days, indexed=fault not in ("no index", "another kind"))
    if fault == "behind the index":
        lance.write_dataset(_day(7), uri, mode="append")
    if fault == "another kind":
        lance.dataset(uri).create_scalar_index("k", "BTREE")
    lake.show("left", uri)
    lake.add("right", _days(RIGHT))
    lake.check_moved(JOIN, moved=fault != "all null")  # that fragment is not read for a join
    lake.check_moved(GROUPS, moved=True)


def test_a_filter_leaves_what_the_index_covers(lake: Lake) -> None:
    uri = lake.add("left", [*_days(LEFT), pa.concat_tables([_day(8, rows=3), _day(9, rows=3)])])
    lake.check_moved(GROUPS, moved=True)
    lake.check_moved("SELECT k, count(*) AS n FROM {left} WHERE k < 8 GROUP BY k", moved=False)
    lake.check_moved("SELECT k, count(*) AS n FROM {left} WHERE k > 1 AND x < 40 GROUP BY k", moved=True)
    lake.show("left", uri, options={"filter": "k <= 4"})
    assert lake.rows("SELECT k, count(*) AS n FROM {left} GROUP BY k", "lance") == ["(1, 6)", "(2, 12)", "(3, 6)", "(4, 12)"]
    if WITH_BRIDGE:
        assert "Exchange" not in lake.plan(GROUPS)


def test_deleted_rows_change_nothing(lake: Lake) -> None:
    uri = lake.add("left", _days(LEFT))
    lance.dataset(uri).delete("x IN (0, 5, 12, 40, 41, 42, 43, 44) OR k = 3")
    lake.show("left", uri)
    lake.add("right", _days(RIGHT))
    lake.check_moved(JOIN, moved=False)
    lake.check_moved(GROUPS, moved=False)
    lake.check(*OTHERS)


def test_rows_deleted_before_the_index_was_built_are_not_in_it(lake: Lake) -> None:
    uri = lake.add("left", [*_days(LEFT), pa.concat_tables([_day(9, rows=3), _day(7, rows=3, first=90)])], indexed=False)
    lance.dataset(uri).delete("x IN (90, 91, 92)")
    lance.dataset(uri).create_scalar_index("k", "ZONEMAP")
    lake.show("left", uri)
    lake.check_moved(GROUPS, moved=False)


@pytest.mark.parametrize(("pushed", "partially"), [(True, True), (True, False), (False, False)])
def test_a_value_in_several_tasks(lake: Lake, pushed: bool, partially: bool) -> None:
    lake.session.conf.set(f"{BUCKETING}.pushPartValues.enabled", str(pushed).lower())
    lake.session.conf.set(f"{BUCKETING}.partiallyClusteredDistribution.enabled", str(partially).lower())
    lake.add("left", _days([1, 2, 2, 2, 2, 2, 3, 2]))
    lake.add("right", _days([2, 3, 2, 5]))
    lake.check(JOIN, GROUPS, *OTHERS[1:4])
    if WITH_BRIDGE:
        # Spark would give wrong rows for a value that it splits, so it is not told where it may.
        assert ("Exchange" in lake.plan(JOIN)) == (partially or not pushed)


def test_one_side_that_is_not_clustered_may_be_shuffled_to_the_other(lake: Lake) -> None:
    lake.session.conf.set(f"{BUCKETING}.shuffle.enabled", "true")
    lake.add("left", [*_days(LEFT), _day(None)], indexed=False)
    lake.add("right", _days(RIGHT))
    lake.check(JOIN, *OTHERS[:4])


@pytest.mark.parametrize("where", ["x IN (20, 21)", "x IN (1000)", "t <> 't3'"])
def test_what_the_other_side_turns_out_to_hold_restricts_the_groups(lake: Lake, where: str) -> None:
    lake.session.conf.set(f"{PRUNING}.reuseBroadcastOnly", "false")
    lake.session.conf.set(f"{PRUNING}.fallbackFilterRatio", "10")
    lake.add("left", _days([*LEFT, 2, 6]))
    lake.add("right", _days(RIGHT))
    query = f"SELECT l.k, l.x, r.x AS y FROM {{left}} l JOIN (SELECT * FROM {{right}} WHERE {where}) r ON l.k = r.k"
    lake.check_moved(query, moved=False)
    if WITH_BRIDGE:
        assert "dynamicpruning" in lake.plan(query)


@needs_bridge  # the Python source reads the newest version whenever a query begins
def test_a_table_with_itself_and_another_version(lake: Lake) -> None:
    uri = lake.add("left", _days(LEFT))
    lance.write_dataset(_day(5), uri, mode="append")
    lance.dataset(uri).optimize.optimize_indices()
    lake.show("right", uri)
    lake.check_moved(JOIN, moved=False)
    lake.check_moved("SELECT a.k, a.x, b.x AS y FROM {left} a JOIN {left} b ON a.k = b.k", moved=False)


def test_an_index_that_says_what_is_not_so_is_an_error(lake: Lake) -> None:
    mixed = [*_days((1, 2)), pa.concat_tables([_day(3, rows=3), _day(4, rows=3)])]
    uri, other = lake.add("left", mixed), lake.add("right", _days((1, 2, 3)))
    (told,) = Path(other).glob("_indices/*/zonemap.lance")
    (asked,) = Path(uri).glob("_indices/*/zonemap.lance")
    shutil.copy(told, asked)
    if WITH_BRIDGE:
        with pytest.raises(Exception, match="a zone map says that column 'k' has one value"):
            lake.rows(JOIN, "lance")
    lake.session.conf.set(f"{BUCKETING}.enabled", "false")
    lake.check("SELECT k, count(*) AS n FROM {left} GROUP BY k")


def _reader(uri: str, columns: Sequence[str] = ("k", "x"), **options: str) -> TableReader:
    schema = lance.dataset(uri).schema
    return TableReader(parse_options({"path": uri, **options}), columns, pa.schema([schema.field(name) for name in columns]))


def _clustered(uri: str, *, parallelism: int = 2, columns: Sequence[str] = ("k", "x"), **options: str) -> Any:
    reader = _reader(uri, columns, **options)
    return clustering(reader, reader.groups(parallelism=parallelism), parallelism=parallelism)


@pytest.fixture
def table(tmp_path: Path) -> Callable[[Sequence[int]], str]:
    def make(days: Sequence[int], **columns: Sequence[int]) -> str:
        uri = str(tmp_path / f"t{next(numbers)}.lance")
        for number, rows in enumerate(_days(days)):
            for name, values in columns.items():
                rows = rows.append_column(name, pa.array([values[number]] * ROWS, pa.int32()))
            lance.write_dataset(rows, uri, mode="append" if number else "create")
        for name in ("k", *columns):
            lance.dataset(uri).create_scalar_index(name, "ZONEMAP")
        return uri

    return make


def test_groups_are_neighbours_of_one_value(table: Callable[..., str]) -> None:
    found = _clustered(table((1, 1, 2, 3, 3, 1)))
    assert found.column == "k"
    assert found.keys == [1, 2, 3, 1]
    assert [(group.start, group.end) for group in found.groups] == [(0, 2), (2, 3), (3, 5), (5, 6)]


def test_fewer_values_than_processors_are_no_clustering(table: Callable[..., str]) -> None:
    uri = table((1, 1, 2, 3))
    assert _clustered(uri, parallelism=3) is not None
    assert _clustered(uri, parallelism=4) is None
    assert _clustered(table((1, 1)), parallelism=1) is None


def test_of_several_columns_the_one_with_most_values(table: Callable[..., str]) -> None:
    uri = table((1, 2, 3, 4), month=(1, 1, 2, 2))
    assert _clustered(uri, columns=("month", "k", "x")).column == "k"
    assert _clustered(uri, columns=("month", "x")).column == "month"
    assert _clustered(uri, columns=("x",)) is None


def test_a_value_with_most_of_the_rows_is_no_clustering(table: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    skewed, even = table((1, 2, *[3] * 8)), table((1, 1, 2, 2, 3, 3))
    assert _clustered(skewed) is not None  # as small as one task
    monkeypatch.setattr("lance_core.spark.clustered.LEAST_BYTES", 1)
    assert _clustered(skewed, parallelism=3) is None
    assert _clustered(even, parallelism=3) is not None


def test_so_many_more_tasks_are_no_clustering(table: Callable[..., str]) -> None:
    uri = table(range(9))
    assert _clustered(uri) is None
    assert _clustered(uri, parallelism=3) is not None
    assert _clustered(uri, rowsPerPartition=str(ROWS)) is not None


def test_what_spark_was_told_is_kept_for_fewer_rows(table: Callable[..., str]) -> None:
    reader = _reader(table((1, 2, 3, 4), month=(1, 1, 2, 2)), ("month", "k", "x"))
    for where, keys in (("k = 3", [2]), ("k = 9", [1])):
        reader.filter_also(where)
        found = clustering(reader, reader.groups(parallelism=2), parallelism=2, column="month")
        assert found is not None
        assert found.keys == keys
        assert all(isinstance(group, KeyedGroup) for group in found.groups)
