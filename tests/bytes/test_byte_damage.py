"""Damaged files by the thousand; see byte_damage.py for what is damaged and what is allowed.

`LANCE_FUZZ_CASES=1000000 pytest -m slow tests/bytes/test_byte_damage.py` runs as long as one likes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("byte_damage.py")
VERSIONS = ("0.1", "2.0", "2.1", "2.2", "2.3")
# Few threads' arenas and no reservations ahead of need: the limit on the address space shall mean memory.
ENVIRONMENT = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "2"}


def fuzz(version: str, progress: Path, *, num_cases: int, seed: int) -> None:
    command = [sys.executable, str(SCRIPT), "--version", version, "--cases", str(num_cases), "--seed", str(seed)]
    environment = {**os.environ, **ENVIRONMENT, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [*command, "--progress", str(progress)], capture_output=True, text=True, env=environment, check=False
    )
    reached = progress.read_text().strip() if progress.exists() else "nothing"
    assert done.returncode == 0, f"ended with {done.returncode} at case {reached}\n{done.stderr[-4000:]}"
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["cases"] == num_cases
    assert result["refused"] > num_cases // 3  # the damage hits
    assert not result["failures"], "\n".join(result["failures"][:30])


@pytest.mark.parametrize("version", VERSIONS)
def test_damaged_files(tmp_path: Path, version: str) -> None:
    fuzz(version, tmp_path / "progress", num_cases=5000, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_damaged_files_longer(tmp_path: Path, version: str) -> None:
    number = int(os.environ.get("LANCE_FUZZ_CASES", "50000"))
    fuzz(version, tmp_path / "progress", num_cases=number, seed=int(os.environ.get("LANCE_FUZZ_SEED", "2")))
