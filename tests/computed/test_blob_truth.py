"""A share of the sweep of truth for blobs, and the faults that it must find: see `blob_truth.py`, which runs any number."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lance_core.computed import call_sizes, calls, judged_rows, moves
from tests.computed import blob_truth


@pytest.mark.parametrize("seed", range(3))
def test_histories_by_this_library(seed: int, tmp_path: Path) -> None:
    blob_truth.run(seed, ("ours",), str(tmp_path), steps=16)


@pytest.mark.parametrize("seed", range(1000, 1003))
def test_histories_with_the_official_library(seed: int, tmp_path: Path) -> None:
    blob_truth.run(seed, ("ours", "pylance"), str(tmp_path), steps=16)


def _everything_is_proven(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(moves.MovedRows, "of", lambda self, fragment: np.ones(fragment.physical_rows, np.bool_))


def _nothing_is_proven(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(moves.MovedRows, "of", lambda self, fragment: np.zeros(fragment.physical_rows, np.bool_))


def _unread_blobs_count_as_nulls(patch: pytest.MonkeyPatch) -> None:
    plain = judged_rows.RowJudge._judged

    def judged(self: Any, batch: Any, first: int, loaded: Any, is_read: Any, wanted: Any) -> Any:
        return plain(self, batch, first, loaded, is_read, wanted & is_read)

    patch.setattr(judged_rows.RowJudge, "_judged", judged)


def _bytes_are_not_counted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(calls, "bytes_of_rows", lambda batch: call_sizes.bytes_of_rows(batch) * 0)


FAULTS: tuple[tuple[Callable[[pytest.MonkeyPatch], None], tuple[str, ...], int], ...] = (
    (_everything_is_proven, ("ours", "pylance"), 3000),
    (_nothing_is_proven, ("ours",), 3000),
    (_unread_blobs_count_as_nulls, ("ours",), 3000),
    (_bytes_are_not_counted, ("ours",), 3000),
)
"""A fault, who writes, and the seed that finds it first; the next ones are tried as well."""


@pytest.mark.parametrize(("fault", "actors", "first"), FAULTS, ids=[fault.__name__ for fault, _, _ in FAULTS])
def test_the_sweep_finds_a_planted_fault(
    fault: Any, actors: tuple[str, ...], first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault(monkeypatch)
    for seed in range(first, first + 20):
        try:
            blob_truth.run(seed, actors, str(tmp_path), steps=16)
        except AssertionError:
            return
    pytest.fail("no history found it")
