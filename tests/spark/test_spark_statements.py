"""SQL statements whose queries Spark runs: the rows that DuckDB leaves, one version of each table, exactly once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import InputError, NotFoundError
from lance_core.io.resolve import resolve_store
from lance_core.jobs import api
from lance_core.jobs.kinds import spec_from_json
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.spec import CommitSpec, JobSpec, TableRead
from lance_core.jobs.specs.sql import lance_source, sql_spec
from lance_core.publish.abort import abort_attempt
from lance_core.spark.lance_tables import LanceTables
from lance_core.spark.on_demand import OnDemandSpark
from lance_core.spark.runner import SparkRunner
from lance_core.spark.source import register
from tests.jobs.edit_support import commit, identity, leftovers, make_table
from tests.jobs.sources.test_statements_like_an_engine import MORE, STATEMENTS, USERS, by_duckdb, ordered, parts
from tests.spark.conftest import needs_format

pytestmark = pytest.mark.spark

SAMPLED = (2, 13, 20, 24)
"""Statements of each kind for the default suite: the others take seconds each."""


@pytest.fixture
def lake(tmp_path: Path) -> dict[str, str]:
    return {
        name: make_table(str(tmp_path / f"{name}.lance"), *parts(table)) for name, table in (("users", USERS), ("s", MORE))
    }


def spec_of(lake: dict[str, str], sql: str, **fields: Any) -> JobSpec:
    sources = {name: lance_source(uri, **fields.pop(name, {})) for name, uri in lake.items()}
    target = fields.pop("identity_of", lake["users"])
    return sql_spec(sql, sources, identity=identity(target, fields.pop("key", "1")), engine="spark", **fields)


def stage(spark: Any, spec: JobSpec, tables: LanceTables | None = None) -> Any:
    return run_job(spec, runner=SparkRunner(lambda: spark, tables))


def rows_of(uri: str) -> list[tuple[Any, ...]]:
    table = lance.dataset(uri)
    table.validate()
    return ordered([tuple(row.values()) for row in table.to_table().select(["id", "grp", "n", "name", "day"]).to_pylist()])


@pytest.mark.parametrize(
    "number",
    [pytest.param(n, marks=() if n in SAMPLED else pytest.mark.slow) for n in range(len(STATEMENTS))],
    ids=lambda number: STATEMENTS[number].split()[0] + str(number),
)
def test_a_statement_leaves_the_rows_that_duckdb_leaves(spark: Any, lake: dict[str, str], number: int) -> None:
    spec = spec_of(lake, STATEMENTS[number].replace("user, max(n) AS m", "s.user, max(n) AS m"))
    commit(spec.uri, stage(spark, spec))
    assert rows_of(lake["users"]) == by_duckdb(STATEMENTS[number])


def test_inserts_are_in_the_dialect_of_spark(spark: Any, lake: dict[str, str], tmp_path: Path) -> None:
    lake["daily"] = str(tmp_path / "daily.lance")
    fill = "INSERT INTO daily SELECT `day`, count(*) AS n, \"it's\" AS note FROM users WHERE name <> 'it\\'s' GROUP BY `day`"
    commit(lake["daily"], stage(spark, spec_of(lake, fill)))
    named = "INSERT INTO daily (`note`, n) SELECT 'x', sum(u.n) FROM users u CROSS JOIN s"
    commit(lake["daily"], stage(spark, spec_of(lake, named, key="2")))
    again = "INSERT INTO daily REPLACE WHERE `day` = \"x\" SELECT 'x' AS day, 1 AS n, 'replaced' AS note"
    commit(lake["daily"], stage(spark, spec_of(lake, again, key="3")))
    found = {(row["day"], row["n"], row["note"]) for row in lance.dataset(lake["daily"]).to_table().to_pylist()}
    assert found == {("y", 3, "it's"), ("x", 1, "replaced"), (None, 170 * 6, "x")}
    commit(lake["daily"], stage(spark, spec_of(lake, 'UPDATE daily SET note = "a\'b" WHERE n = 1', key="4")))
    commit(lake["daily"], stage(spark, spec_of(lake, "CREATE OR REPLACE TABLE daily AS SELECT note FROM daily", key="5")))
    assert sorted(lance.dataset(lake["daily"]).to_table()["note"].to_pylist()) == ["a'b", "it's", "x"]


@needs_format
def test_each_table_is_read_at_one_version(spark: Any, lake: dict[str, str], tmp_path: Path) -> None:
    """Also one that a query names twice, a tag's of a branch, and one that whoever starts the job has pinned."""
    table = lance_core.dataset(lake["s"])
    branch = table.create_branch("eu")
    branch.delete("id > 3")
    branch.tags.create("eu-tag", ("eu", branch.version))
    lance_core.dataset(lake["s"]).delete("id = 2")
    twice = "INSERT OVERWRITE users SELECT count(*) AS n FROM s a JOIN s b ON a.id = b.id"
    for number, (asked, expected) in enumerate(
        (({}, 4), ({"version": 2}, 5), ({"version": "eu-tag"}, 2), ({"branch": "eu"}, 2))
    ):
        tables = LanceTables()
        commit(lake["users"], stage(spark, spec_of(lake, twice, key=str(number), s=asked), tables))
        assert lance.dataset(lake["users"]).to_table().to_pylist() == [{"n": expected}], asked
        assert set(tables.opened) == {"s"}
    register(spark)
    tagged = spark.read.format("lance").option("tag", "eu-tag").load(lake["s"])
    assert sorted(row["id"] for row in tagged.collect() if row["id"] is not None) == [2, 3]
    spec = spec_of(lake, twice, key="pinned")
    pinned, versions = api.pin_tables(spec, options_of=lambda _: {"aws_region": "eu"})
    assert versions == {"s": lance_core.dataset(lake["s"]).version}
    lance_core.dataset(lake["s"]).delete("true")
    travelled = spec_from_json(pinned.to_json())
    assert travelled == pinned
    commit(lake["users"], stage(spark, travelled, LanceTables.of(travelled)))
    assert lance.dataset(lake["users"]).to_table().to_pylist() == [{"n": 4}]


def test_the_table_that_is_changed_is_never_pinned(lake: dict[str, str]) -> None:
    """What a job plans on must not be newer than what its query reads, or a change in between would be lost."""
    spec = spec_of(lake, STATEMENTS[2])
    pinned, versions = api.pin_tables(spec, options_of=lambda uri: {"aws_region": uri[-7:]})
    assert (pinned.table_reads["users"].version, pinned.table_reads["s"].version) == (None, 2)  # type: ignore[attr-defined]
    assert versions == {"s": 2}
    assert api.reference_of(run_job(CommitSpec(uri=lake["users"])), spec)
    from lance_core.jobs.runtime.lifecycle import work_of

    assert work_of(pinned) == work_of(spec), "what is read is no part of the work"


def test_run_twice_it_lands_once_and_leaves_nothing(spark: Any, lake: dict[str, str]) -> None:
    spec = spec_of(lake, STATEMENTS[2])
    first, second = stage(spark, spec), stage(spark, spec)
    assert first == second, "the second try finds what the first one staged"
    done = commit(spec.uri, first)
    assert commit(spec.uri, stage(spark, spec))["identities"] == {spec.identity: "already_committed"}
    assert lance.dataset(spec.uri).version == done["version"]
    assert rows_of(spec.uri) == by_duckdb(STATEMENTS[2])
    assert not leftovers(spec.uri)


def test_a_change_in_between_makes_the_commit_do_it_again(spark: Any, lake: dict[str, str]) -> None:
    """New values are made of the table's own rows: what another writer changed meanwhile must be in them."""
    spec = spec_of(lake, "UPDATE users u SET n = u.n + s.n FROM s WHERE u.id = s.user")
    staged = stage(spark, spec)
    lance_core.dataset(spec.uri).update({"n": "1000"}, where="id = 2")
    runner = OnDemandSpark()  # takes the session of this process, as a commit on a worker would start one
    done = run_job(CommitSpec.of([staged], uri=spec.uri), runner=runner).to_dict()
    assert done["identities"] == {spec.identity: "committed"}
    assert {row[0]: row[2] for row in rows_of(spec.uri)}[2] == 1005
    assert not leftovers(spec.uri)


def test_a_commit_without_spark_refuses_and_loses_nothing(spark: Any, lake: dict[str, str]) -> None:
    spec = spec_of(lake, "UPDATE users u SET n = u.n + s.n FROM s WHERE u.id = s.user")
    staged = stage(spark, spec)
    lance_core.dataset(spec.uri).update({"n": "1000"}, where="id = 2")
    with pytest.raises(InputError, match="Spark's SQL, but this is not a Spark job"):
        commit(spec.uri, staged)
    assert stage(spark, spec) == staged, "it waits for a commit that has Spark, or for its abort"
    abort_attempt(resolve_store(spec.uri), staged.identity, staged.attempt)
    commit(spec.uri, stage(spark, spec))
    assert {row[0]: row[2] for row in rows_of(spec.uri)}[2] == 1005


def test_refusals(spark: Any, lake: dict[str, str]) -> None:
    with pytest.raises(InputError, match=r"a SELECT cannot run as a Spark job.*INSERT OVERWRITE"):
        spec_of(lake, "SELECT * FROM users")
    with pytest.raises(InputError, match="rejected by Spark"):
        stage(spark, spec_of(lake, "INSERT INTO users SELECT nothing FROM s"))
    with pytest.raises(NotFoundError):
        stage(spark, spec_of({**lake, "s": lake["s"] + "x"}, "INSERT INTO users SELECT id FROM s"))
    twice = pa.concat_tables([USERS, USERS.slice(1, 1)])
    lance.write_dataset(twice, lake["users"], mode="overwrite")
    with pytest.raises(Exception, match="users: a key is null or not unique"):
        stage(spark, spec_of(lake, STATEMENTS[2]))
    assert lance.dataset(lake["users"]).to_table() == twice


KILLED = """
    import os, signal, sys
    from lance_core.jobs.kinds import spec_from_json
    from lance_core.jobs.run import run_job
    from lance_core.spark.lance_tables import LanceTables
    from lance_core.spark.runner import SparkRunner
    from lance_core.spark.submit import start_session

    spec = spec_from_json(sys.argv[1])
    run_job(spec, runner=SparkRunner(lambda: start_session("killed"), LanceTables.of(spec)))
    print("staged", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_a_driver_that_is_killed_between_staging_and_commit(spark: Any, lake: dict[str, str]) -> None:
    spec = spec_of(lake, STATEMENTS[2])
    environment = {**os.environ, "PYSPARK_SUBMIT_ARGS": "--master local[1] --conf spark.ui.enabled=false pyspark-shell"}
    command = [sys.executable, "-c", textwrap.dedent(KILLED), json.dumps(spec.to_plain())]
    killed = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-2000:]
    assert "staged" in killed.stdout
    assert lance.dataset(spec.uri).version == 2
    commit(spec.uri, stage(spark, spec))
    assert lance.dataset(spec.uri).version == 3
    assert rows_of(spec.uri) == by_duckdb(STATEMENTS[2])
    assert not leftovers(spec.uri)


def test_options_of_each_tables_store_reach_the_read(spark: Any, lake: dict[str, str]) -> None:
    """What a table's connection says goes to its store alone; an unknown branch shows that `reads` counts."""
    tables = LanceTables(reads={"s": TableRead(version=2, branch="nowhere")})
    with pytest.raises(NotFoundError, match="nowhere"):
        stage(spark, spec_of(lake, "INSERT INTO users SELECT id FROM s"), tables)
