"""The `lance` command on real tables: what it prints, its JSON, its exit codes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

import lance_core
from lance_core.cli.main import cli
from lance_core.errors import LanceError


def table(rows: int, *, first: int = 0) -> pa.Table:
    ids = list(range(first, first + rows))
    return pa.table({"id": pa.array(ids, pa.int64()), "name": [f"n{i}" for i in ids], "blob": [b"\xff"] * rows})


@pytest.fixture
def uri(tmp_path: Path) -> str:
    path = str(tmp_path / "t.lance")
    lance_core.write_dataset(table(10), path, commit_message="begin")
    lance.write_dataset(table(5, first=10), path, mode="append")
    ds = lance.dataset(path)
    ds.delete("id < 2")
    ds.create_scalar_index("id", "BTREE")
    ds.tags.create("good", 2)
    return path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, [*arguments])


def plain(*arguments: str) -> Any:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def test_names_are_completed_as_the_page_says(uri: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "cli.md").read_text()
    (shell,) = re.findall(r"_LANCE_COMPLETE=(\w+)_source lance", page)
    script = CliRunner().invoke(cli, [], prog_name="lance", env={"_LANCE_COMPLETE": f"{shell}_source"})
    assert "_LANCE_COMPLETE=bash_complete" in script.output
    asked = {"_LANCE_COMPLETE": f"{shell}_complete", "COMP_WORDS": "lance index o", "COMP_CWORD": "2"}
    assert CliRunner().invoke(cli, [], prog_name="lance", env=asked).output.split() == ["plain,optimize"]


def test_info(uri: str) -> None:
    found = plain("info", uri)
    assert (found["version"], found["rows"], found["deleted_rows"], found["fragments"]) == (4, 13, 2, 2)
    assert found["tags"] == {"good": 2}
    assert found["indices"] == {"id_idx": 1.0}
    assert "13" in run("info", uri).output
    assert plain("info", uri, "--version", "good")["rows"] == 15


def test_versions_and_log(uri: str) -> None:
    assert [item["rows"] for item in plain("versions", uri)] == [10, 15, 13, 13]
    log = plain("log", uri)
    assert [item["operation"] for item in log] == ["CreateIndex", "Delete", "Append", "Overwrite"]
    assert [item["change"] for item in log] == [0, -2, 5, 10]
    assert log[-1]["properties"] == {"__lance_commit_message": "begin"}
    assert [item["version"] for item in plain("log", uri, "-n", "2")] == [4, 3]
    assert "Append" in run("log", uri).output


def test_schema_head_count(uri: str) -> None:
    assert [item["name"] for item in plain("schema", uri)] == ["id", "name", "blob"]
    assert [item["id"] for item in plain("schema", uri, "--ids")] == [0, 1, 2]
    assert plain("head", uri, "-n", "2", "-c", "id, name") == [{"id": 2, "name": "n2"}, {"id": 3, "name": "n3"}]
    assert plain("head", uri, "--where", "id = 12", "-c", "blob") == [{"blob": "ff"}]
    assert run("head", uri, "--where", "id < 0").output == "no rows\n"
    assert plain("count", uri) == {"rows": 13}
    assert run("count", uri, "--where", "id >= 10").output == "5\n"


def test_fragments_files_indices(uri: str) -> None:
    assert [(item["rows"], item["deleted"]) for item in plain("fragments", uri)] == [(8, 2), (5, 0)]
    files = plain("files", uri)
    assert sorted(item["kind"] for item in files) == ["data", "data", "deletions", "index", "transaction"]
    for item in files:
        assert (Path(uri) / item["path"]).exists()
    (index,) = plain("indices", uri)
    assert (index["name"], index["kind"], index["columns"], index["covered"]) == ("id_idx", "BTree", "id", "2/2")


def test_validate(uri: str) -> None:
    assert plain("validate", uri)["valid"] is True
    assert run("validate", uri, "--shallow").exit_code == 0
    victim = next((Path(uri) / "data").iterdir())
    victim.write_bytes(victim.read_bytes()[:-8])
    result = run("validate", uri)
    assert result.exit_code == 1
    assert isinstance(result.exception, LanceError)


def test_wait(uri: str) -> None:
    assert plain("wait", uri, "--version", "3")["version"] == 4
    assert run("wait", uri, "--rows", "3", "--where", "id > 10", "--tag", "good", "--nothing-staged").exit_code == 0
    late = run("wait", uri, "--rows", "99", "--timeout", "0")
    assert late.exit_code == 3
    assert "13 rows, waiting for at least 99" in late.output
    assert run("wait", uri).exit_code == 2
    assert run("wait", uri, "--where", "id > 1").exit_code == 2


def test_wait_for_a_table_that_is_not_there_yet(tmp_path: Path) -> None:
    path = str(tmp_path / "later.lance")

    def create() -> None:
        time.sleep(0.2)
        lance_core.write_dataset(table(4), path)

    thread = threading.Thread(target=create)
    thread.start()
    assert plain("wait", path, "--rows", "4", "--interval", "0.05", "--timeout", "60")["num_rows"] == 4
    thread.join()


def test_staged(uri: str) -> None:
    assert run("staged", "list", uri).output == "nothing is staged\n"
    assert plain("staged", "gc", uri, "--dry-run")["files"] == []
    assert plain("staged", "gc", uri, "--abandon-after", "2w", "--dry-run")["abandoned"] == []
    assert isinstance(run("staged", "show", uri, "3f").exception, LanceError)


def test_diff(uri: str) -> None:
    found = plain("diff", uri, "1")
    assert (found["from"], found["to"], found["rows"]) == (1, 4, 3)
    assert (found["added"], found["changed"]) == ([1], {"0": "deletions 0 -> 2"})
    assert found["indices_added"] == ["id_idx"]
    lance_core.dataset(uri).add_columns({"twice": "id * 2"})
    assert plain("diff", uri, "good", "5")["columns_added"] == ["twice: int64"]
    assert "columns_added" in run("diff", uri, "4", "5").output


def test_delete_and_restore(uri: str) -> None:
    assert plain("delete", uri, "--where", "id < 5", "--dry-run") == {"num_deleted_rows": 3, "dry_run": True}
    assert plain("delete", uri, "--where", "id < 5") == {"version": 5, "num_deleted_rows": 3}
    assert plain("restore", uri, "good") == {"version": 6, "restored": 2}
    assert plain("count", uri) == {"rows": 15}
    assert run("delete", uri).exit_code == 2


def test_compact_and_cleanup(tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    lance_core.write_dataset(table(100), path, max_rows_per_file=10)
    plan = plain("compact", path, "--target-rows", "50", "--dry-run")
    assert [len(group) for group in plan["groups"]] == [5, 5]
    assert "would rewrite 10 fragments in 2 groups" in run("compact", path, "--target-rows", "50", "--dry-run").output
    assert plain("compact", path, "--target-rows", "50") == {"version": 3, "fragments_removed": 10, "fragments_added": 2}
    would = plain("cleanup", path, "--older-than", "0s", "--dry-run")
    assert (would["versions"], len(would["files"])) == ([1, 2], 12)
    assert plain("cleanup", path)["versions"] == []
    assert plain("cleanup", path, "--older-than", "0s")["bytes"] == would["bytes"]
    assert [item["version"] for item in plain("versions", path)] == [3]
    assert plain("validate", path)["rows"] == 100
    assert run("cleanup", path, "--older-than", "soon").exit_code == 2


def test_tags(uri: str) -> None:
    assert [(item["tag"], item["version"]) for item in plain("tags", "list", uri)] == [("good", 2)]
    assert plain("tags", "create", uri, "new") == {"tag": "new", "version": 4}
    assert plain("tags", "create", uri, "first", "1") == {"tag": "first", "version": 1}
    assert plain("tags", "update", uri, "first", "3") == {"tag": "first", "version": 3}
    assert run("tags", "delete", uri, "good").exit_code == 0
    assert sorted(item["tag"] for item in plain("tags", "list", uri)) == ["first", "new"]
    assert isinstance(run("tags", "delete", uri, "good").exception, LanceError)


@pytest.mark.slow
def test_warmup_compiles_every_kernel() -> None:
    result = run("warmup")
    assert result.exit_code == 0
    assert "kernels ready" in result.output


def test_entry_point(uri: str, tmp_path: Path) -> None:
    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "lance_core.cli.main", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    assert call("count", uri).stdout == "13\n"
    missing = call("info", str(tmp_path / "nothing"))
    assert missing.returncode == 1
    assert missing.stderr.startswith("NotFoundError:")
    assert "Traceback" not in missing.stderr
    assert call("nonsense").returncode == 2
    assert call("info", uri, "-o", "what").returncode == 2
    unknown = call("info", uri, "-o", "what=1")
    assert unknown.returncode == 1
    assert "what" in unknown.stderr


def test_every_command_explains_itself() -> None:
    for name, command in cli.commands.items():
        result = run(name, "--help")
        assert result.exit_code == 0
        assert command.help


def test_rows_and_indices_are_brought_in(tmp_path: Path) -> None:
    uri = str(tmp_path / "new.lance")
    (tmp_path / "a.csv").write_text("id,city\n1,Bonn\n2,Lima\n")
    (tmp_path / "b.csv").write_text("id,city\n3,Pune\n")
    identity = "3a3ff0c2-5f0b-4b5e-8a34-7c0c2d4f1a12"
    for rows in (3, 0):
        done = plain("write", uri, str(tmp_path / "a.csv"), str(tmp_path / "b.csv"), "--identity", identity)
        assert (done["version"], done["rows_added"]) == (1, rows), "the same work again adds nothing"
    plain("index", "build", uri, "city", "BITMAP", "--name", "cities")
    plain("index", "build", uri, "id", "ZONEMAP", "-p", "rows_per_zone=2")
    plain("write", uri, str(tmp_path / "b.csv"))
    unindexed = [lance.dataset(uri).stats.index_stats("cities")["num_unindexed_rows"]]
    plain("index", "optimize", uri, "cities")
    unindexed.append(lance.dataset(uri).stats.index_stats("cities")["num_unindexed_rows"])
    assert unindexed == [1, 0]
    kinds = {item["name"]: item["kind"] for item in plain("indices", uri)}
    assert kinds == {"cities": "Bitmap", "id_idx": "ZoneMap"}, "as the official library and the pages call them"
    assert run("index", "build", uri, "city", "BITMAP", "--name", "cities", "--no-replace").exit_code == 1
    assert "Known indices: " in str(run("index", "drop", uri, "city_idx").exception)
    plain("index", "drop", uri, "cities")
    assert [item["name"] for item in plain("indices", uri)] == ["id_idx"]
    done = plain("write", uri, str(tmp_path / "a.csv"), "--mode", "overwrite")
    found = lance.dataset(uri)
    found.validate()
    assert found.to_table().to_pylist() == [{"id": 1, "city": "Bonn"}, {"id": 2, "city": "Lima"}]
    (tmp_path / "none.csv").write_text("id,city\n")
    refused = run("write", uri, str(tmp_path / "none.csv"), "--mode", "overwrite")
    assert refused.exit_code == 1 and "allow_empty" in str(refused.exception)
    assert lance.dataset(uri).version == found.version


def test_tables_below_a_folder(tmp_path: Path) -> None:
    for name in ("a.lance", "deep/er/b.lance"):
        lance_core.write_dataset(table(1), str(tmp_path / name))
    assert plain("tables", str(tmp_path)) == [{"uri": f"{tmp_path}/a.lance"}, {"uri": f"{tmp_path}/deep/er/b.lance"}]
    assert plain("tables", str(tmp_path / "a.lance" / "data")) == []
    assert "is no folder" in str(run("tables", str(tmp_path / "nowhere")).exception)
