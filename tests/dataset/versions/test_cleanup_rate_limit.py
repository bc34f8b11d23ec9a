"""A cleanup removes no more files a second than it may."""

from __future__ import annotations

import datetime as dt
import time
from pathlib import Path

import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import InputError


@pytest.fixture
def ds(tmp_path: Path) -> lance_core.LanceDataset:
    made = lance_core.write_dataset(pa.table({"a": [1]}), tmp_path / "t")
    made.insert(pa.table({"a": [2]}))
    return made


def test_a_cleanup_takes_its_time(ds: lance_core.LanceDataset) -> None:
    for _ in range(2):
        ds.insert(pa.table({"a": [3]}), mode="overwrite")
    started = time.monotonic()
    found = ds.cleanup_old_versions(dt.timedelta(0), delete_rate_limit=4, delete_concurrency=2)
    assert found.old_versions == 3
    assert time.monotonic() - started > 0.9  # six files, four a second
    with pytest.raises(InputError):
        ds.cleanup_old_versions(dt.timedelta(0), delete_rate_limit=0)
    assert ds.explain_cleanup_old_versions(dt.timedelta(0), include_files=True, max_files=3).files == ()
