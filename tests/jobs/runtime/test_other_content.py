"""A try that finds its work done over files that have changed since warns, names both, and changes nothing."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lance_core.commit.identities import Asked
from lance_core.io.resolve import resolve_store
from lance_core.jobs import api
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.edits import AddColumnsSpec
from lance_core.jobs.specs.spec import AppendSpec, SourceSpec
from lance_core.publish.attempts import list_staged
from lance_core.publish.decisions import look

IDENTITY = "00000000-0000-5000-8000-000000000001"


def _write(path: Path, *ids: int) -> None:
    pq.write_table(pa.table({"id": pa.array(ids, pa.int64())}), path)


def _append(tmp_path: Path, **fields: Any) -> AppendSpec:
    source = SourceSpec(format="parquet", paths=(str(tmp_path / "rows.parquet"),))
    return AppendSpec(uri=str(tmp_path / "t.lance"), identity=IDENTITY, source=source, **fields)


def _warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [item.getMessage() for item in caplog.records if item.levelno >= logging.WARNING]
    caplog.clear()
    return found


@pytest.mark.parametrize("committed", [False, True], ids=["staged", "committed"])
def test_a_retry_over_other_content_warns_and_names_both(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, committed: bool
) -> None:
    spec = _append(tmp_path)
    _write(tmp_path / "rows.parquet", 1, 2)
    first = api.run(spec, options={})
    if committed:
        api.commit(spec.uri, [first], options={}, max_attempts=None)
    assert api.run(spec, options={})["identity"] == IDENTITY
    assert _warnings(caplog) == [], "the same content"

    size = (tmp_path / "rows.parquet").stat().st_size
    _write(tmp_path / "rows.parquet", 3, 4, 5)
    for again in (lambda: api.run(spec, options={}), lambda: api.find_done(spec, options={})):
        assert again() is not None
        (said,) = _warnings(caplog)
        where = "was committed as version 1" if committed else "is staged"
        assert f"append {IDENTITY} {where} with the content of 1 file, {size:,} bytes, newest of " in said
        now = (tmp_path / "rows.parquet").stat().st_size
        assert f"now 1 file, {now:,} bytes" in said
        assert f"new or changed: {tmp_path}/rows.parquet ({now:,} bytes of " in said
        assert 'on_clear="again"' in said
    if not committed:
        api.commit(spec.uri, [first], options={}, max_attempts=None)
    assert lance.dataset(spec.uri).to_table()["id"].to_pylist() == [1, 2]
    record = look(resolve_store(spec.uri), IDENTITY).committed
    assert record is not None
    assert Asked.from_dict(record.asked).source.startswith(f"1 file, {size:,} bytes")


def test_reading_the_result_of_a_run_elsewhere_lists_nothing_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    spec = _append(tmp_path)
    _write(tmp_path / "rows.parquet", 1)
    api.run(spec, options={})
    _write(tmp_path / "rows.parquet", 1, 2)
    assert api.read_result(spec, options={})["num_rows"] == 1
    assert _warnings(caplog) == []


def test_a_source_that_is_gone_or_was_never_listed_is_not_compared(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    spec = _append(tmp_path)
    _write(tmp_path / "rows.parquet", 1)
    api.run(spec, options={})
    (tmp_path / "rows.parquet").unlink()
    assert api.run(spec, options={})["num_rows"] == 1
    assert _warnings(caplog) == []


def test_a_person_who_clears_the_task_is_not_warned_but_served(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    spec = _append(tmp_path, on_clear="again")
    _write(tmp_path / "rows.parquet", 1)
    api.commit(spec.uri, [api.run(spec, options={})], options={}, max_attempts=None)
    _write(tmp_path / "rows.parquet", 2)
    cleared = _append(tmp_path, on_clear="again", asked={"clear": "d/r/t after try 1"})
    api.commit(spec.uri, [api.run(cleared, options={})], options={}, max_attempts=None)
    assert _warnings(caplog) == []
    assert lance.dataset(spec.uri).to_table()["id"].to_pylist() == [1, 2]


def test_columns_that_go_on_with_rows_read_before_say_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"id": [1, 2]}), uri)
    source = SourceSpec(format="parquet", paths=(str(tmp_path / "more.parquet"),))
    spec = AddColumnsSpec(uri=uri, identity=IDENTITY, source=source, on="id")
    pq.write_table(pa.table({"id": [1, 2], "x": [10, 20]}), tmp_path / "more.parquet")
    with monkeypatch.context() as patch:
        patch.setattr("lance_core.jobs.plans.add_columns.group_fragments", _dies)
        with pytest.raises(KeyboardInterrupt):
            run_job(spec)
    assert [item.state for item in list_staged(resolve_store(uri))] == ["running"]
    pq.write_table(pa.table({"id": [1, 2], "x": [11, 21]}), tmp_path / "more.parquet")
    reference = api.run(spec, options={})
    (said,) = _warnings(caplog)
    assert "goes on with the rows that an earlier try read from 1 file" in said
    api.commit(uri, [reference], options={}, max_attempts=None)
    assert lance.dataset(uri).to_table()["x"].to_pylist() == [10, 20], "one reading, whole"


def _dies(*_: Any, **__: Any) -> Any:
    raise KeyboardInterrupt
