"""A share of the sweep of truth, and the faults that it must find: see `truth.py`, which runs any number of histories."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lance_core.computed import fragments, judged_rows, refresh, signatures
from lance_core.dataset.maintain import compact
from tests.computed import truth


@pytest.mark.parametrize("seed", range(4))
def test_histories_by_this_library(seed: int, tmp_path: Path) -> None:
    truth.run(seed, ("ours",), str(tmp_path), steps=18)


@pytest.mark.parametrize("seed", range(1000, 1004))
def test_histories_with_the_official_library(seed: int, tmp_path: Path) -> None:
    truth.run(seed, ("ours", "pylance"), str(tmp_path), steps=18)


@pytest.mark.parametrize("seed", range(2000, 2003))
def test_histories_with_lancedb(seed: int, tmp_path: Path) -> None:
    pytest.importorskip("lancedb")
    truth.run(seed, ("ours", "pylance", "lancedb"), str(tmp_path), steps=18)


def _compaction_drops_evidence(patch: pytest.MonkeyPatch) -> None:
    plain = compact.scan

    def scan(*arguments: Any, **options: Any) -> Iterator[pa.RecordBatch]:
        for batch in plain(*arguments, **options):
            columns = [
                pa.nulls(batch.num_rows, field.type) if field.name.startswith("_evidence") else batch.column(field.name)
                for field in batch.schema
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=batch.schema)

    patch.setattr(compact, "scan", scan)


def _null_counts_as_unfilled(patch: pytest.MonkeyPatch) -> None:
    plain = judged_rows.judge

    def judge(evidence: Any, digests: Any, values: Any) -> Any:
        states = plain(evidence, digests, values)
        missing = states.fresh & values.is_null().to_numpy(zero_copy_only=False)
        return replace(states, fresh=states.fresh & ~missing, new=states.new | missing)

    patch.setattr(judged_rows, "judge", judge)


def _fragments_are_known_by_their_ids(patch: pytest.MonkeyPatch) -> None:
    def signature(fragment: Any, field_ids: Any, identity: bytes, *, with_deletions: bool) -> bytes:
        return identity[:8] + int(fragment.id).to_bytes(8, "little")

    for module in (signatures, refresh):
        patch.setattr(module, "signature", signature)


def _values_are_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    plain = judged_rows.judge
    patch.setattr(judged_rows, "judge", lambda evidence, digests, values: plain(evidence, digests, None))


def _inputs_are_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    plain = judged_rows.judge

    def judge(evidence: Any, digests: Any, values: Any) -> Any:
        states = plain(evidence, digests, values)
        return replace(states, fresh=states.fresh | states.changed)

    patch.setattr(judged_rows, "judge", judge)


def _all_inputs_have_one_key(patch: pytest.MonkeyPatch) -> None:
    plain = fragments.input_keys
    patch.setattr(fragments, "input_keys", lambda *given: plain(*given) * 0)


FAULTS: tuple[tuple[Callable[[pytest.MonkeyPatch], None], tuple[str, ...], int], ...] = (
    (_compaction_drops_evidence, ("ours",), 3004),
    (_null_counts_as_unfilled, ("ours",), 3002),
    (_fragments_are_known_by_their_ids, ("ours",), 3000),
    (_values_are_not_looked_at, ("ours", "pylance"), 3000),
    (_inputs_are_not_looked_at, ("ours",), 3000),
    (_all_inputs_have_one_key, ("ours",), 3000),
)
"""A fault, who writes, and the seed that finds it first; the next ones are tried as well."""


@pytest.mark.parametrize(("fault", "actors", "first"), FAULTS, ids=[fault.__name__ for fault, _, _ in FAULTS])
def test_the_sweep_finds_a_planted_fault(
    fault: Any, actors: tuple[str, ...], first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault(monkeypatch)
    for seed in range(first, first + 20):
        try:
            truth.run(seed, actors, str(tmp_path), steps=18)
        except AssertionError as error:
            told = str(error)
            assert "stale" in told.splitlines()[0] or "Row(" in told.splitlines()[0], told
            return
    pytest.fail("no history found it")
