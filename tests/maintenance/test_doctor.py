"""Sick tables are named rightly, each by its own sickness; healthy ones are not accused."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

import lance_core
from lance_core.cli.main import cli
from lance_core.io.resolve import resolve_store
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.edits import DeleteSpec
from lance_core.jobs.specs.spec import AppendSpec, CommitSpec, SourceSpec
from lance_core.maintenance.doctor import diagnose
from lance_core.maintenance.findings import Finding
from lance_core.maintenance.policy import ServiceLevels
from lance_core.publish.decisions import CommittedWork, say_committed

LEVELS = ServiceLevels(max_versions=20, target_rows_per_fragment=10_000)
DAY = 86400.0


def rows(count: int, first: int = 0) -> pa.Table:
    return pa.table({"id": range(first, first + count), "text": [f"row {number}" for number in range(count)]})


def many_versions(uri: str) -> None:
    lance_core.write_dataset(rows(100), uri)
    for number in range(25):
        lance_core.dataset(uri).update_config({"k": str(number)})


def small_fragments(uri: str) -> None:
    lance_core.write_dataset(rows(40), uri, max_rows_per_file=1)


def deleted_rows(uri: str) -> None:
    lance_core.write_dataset(rows(20_000), uri, max_rows_per_file=10_000).delete("id % 3 = 0")


def stale_index(uri: str) -> None:
    lance_core.write_dataset(rows(200), uri).create_scalar_index("id", "BTREE")
    lance_core.write_dataset(rows(900, 200), uri, mode="append")


def stale_column(uri: str) -> None:
    lance_core.write_dataset(rows(200), uri)
    lance_core.declare_column(uri, "size", sql="length(text)")
    lance_core.refresh_columns(uri)
    lance_core.write_dataset(rows(900, 200), uri, mode="append")


def many_segments(uri: str) -> None:
    table = lance_core.write_dataset(rows(10), uri)
    table.create_scalar_index("id", "BTREE")
    for number in range(15):
        lance_core.write_dataset(rows(10, 10 + 10 * number), uri, mode="append")
        lance_core.dataset(uri).optimize.optimize_indices(num_indices_to_merge=0)


def unsealed_index(uri: str) -> None:
    lance.write_dataset(rows(100), uri).create_scalar_index("id", "BTREE")


def _stage(uri: str) -> None:
    source = SourceSpec(callable="tests.maintenance.test_doctor:rows", kwargs={"count": 10, "first": 5000})
    run_job(AppendSpec(uri=uri, source=source, identity="0d1245ae-4d5c-4323-b67b-a4f315cde354"))


def forgotten_work(uri: str) -> None:
    lance_core.write_dataset(rows(100), uri)
    _stage(uri)


def short_retention(uri: str) -> None:
    lance_core.write_dataset(rows(100), uri)
    lance_core.dataset(uri).update_config({"lance.auto_cleanup.interval": "1000", "lance.auto_cleanup.older_than": "60s"})
    _stage(uri)


def many_column_files(uri: str) -> None:
    table = lance_core.write_dataset(rows(100), uri)
    for number in range(9):
        table.add_columns({f"c{number}": f"id + {number}"})


def old_names(uri: str) -> None:
    lance.write_dataset(rows(50), uri, enable_v2_manifest_paths=False)
    for number in range(11):
        lance.write_dataset(rows(50, 50 * number), uri, mode="append")


def legacy_files(uri: str) -> None:
    lance.write_dataset(rows(100), uri, data_storage_version="legacy")


def damaged(uri: str) -> None:
    lance_core.write_dataset(rows(1000), uri)
    (file,) = Path(uri, "data").glob("*.lance")
    data = bytearray(file.read_bytes())
    data[-40:-8] = b"\xff" * 32
    file.write_bytes(bytes(data))


def stranded(uri: str) -> None:
    lance_core.write_dataset(rows(100), uri)
    left = Path(uri, "data", f"{'01' * 12}{'ab' * 13}.lance")
    left.write_bytes(b"x" * 5000)
    long_ago = time.time() - 30 * DAY
    os.utime(left, (long_ago, long_ago))


def conflicts(uri: str) -> None:
    lance_core.write_dataset(rows(100), uri)
    for number in range(12):
        stale = lance_core.dataset(uri)
        lance_core.write_dataset(rows(5000, 1000 * number), uri, mode="append")
        stale.delete(f"id = {number}")


def damaged_record(uri: str) -> None:
    forgotten_work(uri)
    (record,) = Path(uri, "_lance_core", "decisions").glob("*.000001.json")
    record.unlink()
    record.write_bytes(b"{")


def void_record(uri: str) -> None:
    lance_core.write_dataset(rows(10), uri)
    store, identity = resolve_store(uri), "00000000-0000-5000-8000-00000000f0f0"
    work = CommittedWork(identity, 70, attempt="00aa00aa00aa00aa", transaction="x")
    say_committed(store, work, by="a former table")


SICK: dict[str, tuple[Callable[[str], None], float]] = {
    "many-versions": (many_versions, 30 * DAY),
    "small-fragments": (small_fragments, 0),
    "deleted-rows": (deleted_rows, 0),
    "stale-index": (stale_index, 0),
    "stale-column": (stale_column, 0),
    "many-index-segments": (many_segments, 0),
    "unsealed-index": (unsealed_index, 0),
    "forgotten-staged-work": (forgotten_work, 2 * DAY),
    "damaged-records": (damaged_record, 0),
    "void-ledger-records": (void_record, 0),
    "short-retention": (short_retention, 600),
    "many-column-files": (many_column_files, 0),
    "old-manifest-names": (old_names, 0),
    "legacy-files": (legacy_files, 0),
    "damaged": (damaged, 0),
    "stranded-files": (stranded, 0),
    "hot-conflicts": (conflicts, 0),
}
BESIDE = {"hot-conflicts": {"small-fragments", "many-versions"}, "many-index-segments": {"many-versions"}}
"""What a table of a kind may have beside its own sickness."""


@pytest.mark.parametrize("code", SICK)
def test_a_sick_table_is_named_rightly(code: str, tmp_path: Path) -> None:
    make, later = SICK[code]
    uri = str(tmp_path / "t.lance")
    make(uri)
    found = diagnose(uri, deep=True, levels=LEVELS, now=time.time() + later)
    assert code in {item.code for item in found}
    assert {item.code for item in found} - {code} <= BESIDE.get(code, set())
    for item in found:
        assert item.size > 0 and item.cost and item.cure and item.unit


def test_forgotten_work_names_the_version_that_it_keeps(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    forgotten_work(uri)
    lance_core.write_dataset(rows(10), uri, mode="append")
    (found,) = (item for item in diagnose(uri, now=time.time() + 3 * DAY) if item.code == "forgotten-staged-work")
    assert "cleanup keeps version 1 and every later one" in found.cost
    assert "--abandon-after" in found.cure
    assert found.details["oldest_read_version"] == 1


def _with_index(uri: str) -> None:
    lance_core.write_dataset(rows(500), uri).create_scalar_index("id", "BTREE")


def _with_vectors(uri: str) -> None:
    vectors = pa.FixedSizeListArray.from_arrays(np.random.default_rng(0).random(2048, dtype=np.float32), 8)
    lance_core.write_dataset(pa.table({"vector": vectors}), uri)


def _with_branch(uri: str) -> None:
    table = lance_core.write_dataset(rows(100), uri)
    branch = table.create_branch("exp")
    branch.insert(rows(100, 100))
    table.tags.create("good", 1)


HEALTHY: tuple[Callable[[str], None], ...] = (
    lambda uri: lance_core.write_dataset(rows(100), uri) and None,
    lambda uri: lance_core.write_dataset(rows(0), uri) and None,
    lambda uri: lance_core.write_dataset(rows(60_000), uri, max_rows_per_file=10_000) and None,
    lambda uri: lance.write_dataset(rows(1000), uri) and None,
    lambda uri: lance_core.write_dataset(rows(1000), uri, enable_stable_row_ids=True).delete("id < 20") and None,
    lambda uri: lance_core.write_dataset(rows(100), uri, data_storage_version="2.2").add_columns({"x": "id * 2"}),
    _with_index,
    _with_vectors,
    _with_branch,
    lambda uri: (
        [lance_core.write_dataset(rows(500), uri, mode="append" if turn else "create") for turn in range(5)] and None
    ),
)


@pytest.mark.parametrize("make", HEALTHY, ids=range(len(HEALTHY)))
def test_a_healthy_table_is_not_accused(make: Callable[[str], None], tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    make(uri)
    assert diagnose(uri, deep=True, levels=LEVELS, now=time.time() + 30 * DAY) == []


def test_the_command_prints_sizes_and_cures_and_exits_with_1_for_errors(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    small_fragments(uri)
    shown = CliRunner().invoke(cli, ["doctor", uri])
    assert shown.exit_code == 0 and "lance compact" in shown.output and "40 fragments" in shown.output
    broken = str(tmp_path / "b.lance")
    damaged(broken)
    assert CliRunner().invoke(cli, ["doctor", broken, "--deep"]).exit_code == 1


@pytest.mark.parametrize("code", ["stale-index", "many-index-segments"])
def test_the_cure_of_an_index_is_a_command_that_mends_it(code: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    SICK[code][0](uri)
    (found,) = [item for item in diagnose(uri, levels=LEVELS) if item.code == code]
    program, *arguments = shlex.split(found.cure)
    assert program == "lance"
    assert CliRunner().invoke(cli, arguments).exit_code == 0
    assert code not in {item.code for item in diagnose(uri, levels=LEVELS)}


def test_one_of_many_is_said_so() -> None:
    said = {"code": "c", "severity": "note", "title": "t", "cost": "", "cure": ""}
    for size, unit, extent in (
        (1, "attempts", "1 attempt"),
        (2, "attempts", "2 attempts"),
        (1, "percent of all rows", None),
    ):
        assert Finding(**said, size=size, unit=unit).extent == (extent or f"{size} {unit}")  # type: ignore[arg-type]


def test_conflicts_name_who_met_whom(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    conflicts(uri)
    (finding,) = [item for item in diagnose(uri, levels=LEVELS) if item.code == "hot-conflicts"]
    (pair,) = finding.details["between"]
    assert (pair["operation"], pair["other_operation"], pair["count"]) == ("Delete", "Append", 12)
    assert pair["writer"] is None and pair["other_writer"] is None
    shown = CliRunner().invoke(cli, ["doctor", uri]).output
    assert "12 x Delete by an unnamed writer met Append by an unnamed writer" in shown


def test_conflicting_tasks_are_named(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance_core.write_dataset(rows(1000), uri)
    for number in range(12):
        asked = {"dag_id": "shop", "run_id": f"r{number}", "task_id": "forget"}
        staged = run_job(DeleteSpec(uri=uri, predicate=f"id = {number}", identity=f"work-{number}", asked=asked))
        lance_core.write_dataset(rows(5000), uri, mode="append")
        run_job(CommitSpec.of([staged], uri=uri))
    (finding,) = [item for item in diagnose(uri, levels=LEVELS) if item.code == "hot-conflicts"]
    (pair,) = finding.details["between"]
    assert pair["writer"] == {"dag_id": "shop", "task_id": "forget", "run_id": None, "map_index": -1}
    assert "12 x Delete by shop.forget met Append by an unnamed writer" in CliRunner().invoke(cli, ["doctor", uri]).output
