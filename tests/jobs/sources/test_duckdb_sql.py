"""What DuckDB does here: gates given as SQL, sources given as SQL, and tables scanned through Arrow."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lance_core import dataset as open_table
from lance_core.errors import GateFailedError, InputError
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.gates import GateSpec
from lance_core.jobs.specs.spec import AppendSpec, SourceSpec
from tests.jobs.edit_support import commit, identity, ids, make_table, rows, source

duckdb = pytest.importorskip("duckdb")


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return make_table(str(tmp_path / "t.lance"), rows(0, 10), rows(10, 20))


def test_a_gate_that_is_a_query(uri: str) -> None:
    staged = run_job(AppendSpec(uri=uri, identity=identity(uri), source=source(start=100, stop=110, day=3)))
    bad = GateSpec(name="few", sql="SELECT day, count(*) AS n FROM staged GROUP BY day HAVING count(*) > 5")
    with pytest.raises(GateFailedError, match=r"gate 'few': the query returned 1 rows, for example \{'day': 3, 'n': 10\}"):
        commit(uri, staged, gates=(bad,))
    with pytest.raises(InputError, match="gate 'typo': its query failed"):
        commit(uri, staged, gates=(GateSpec(name="typo", sql="SELECT nope FROM staged"),))
    assert ids(uri) == [*range(20)]
    good = GateSpec(name="known days", sql="SELECT * FROM staged WHERE day NOT IN (1, 2, 3)")
    assert commit(uri, staged, gates=(good, good))["rows_added"] == 10


def test_a_source_that_is_a_query(uri: str, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [100, 101], "d": [4, 5]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"d": [4, 5], "x": [0.5, 1.5]}), tmp_path / "b.parquet")
    views = {name: SourceSpec(format="parquet", paths=(str(tmp_path / f"{name}.parquet"),)) for name in ("a", "b")}
    query = SourceSpec(sql="SELECT a.id, CAST(a.d AS INTEGER) AS day, b.x FROM a JOIN b USING (d)", views=views)
    commit(uri, run_job(AppendSpec(uri=uri, identity=identity(uri), source=query)))
    assert ids(uri) == [*range(20), 100, 101]
    with pytest.raises(InputError, match=r"source\.sql failed"):
        run_job(AppendSpec(uri=uri, identity=identity(uri, "2"), source=SourceSpec(sql="SELECT nope FROM a", views=views)))


def test_a_table_is_scanned_through_arrow(uri: str) -> None:
    table = open_table(uri)
    reader = table.scanner(columns=["id", "x"], filter="id >= 5").to_reader()
    connection = duckdb.connect()
    connection.register("t", reader)
    assert connection.execute("SELECT count(*), min(id), sum(x) FROM t").fetchone() == (
        15,
        5,
        sum(i * 0.5 for i in range(5, 20)),
    )
