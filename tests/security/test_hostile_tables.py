"""Tables by strangers: a sample of what `make hostile` does with 10,000 of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOM = Path(__file__).with_name("hostile_tables.py")


def _run(count: int, seed: int) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOM), "--count", str(count), "--seed", str(seed)],
        capture_output=True, text=True, timeout=60 + 30 * count, check=False, env=dict(os.environ),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(0, 600, 200))
def test_hostile_tables_end_in_an_answer_or_a_typed_error(seed: int) -> None:
    _run(200, seed)
