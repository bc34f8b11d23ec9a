"""`lance job`: any spec, as text, file or standard input."""

from __future__ import annotations

import json
from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from lance_core.cli.main import cli
from lance_core.errors import InputError


@pytest.fixture
def spec(tmp_path: Path) -> dict[str, object]:
    pq.write_table(pa.table({"id": [1, 2, 3]}), tmp_path / "rows.parquet")
    source = {"format": "parquet", "paths": [str(tmp_path / "rows.parquet")]}
    return {"kind": "append", "uri": str(tmp_path / "t.lance"), "identity": "one", "source": source}


def _run(*arguments: str, text: str | None = None) -> dict[str, object]:
    done = CliRunner().invoke(cli, ["job", *arguments, "--json"], input=text, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    found: dict[str, object] = json.loads(done.output)
    return found


def test_staged_then_committed_once(tmp_path: Path, spec: dict[str, object]) -> None:
    path = tmp_path / "job.json"
    path.write_text(json.dumps(spec))
    staged = _run(str(path))
    assert (staged["operation"], staged["num_rows"]) == ("append", 3)
    assert not (tmp_path / "t.lance" / "_versions").exists()
    assert _run("-", "--commit", text=json.dumps(spec))["identities"] == {"one": "committed"}
    assert _run(json.dumps(spec), "--commit")["identities"] == {"one": "already_committed"}
    assert lance.dataset(str(tmp_path / "t.lance")).count_rows() == 3


def test_maintenance_and_mistakes(tmp_path: Path, spec: dict[str, object]) -> None:
    _run(json.dumps(spec), "--commit")
    tag = {"kind": "tag", "uri": spec["uri"], "name": "gold"}
    assert _run(json.dumps(tag), "--commit")["version"] == 1
    with pytest.raises(InputError, match="neither JSON nor a file"):
        CliRunner().invoke(cli, ["job", "nope.json"], catch_exceptions=False)


def test_commit_publishes_all_that_waits_or_what_is_named(tmp_path: Path, spec: dict[str, object]) -> None:
    for identity in ("one", "two", "three"):
        _run(json.dumps({**spec, "identity": identity}))
    runner = CliRunner()
    named = runner.invoke(cli, ["commit", str(spec["uri"]), "two", "--json"], catch_exceptions=False)
    assert json.loads(named.output)["identities"] == {"two": "committed"}
    rest = runner.invoke(cli, ["commit", str(spec["uri"]), "--json"], catch_exceptions=False)
    assert json.loads(rest.output)["identities"] == {"one": "committed", "three": "committed"}
    assert lance.dataset(str(spec["uri"])).count_rows() == 9
