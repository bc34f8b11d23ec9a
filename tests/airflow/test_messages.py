"""What a user is told after a mistake: what is wrong, where, the names and values concerned, and a cure that works."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from airflow.models.connection import Connection
from click.testing import CliRunner

import lance_core
from airflow_lance import checks
from airflow_lance.connection import parse_connection
from airflow_lance.operators.build_index import LanceBuildIndexOperator
from airflow_lance.operators.check import LanceCheckOperator
from airflow_lance.operators.cleanup import LanceCleanupOperator
from airflow_lance.operators.drop_index import LanceDropIndexOperator
from lance_core.cli.main import cli
from lance_core.errors import LanceError
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.spec import AppendSpec, SourceSpec
from tests.airflow.operator_support import execute

pytest.importorskip("duckdb")


@dataclass(frozen=True)
class Mistake:
    """One call that is wrong, and what its message must and must not say."""

    make: Callable[[str], Any]
    says: tuple[str, ...]
    hides: tuple[str, ...] = ()


def _check_query(uri: str) -> None:
    execute(LanceCheckOperator(task_id="c", uri=uri, checks=[checks.query("SELECT * FROM stagde")]))


def _source_query(uri: str) -> None:
    source = SourceSpec(
        sql="SELECT * FROM flihgts", views={name: SourceSpec(format="lance", paths=(uri,)) for name in ("flights", "cities")}
    )
    run_job(AppendSpec(uri=uri, source=source))


def _dataset_query(uri: str) -> None:
    lance_core.dataset(uri).sql("SELECT * FROM nowhere").build().to_batch_records()


def _index(**fields: Any) -> Callable[[str], None]:
    def make(uri: str) -> None:
        execute(LanceBuildIndexOperator(task_id="b", uri=uri, execution="local", **fields))

    return make


def _vectors(**fields: Any) -> Callable[[str], None]:
    return lambda uri: lance_core.dataset(uri).create_index("v", **fields)


def _cleanup(days: Any) -> Callable[[str], None]:
    return lambda uri: execute(LanceCleanupOperator(task_id="c", uri=uri, older_than_days=days))


def _spark_connection(uri: str) -> None:
    parse_connection(Connection(conn_id="spark_default", conn_type="spark", host="yarn"))


def _check(**bounds: int) -> Callable[[str], None]:
    return lambda uri: execute(LanceCheckOperator(task_id="c", uri=uri, checks=[checks.row_count(**bounds)]))


def _tag(uri: str) -> None:
    lance_core.dataset(uri).tags.create("gold", 1)
    lance_core.dataset(uri).tags.create("gold", 1)


_KINDS = ("BTREE", "BITMAP", "ZONEMAP", "INVERTED", "NGRAM", "LABEL_LIST", "IVF_PQ", "IVF_HNSW_SQ")
MISTAKES = {
    "an unknown table in a check": Mistake(
        _check_query, ("there is no table 'stagde'", "Did you mean staged?", "The query may read: staged."), ("pg_c",)
    ),
    "an unknown table in a source": Mistake(
        _source_query,
        ("there is no table 'flihgts'", "Did you mean flights?", "The query may read: flights, cities."),
        ("pg_c",),
    ),
    "an unknown table of a dataset": Mistake(
        _dataset_query, ("there is no table 'nowhere'", "The query may read: dataset."), ("pg_c", "Did you mean")
    ),
    "an unknown kind of index": Mistake(
        _index(column="id", index_type="BTRE"), ("index type 'BTRE'", "Did you mean BTREE", *_KINDS)
    ),
    "an unknown kind of index for vectors": Mistake(
        _vectors(index_type="IVF_QP"), ("index type 'IVF_QP'", "IVF_PQ", "IVF_HNSW_FLAT"), ("BTREE",)
    ),
    "an unknown parameter of an index": Mistake(
        _index(column="id", index_type="ZONEMAP", parameters={"rows_per_zon": 8}),
        ("ZONEMAP", "'rows_per_zon'", "Did you mean rows_per_zone?", "ZONEMAP takes rows_per_zone"),
        ("create_scalar_index",),
    ),
    "an unknown parameter of a vector index": Mistake(
        _index(column="v", index_type="IVF_HNSW_PQ", parameters={"num_sub_vectors": 2, "ef_constructon": 8}),
        ("IVF_HNSW_PQ takes", "Did you mean ef_construction?", "metric", "num_bits", "num_partitions", "m,", "max_level"),
        ("create_index",),
    ),
    "days below none": Mistake(_cleanup(-1), ("older_than_days", "got -1", "older_than_days=7"), ("seconds", "86400")),
    "days as text": Mistake(_cleanup("7"), ("older_than_days", "got '7'", "older_than_days=7"), ("seconds",)),
    "a spark connection for tables": Mistake(
        _spark_connection, ("connection 'spark_default'", "type spark, expected lance", "spark_conn_id='spark_default'")
    ),
    "too few rows": Mistake(_check(at_least=601), ("the table has 600 rows, expected at least 601",), ("added",)),
    "too many rows": Mistake(_check(at_most=5), ("the table has 600 rows, expected at most 5",), ("added",)),
    "a tag that exists": Mistake(_tag, ("there is already a tag 'gold'", "`lance tags update ", " gold 1`"), ("_refs",)),
}


@pytest.fixture
def uri(tmp_path: Path) -> str:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([float(number) for number in range(2400)], pa.float32()), 4)
    path = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"id": range(600), "v": vectors}), path)
    return path


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_with_its_place_and_cure(uri: str, name: str) -> None:
    mistake = MISTAKES[name]
    with pytest.raises(Exception) as caught:
        mistake.make(uri)
    told = str(caught.value)
    assert isinstance(caught.value, (LanceError, TypeError)) or type(caught.value).__name__ == "AirflowFailException"
    assert [words for words in mistake.says if words not in told] == [], told
    assert [words for words in mistake.hides if words in told] == [], told
    assert lance.dataset(uri).version == 1


def test_the_command_that_a_tag_names_moves_it(uri: str) -> None:
    runner = CliRunner()
    assert runner.invoke(cli, ["tags", "create", uri, "gold"]).exit_code == 0
    lance.dataset(uri).delete("id = 1")
    refused = runner.invoke(cli, ["tags", "create", uri, "gold"])
    command = re.search(r"`lance (.+?)`", str(refused.exception))
    assert command is not None, refused
    assert runner.invoke(cli, command[1].split()).exit_code == 0
    assert lance.dataset(uri).tags.list()["gold"]["version"] == 2


@pytest.mark.parametrize("is_indexed", [True, False])
def test_a_dropped_index_that_is_not_there_is_a_warning(uri: str, caplog: Any, is_indexed: bool) -> None:
    if is_indexed:
        lance.dataset(uri).create_scalar_index("id", "BTREE")
    with caplog.at_level(logging.WARNING):
        execute(LanceDropIndexOperator(task_id="d", uri=uri, index_name="id_idex"))
    (told,) = [record.getMessage() for record in caplog.records if "id_idex" in record.getMessage()]
    assert uri in told
    assert ("did you mean id_idx? Its indices: id_idx." in told) if is_indexed else told.endswith("It has no index.")
