"""Tables by strangers: a sample of what `make hostile` does with 10,000 of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOM = Path(__file__).with_name("hostile_tables.py")


def _run(count: int, seed: int, *flags: str, **environment: str) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOM), "--count", str(count), "--seed", str(seed), *flags],
        capture_output=True, text=True, timeout=300 + 30 * count, check=False, env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_a_share_of_hostile_tables() -> None:
    _run(20, 50_000)


def test_a_share_of_mutated_files_under_bounds_checks() -> None:
    _run(60, 50_000, "--files", LANCE_KERNELS_CHECKED="1")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(0, 600, 200))
def test_hostile_tables_end_in_an_answer_or_a_typed_error(seed: int) -> None:
    _run(200, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(0, 6000, 2000))
def test_mutated_files_are_read_within_bounds(seed: int) -> None:
    _run(2000, seed, "--files", LANCE_KERNELS_CHECKED="1")
