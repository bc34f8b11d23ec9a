"""Columns in an engine's own SQL: without Spark an engine made of pyarrow, with it Spark itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lance_core.errors import InputError, LanceError
from lance_core.jobs.plans.spark_columns import columns_named
from lance_core.jobs.run import run_job
from lance_core.jobs.runtime.local_runner import LocalRunner
from lance_core.jobs.runtime.protocols import ROW
from lance_core.jobs.sources.open_source import LocalSource
from lance_core.jobs.specs.edits import AddColumnsSpec
from lance_core.jobs.specs.spec import CommitSpec, read_spec
from tests.jobs.edit_support import commit, identity, leftovers, make_table, rows

Batch = pa.RecordBatch
LIVING = sorted({*range(30)} - {15})


class Twice(LocalRunner):
    """An engine that knows one expression; `spoil` changes what comes out of it."""

    def __init__(self, spoil: Callable[[Batch], Batch] = lambda batch: batch) -> None:
        self.seen: list[int] = []
        self._spoil = spoil

    def open_expressions(self, read: Any, num_tasks: int, schema: pa.Schema, columns: Mapping[str, str]) -> LocalSource:
        assert (schema.names, columns) == ([ROW, "id"], {"twice": "2 * id"})
        out = pa.schema([pa.field(ROW, pa.int64()), pa.field("twice", pa.int64())])

        def batches() -> Iterator[Batch]:
            for number in range(num_tasks):
                for batch in read(iter([pa.RecordBatch.from_pydict({"id": [number]})])):
                    self.seen.extend(batch.column("id").to_pylist())
                    values = [batch.column(ROW), pc.multiply(batch.column("id"), 2)]
                    yield self._spoil(pa.RecordBatch.from_arrays(values, schema=out))

        return LocalSource(out, batches)


@pytest.fixture
def uri(tmp_path: Any) -> str:
    path = make_table(str(tmp_path / "t.lance"), rows(0, 10), rows(10, 20), rows(20, 30))
    lance.dataset(path).delete("id = 15")
    return path


def _spec(uri: str, **fields: Any) -> AddColumnsSpec:
    given: dict[str, Any] = {"columns": {"twice": "2 * id"}, "engine": "spark", **fields}
    return AddColumnsSpec(uri=uri, identity=identity(uri, "1"), **given)


def _column(uri: str, name: str) -> dict[int, Any]:
    table = lance.dataset(uri).to_table(columns=["id", name])
    return dict(zip(table["id"].to_pylist(), table[name].to_pylist(), strict=True))


@pytest.mark.parametrize("batch_size", [None, 3])
def test_the_engine_evaluates_and_the_commit_fills_in(uri: str, batch_size: int | None) -> None:
    engine = Twice()
    staged = run_job(_spec(uri, rows_per_task=20, batch_size=batch_size), runner=engine)
    assert sorted(engine.seen) == [*range(30)]
    lance.write_dataset(rows(30, 40), uri, mode="append")
    engine.seen.clear()
    result = run_job(CommitSpec.of([staged], uri=uri), runner=engine)
    assert (engine.seen, result.re_executed) == ([*range(30, 40)], 1)
    assert _column(uri, "twice") == {number: 2 * number for number in [*LIVING, *range(30, 40)]}
    assert leftovers(uri) == set()


@pytest.mark.parametrize("batch_size", [None, 3])
def test_an_engine_fills_only_what_is_null(uri: str, batch_size: int | None) -> None:
    commit(uri, run_job(_spec(uri), runner=Twice()))
    lance.write_dataset(rows(30, 40), uri, mode="append")
    lance.dataset(uri).update({"twice": "NULL"}, where="id IN (3, 12)")
    lance.dataset(uri).delete("id = 31")
    engine = Twice()
    spec = replace(_spec(uri, if_exists="fill", batch_size=batch_size), identity=identity(uri, "2"))
    staged = run_job(spec, runner=engine)
    assert sorted(engine.seen) == [3, 12, 30, *range(32, 40)]
    lance.write_dataset(rows(40, 45), uri, mode="append")
    engine.seen.clear()
    run_job(CommitSpec.of([staged], uri=uri), runner=engine)
    assert engine.seen == [*range(40, 45)]
    assert _column(uri, "twice") == {number: 2 * number for number in [*LIVING, *range(30, 45)] if number != 31}
    lance.dataset(uri).validate()
    assert leftovers(uri) == set()
    version = lance.dataset(uri).version
    commit(uri, run_job(replace(spec, identity=identity(uri, "3")), runner=engine))
    assert (lance.dataset(uri).version, engine.seen) == (version, [*range(40, 45)]), "nothing is null"


def test_an_engine_that_loses_rows_to_fill_is_noticed(uri: str) -> None:
    commit(uri, run_job(_spec(uri), runner=Twice()))
    lance.write_dataset(rows(30, 40), uri, mode="append")
    spec = replace(_spec(uri, if_exists="fill"), identity=identity(uri, "2"))
    for spoil in (lambda batch: batch.slice(1), lambda batch: batch.slice(0, 0), lambda batch: batch.slice(0, 4)):
        with pytest.raises(LanceError):
            run_job(spec, runner=Twice(spoil))
    assert set(_column(uri, "twice").values()) == {None, *(2 * number for number in LIVING)}
    assert leftovers(uri) == set()


def test_an_engine_is_not_asked_for_what_is_skipped(uri: str) -> None:
    commit(uri, run_job(_spec(uri), runner=Twice()))
    version, engine = lance.dataset(uri).version, Twice()
    commit(uri, run_job(replace(_spec(uri, if_exists="skip"), identity=identity(uri, "2")), runner=engine))
    assert (engine.seen, lance.dataset(uri).version) == ([], version)


def test_a_retry_asks_for_what_is_unfinished(uri: str) -> None:
    def breaks(batch: Batch) -> Batch:
        if batch.column(ROW)[0].as_py() >> 32 == 2:
            raise OSError("the worker lost its disk")
        return batch

    with pytest.raises(OSError, match="lost its disk"):
        run_job(_spec(uri), runner=Twice(breaks))
    engine = Twice()
    commit(uri, run_job(_spec(uri), runner=engine))
    assert engine.seen == [*range(20, 30)]
    assert _column(uri, "twice") == {number: 2 * number for number in LIVING}
    assert leftovers(uri) == set()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda batch: batch.slice(0, batch.num_rows - 1), "another order, or more rows|fewer rows"),
        (lambda batch: batch.take(pa.array([1, 0, *range(2, batch.num_rows)])), "another order"),
        (lambda batch: pa.concat_batches([batch, batch]), "more rows"),
    ],
)
def test_rows_that_are_lost_moved_or_doubled_are_noticed(uri: str, spoil: Callable[[Batch], Batch], message: str) -> None:
    with pytest.raises(InputError, match=message):
        run_job(_spec(uri), runner=Twice(spoil))
    assert leftovers(uri) == set()
    assert lance.dataset(uri).schema.names == ["id", "day", "x"]


def test_what_is_refused(uri: str) -> None:
    with pytest.raises(InputError, match="need Spark, but this is not a Spark job"):
        run_job(_spec(uri))
    with pytest.raises(InputError, match="no column 'nope' to read"):
        run_job(_spec(uri, reads=("nope",)), runner=Twice())
    with pytest.raises(InputError, match='engine="spark" cannot be combined with function'):
        _spec(uri, columns={}, function="a:b")
    with pytest.raises(InputError, match="engine"):
        read_spec(AddColumnsSpec, {"uri": uri, "columns": {"a": "1"}, "engine": "duckdb"})
    assert leftovers(uri) == set()


def test_columns_that_stand_in_the_sql() -> None:
    names = ["id", "text", "Vector"]
    assert columns_named({"n": "length(Text) * 2"}, names) == ("text",)
    assert columns_named({"h": "hash(*)"}, names) == tuple(names)
    assert columns_named({"h": "hash(id, *)", "n": "1"}, names) == tuple(names)
    assert columns_named({"n": "`vector`[0]"}, names) == ("Vector",)
    assert columns_named({"one": "1"}, names) == ()
