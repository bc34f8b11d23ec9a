"""Tables on `webhdfs://`, on a real name node and data node: the store contract, commits through a database, and YARN.

There is no conditional put there, so a commit without an external manifest store is refused.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_core
from airflow_lance.compat import AirflowFailException
from lance_core.errors import PreconditionError, StoreRefusedError
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store
from tests.cluster.conftest import CONNECTIONS
from tests.cluster.hadoop import MiniHadoop
from tests.cluster.yarn_support import append, judge, same_rows
from tests.io.store_contract import StoreContract

MonthOnHdfs = Callable[[int], tuple[str, pa.Table]]
ROWS = pa.table({"id": [1, 2, 3]})


@pytest.fixture
def uri(hadoop: MiniHadoop) -> str:
    """Of a table that nobody has written."""
    return f"webhdfs://root@{hadoop.web}/lake/{uuid.uuid4().hex}/t.lance"


@pytest.fixture
def options(tmp_path: Path) -> dict[str, str]:
    """Of a manifest store."""
    return {"manifest_store_url": f"sqlite:///{tmp_path / 'manifests.db'}"}


def copied(uri: str, folder: Path) -> Any:
    """A copy of the table on the disk, where the official library can open it: it has no HDFS."""
    store = resolve_store(uri)
    for entry in store.list(""):
        target = folder / "copy.lance" / entry.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(bytes(store.get(entry.path)))
    return judge(str(folder / "copy.lance"))


class TestWebHdfs(StoreContract):
    @pytest.fixture
    def store(self, uri: str, options: dict[str, str]) -> Store:
        return resolve_store(uri, options)


def test_a_commit_without_a_manifest_store_is_refused(uri: str) -> None:
    with pytest.raises(PreconditionError, match="external manifest store") as caught:
        lance_core.write_dataset(ROWS, uri)
    assert uri in str(caught.value)
    store = resolve_store(uri)
    assert [*store.list(""), *store.list_unfinished("")] == [], "what was staged for it is gone"


def test_verbs_with_a_manifest_store(uri: str, options: dict[str, str], tmp_path: Path) -> None:
    lance_core.write_dataset(ROWS, uri, storage_options=options)
    lance_core.write_dataset(ROWS, uri, mode="append", storage_options=options)
    dataset = lance_core.dataset(uri, storage_options=options)
    dataset.delete("id = 2")
    dataset.update({"id": "id + 10"}, where="id = 3")
    dataset.optimize.compact_files()
    assert sorted(lance_core.dataset(uri).to_table()["id"].to_pylist()) == [1, 1, 13, 13], "read without it"
    table = copied(uri, tmp_path)
    assert same_rows(table, pa.table({"id": [1, 1, 13, 13]}))
    assert table.version == lance_core.dataset(uri).version
    with pytest.raises(PreconditionError, match="external manifest store"):
        lance_core.write_dataset(ROWS, uri, mode="append")


def test_a_cleanup_leaves_files_that_are_being_staged(uri: str, options: dict[str, str]) -> None:
    """It keeps what is young and in no version, so the time of change must be told."""
    lance_core.write_dataset(ROWS, uri, storage_options=options)
    resolve_store(uri).put("data/young.lance", b"x")
    lance_core.dataset(uri, storage_options=options).cleanup_old_versions()
    assert bytes(resolve_store(uri).get("data/young.lance")) == b"x"


def test_who_may_not_write_is_refused_at_once(hadoop: MiniHadoop) -> None:
    """A quota of names, which the name node enforces also where permissions are off."""
    folder = f"/full/{uuid.uuid4().hex}"
    hadoop.put(f"{folder}/a", b"1")
    hadoop.limit(folder, names=2)
    with pytest.raises(StoreRefusedError, match="QuotaExceeded"):
        resolve_store(f"webhdfs://root@{hadoop.web}{folder}").put("b", b"2")


@pytest.mark.parametrize("mode", [*CONNECTIONS.values()])
def test_appends_on_yarn(
    worker: None,
    hadoop: MiniHadoop,
    month_on_hdfs: MonthOnHdfs,
    uri: str,
    options: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
) -> None:
    path, rows = month_on_hdfs(1)
    source = {"format": "parquet", "paths": [path]}
    monkeypatch.setenv("AIRFLOW_CONN_LANCE_HDFS", json.dumps({"conn_type": "lance", "extra": {"storage_options": options}}))
    append(uri, source, mode=mode, lance_conn_id="lance_hdfs")
    assert same_rows(copied(uri, tmp_path), rows)
    before = hadoop.applications()
    with pytest.raises(AirflowFailException, match="external manifest store"):
        append(uri, source, mode=mode, run_id="other")
    assert hadoop.applications() == before, "nothing is submitted"
