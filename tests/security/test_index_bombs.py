"""Claims of sizes in indices: a share of what `index_bombs.py` tries one at a time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import hostile_indices  # noqa: E402
import index_bombs  # noqa: E402


def test_the_sweep_is_as_long_as_there_are_claims(tmp_path: Path) -> None:
    hostile_indices.build(tmp_path)
    found = index_bombs.bombs(tmp_path)
    assert len({str(bomb) for bomb in found}) == len(found) <= index_bombs.COUNT
    assert {bomb.kind for bomb in found} == {*hostile_indices.KINDS}


@pytest.mark.slow
@pytest.mark.parametrize(("first", "count"), [(0, 30), (0, 2_000)])
def test_claims_end_in_an_answer_or_a_typed_error(first: int, count: int) -> None:
    command = [sys.executable, str(HERE / "index_bombs.py"), "--seed", str(first), "--count", str(count)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600 + 30 * count, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
