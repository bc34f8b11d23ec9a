"""Arguments of a commit, and of an update of another storage version."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import InputError
from lance_core.table.operations import Append, Overwrite


@pytest.fixture
def ds(tmp_path: Path) -> lance_core.LanceDataset:
    made = lance_core.write_dataset(pa.table({"a": [1]}), tmp_path / "t")
    made.insert(pa.table({"a": [2]}))
    return made


def test_arguments_of_a_commit(ds: lance_core.LanceDataset, tmp_path: Path) -> None:
    fragments = lance_core.fragment.write_fragments(pa.table({"a": [5]}), ds)
    with pytest.raises(InputError, match="commit_lock"):
        lance_core.LanceDataset.commit(ds, Append(tuple(fragments)), 2, object())
    done = lance_core.LanceDataset.commit(ds, Append(tuple(fragments)), 2, commit_timeout=dt.timedelta(seconds=9))
    assert done.count_rows() == 3
    born = lance_core.LanceDataset.commit(tmp_path / "new", Overwrite((), ds.lance_schema), enable_v2_manifest_paths=False)
    assert [path.name for path in Path(born.uri, "_versions").glob("*.manifest")] == ["1.manifest"]
    with pytest.raises(TypeError):
        lance_core.LanceDataset.commit(ds, Append(()), 2, commit_tiemout=3)


def test_an_update_in_the_legacy_version_is_refused(ds: lance_core.LanceDataset) -> None:
    with pytest.raises(InputError, match="version"):
        ds.update({"a": "a + 1"}, data_storage_version="legacy")
    assert ds.update({"a": "a + 1"}, data_storage_version="2.2")["num_rows_updated"] == 2
