"""Errors cross processes as the class they were, and keep whether a retry helps."""

from __future__ import annotations

import json

import pytest

from lance_core.errors import CommitStateUnknownError, LanceError, RetryableConflictError, SchemaMismatchError, StoreError
from lance_core.io.resolve import resolve_store
from lance_core.jobs.runtime.error_transport import ForeignError, exit_status, failure_from_plain, failure_to_plain
from lance_core.jobs.runtime.failure_record import clear_failure, read_failure, record_failure
from lance_core.jobs.specs.secret import Secret
from lance_core.jobs.specs.spec import AppendSpec, SourceSpec


@pytest.mark.parametrize(
    ("error", "kind", "status"),
    [
        (SchemaMismatchError("column 'x'", uri="/t"), SchemaMismatchError, 65),
        (RetryableConflictError("moved", version=3, other_version=4, operation="Delete"), RetryableConflictError, 75),
        (StoreError("throttled"), StoreError, 75),
        (CommitStateUnknownError("who knows"), CommitStateUnknownError, 65),
        (ValueError("a bug, or a user's function"), ForeignError, 70),
    ],
)
def test_round_trip(error: Exception, kind: type[LanceError], status: int) -> None:
    again = failure_from_plain(json.loads(json.dumps(failure_to_plain(error))))
    assert type(again) is kind
    assert str(error) in str(again)
    assert again.retryable == (status != 65)
    assert exit_status(error) == status
    for fact in ("uri", "version", "other_version", "operation"):
        assert getattr(again, fact) == getattr(error, fact, None)


def test_a_record_is_left_and_forgotten(tmp_path) -> None:
    uri = str(tmp_path / "t.lance")
    spec = AppendSpec(uri=uri, identity="one", source=SourceSpec(sql="select 1"))
    assert record_failure(spec, SchemaMismatchError("column 'x'"))
    store = resolve_store(uri)
    assert isinstance(read_failure(store, "one"), SchemaMismatchError)
    assert read_failure(store, "two") is None
    clear_failure(store, "one")
    assert read_failure(store, "one") is None
    assert not record_failure(spec.with_identity(""), ValueError())
    bad = AppendSpec(
        uri=uri, identity="one", source=SourceSpec(sql="x"), storage_options={"region": Secret(env="NOT_SET_HERE")}
    )
    assert not record_failure(bad, ValueError())
