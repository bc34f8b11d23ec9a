"""What a folder of tests starts for the session ends with the folder's last test, on one process and on several."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONFTEST = """
import pytest
from pathlib import Path

LOG = Path(__file__).parents[2] / "log"

def say(text):
    with LOG.open("a") as log:
        log.write(text + "\\n")

@pytest.fixture(scope="session")
def machine():
    say("machine starts")
    yield
    say("machine ends")

@pytest.fixture(scope="session")
def server(machine):
    say("server starts")
    yield
    say("server ends")
"""
USES = "def test_one(server): pass\ndef test_two(server): pass\n"
AFTER = """
import time
from pathlib import Path

LOG = Path(__file__).parents[2] / "log"

def test_after():
    limit = time.monotonic() + 20  # on a process of its own it may be first
    while "machine ends" not in LOG.read_text() and time.monotonic() < limit:
        time.sleep(0.01)
    with LOG.open("a") as log:
        log.write("another folder\\n")
"""


@pytest.mark.parametrize("processes", ["0", "2"])
def test_servers_of_a_folder_end_with_its_last_test(tmp_path: Path, processes: str) -> None:
    tests = tmp_path / "tests"
    for name, text in {
        "ui/conftest.py": CONFTEST,
        "ui/test_a.py": USES,
        "ui/pages/test_b.py": USES,
        "wire/test_c.py": AFTER,
    }.items():
        (tests / name).parent.mkdir(parents=True, exist_ok=True)
        (tests / name).write_text(text)
    shutil.copy(ROOT / "tests" / "conftest.py", tests)
    (tmp_path / "log").write_text("")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    options = ["--import-mode=importlib", "-p", "no:cacheprovider", "-p", "xdist", "-n", processes]
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", *options, "tests"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    log = (tmp_path / "log").read_text().splitlines()
    assert log == ["machine starts", "server starts", "server ends", "machine ends", "another folder"]
