"""The rows that a function returned are read only from a folder that nobody but this user can have filled."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from airflow_lance.execution import returned_source
from airflow_lance.execution.returned_rows import write_rows
from airflow_lance.execution.returned_source import ROWS, private_folder, read_returned
from lance_core.errors import InputError

NAME = "d-r-t--1"
DIGEST = returned_source.returned_source(name=NAME, function=len, arguments=())["kwargs"]["name"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with private_folder(NAME) as made:
        write_rows(pa.table({"id": [1, 2]}), made / ROWS, what="f")
        yield made


def _read() -> Any:
    return read_returned(name=DIGEST, function="f", arguments="")


def test_rows_of_this_user_are_read(folder: Path) -> None:
    assert _read().to_table()["id"].to_pylist() == [1, 2]


def test_rows_of_another_user_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    with pytest.raises(InputError, match="another user's"):
        _read()


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777])
def test_a_folder_that_others_can_fill_is_refused(folder: Path, mode: int) -> None:
    folder.chmod(mode)
    with pytest.raises(InputError, match="another user's"):
        _read()


def test_a_link_is_refused(folder: Path, tmp_path: Path) -> None:
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="another user's"):
        _read()
    with pytest.raises(InputError, match="Remove it"), private_folder(NAME):
        pass
    folder.unlink()


def test_no_rows_are_still_told_apart(folder: Path) -> None:
    (folder / ROWS).unlink()
    with pytest.raises(InputError, match="only kept on the worker"):
        _read()
