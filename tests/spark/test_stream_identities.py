"""A batch that a release before this one wrote, under the uri as it was spelled, is asked for as well. Without Spark."""

from __future__ import annotations

from typing import Any

import pytest

from lance_core.jobs.specs.identity import former_identities
from lance_core.spark import streaming
from lance_core.spark.options import parse_options
from lance_core.spark.source_write import spec_of


class _Writer:
    def __init__(self) -> None:
        self.options: dict[str, str] = {}
        self.saved = ""

    def format(self, name: str) -> _Writer:
        return self

    def mode(self, name: str) -> _Writer:
        return self

    def option(self, name: str, value: str) -> _Writer:
        self.options[name] = value
        return self

    def save(self, uri: str) -> None:
        self.saved = uri


class _Frame:
    sparkSession = None

    def __init__(self) -> None:
        self.write = _Writer()


@pytest.mark.parametrize(("uri", "has_former"), [("s3a://b/t", True), ("/t", False)])
def test_a_batch_names_its_former_identities(uri: str, has_former: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "register", lambda session: None)
    frame: Any = _Frame()
    streaming.batches_into(uri, query="q")(frame, 7)
    spec = spec_of(parse_options({**frame.write.options, "uri": frame.write.saved}), overwrite=False)
    assert spec.identity == streaming.batch_identity(uri, "q", 7)
    expected = former_identities(uri, dag_id="spark-streaming", run_id="q", task_id="7")
    assert spec.former_identities == expected
    assert bool(expected) is has_former
