"""Catalogs of tables in an object store: a directory in a bucket beside the official library, and vended credentials."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import boto3
import lance
import lance_namespace as official
import pytest
from lance.namespace import DirectoryNamespace as OfficialDirectory

import lance_core
from lance_core import namespace as ns
from tests.io.moto_server import moto_server
from tests.namespace.support import ROWS, Answer, server

KEYS = {"aws_access_key_id": "AKIDVENDED", "aws_secret_access_key": "vended-secret"}


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """The storage options of an empty bucket `lake`; the environment has no credentials."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    with moto_server() as endpoint:
        boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", **KEYS).create_bucket(Bucket="lake")
        yield {**KEYS, "aws_endpoint": endpoint, "aws_region": "us-east-1", "allow_http": "true"}


def test_a_directory_in_a_bucket_is_shared_with_the_official_library(bucket: dict[str, str]) -> None:
    stored = {f"storage.{name}": text for name, text in bucket.items()}
    ours, theirs = (
        ns.connect("dir", {"root": "s3://lake/root", **stored}),
        OfficialDirectory(root="s3://lake/root", **stored),
    )
    ours.create_namespace(ns.CreateNamespaceRequest(id=["sales"]))
    for table_id in (["orders"], ["sales", "orders"]):
        lance_core.write_dataset(ROWS, namespace_client=ours, table_id=table_id, storage_options=bucket)
        assert lance.dataset(namespace_client=theirs, table_id=table_id, storage_options=bucket).count_rows() == 2
    more: dict[str, Any] = {"table_id": ["sales", "theirs"], "storage_options": bucket}
    lance.write_dataset(ROWS, namespace_client=theirs, mode="create", **more)
    assert lance_core.dataset(namespace_client=ours, **more).count_rows() == 2
    ours.drop_table(ns.DropTableRequest(id=["sales", "orders"]))
    assert theirs.list_tables(official.ListTablesRequest(id=["sales"])).tables == ["theirs"]
    assert theirs.list_tables(official.ListTablesRequest(id=[])).tables == ["orders"]


def test_a_table_is_written_and_read_with_vended_credentials_alone(bucket: dict[str, str]) -> None:
    def answer(method: str, path: str, *_: Any) -> Answer:
        vended = {**bucket, "expires_at_millis": str(int(time.time() * 1000) + 60_000)}
        return 200, {"location": "s3://lake/vended/t", "storage_options": vended}

    with server(answer) as uri:
        named: dict[str, Any] = {"namespace_client": ns.RestNamespace(uri=uri), "table_id": ["t"]}
        made = lance_core.write_dataset(ROWS, **named)
        assert lance_core.dataset(**named).count_rows() == 2
        assert KEYS["aws_secret_access_key"] not in repr(made) + repr(ns.find_table(named["namespace_client"], ["t"]))
