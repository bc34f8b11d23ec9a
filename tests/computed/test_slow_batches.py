"""kill -9 of a refresh of 1,000 slow batches: the next try repeats at most one batch for each worker."""

from __future__ import annotations

import multiprocessing
import random
import shutil
import signal
from collections import Counter
from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core.jobs.specs.identity import random_identity
from tests.computed import slow_batches
from tests.computed.slow_batches import BATCH_ROWS, FUNCTION, WORKERS

NUM_BATCHES = 1_000
NUM_ROWS = NUM_BATCHES * BATCH_ROWS


@pytest.fixture
def base(tmp_path: Path) -> str:
    uri = str(tmp_path / "base.lance")
    lance.write_dataset(pa.table({"id": range(NUM_ROWS)}), uri, max_rows_per_file=NUM_ROWS // 8)
    lance_core.declare_column(uri, "triple", function=FUNCTION, inputs=["id"], type=pa.int64(), batch_size=BATCH_ROWS)
    return uri


def _child(uri: str, identity: str, at: int, noted: Path) -> int | None:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.computed.slow_batches"])
    child = context.Process(target=slow_batches.refresh_and_die, args=(uri, identity, at, "", str(noted)))
    child.start()
    child.join(300)
    return child.exitcode


def _kill_until_done(base: str, uri: str, seed: int, kills: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed `kills` times, each time further on; what every one of them repeats is counted."""
    rng, noted, identity = random.Random(seed), Path(f"{uri}.batches"), random_identity()
    shutil.copytree(base, uri)
    noted.touch()
    for number in range(kills):
        before = Counter(noted.read_text().splitlines())
        at = rng.randrange(40, 4 * NUM_BATCHES // kills)  # a batch is four steps: its call, and three of the put
        assert _child(uri, identity, at, noted) == -signal.SIGKILL, (seed, number, at)
        _check_repeated(before, noted, (seed, number, at))
    before = Counter(noted.read_text().splitlines())
    monkeypatch.setenv(slow_batches.NOTED, str(noted))
    slow_batches.refresh(uri, identity)
    _check_repeated(before, noted, (seed, "end"))
    _check_whole(uri, noted, seed)


def _check_repeated(before: Counter[str], noted: Path, where: object) -> None:
    """Of the batches that were given before this try, it was given at most those that were under way."""
    after = Counter(noted.read_text().splitlines())
    repeated = sum(count - before[batch] for batch, count in after.items() if before[batch])
    assert repeated <= WORKERS, (where, repeated)
    assert all(count - before[batch] <= 1 for batch, count in after.items()), where


def _check_whole(uri: str, noted: Path, seed: int) -> None:
    table = lance.dataset(uri)
    table.validate()
    rows = table.to_table(columns=["id", "triple"]).sort_by("id")
    assert rows["id"].to_pylist() == [*range(NUM_ROWS)], seed
    assert rows["triple"].to_pylist() == [3 * number for number in range(NUM_ROWS)], seed
    given = {int(number) for line in noted.read_text().splitlines() for number in line.split()}
    assert given == {*range(NUM_ROWS)}
    before = noted.read_text()
    again = lance_core.refresh_columns(uri, functions=[FUNCTION], deep=True)
    assert (again.stale, again.columns["triple"].calls, noted.read_text()) == (0, 0, before)
    assert [*Path(uri, "_lance_core", "columns").rglob("results/*.values")] == [], "values that waited are published"
    lance_core.dataset(uri).cleanup_old_versions(timedelta(0), delete_unverified=True)
    held = {file.path for fragment in lance.dataset(uri).get_fragments() for file in fragment.data_files()}
    assert {path.name for path in Path(uri, "data").iterdir()} == held


def test_a_killed_refresh_repeats_at_most_a_batch_for_each_worker(
    base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _kill_until_done(base, str(tmp_path / "t.lance"), seed=1, kills=2, monkeypatch=monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 22))
def test_it_does_wherever_it_is_killed(base: str, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    _kill_until_done(base, str(tmp_path / "t.lance"), seed, kills=1 + seed % 6, monkeypatch=monkeypatch)
