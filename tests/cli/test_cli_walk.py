"""Every command, found by walking: it explains itself and each option, and with `--json` it prints nothing but JSON."""

from __future__ import annotations

import errno
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pytest
from click.testing import CliRunner

import lance_core
from lance_core import namespace as ns
from lance_core.cli.main import cli, main
from lance_core.cli.output import Output
from lance_core.io.resolve import resolve_store
from lance_core.jobs.kinds import spec_from_json
from lance_core.jobs.run import run_job
from lance_core.publish.decisions import settle_by_hand

IDENTITY = "3a3ff0c2-5f0b-4b5e-8a34-7c0c2d4f1a11"


def leaves(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name, command in sorted(group.commands.items()):
        if isinstance(command, click.Group):
            yield from leaves(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = dict(leaves(cli))

CASES: dict[tuple[str, ...], tuple[str, ...]] = {
    ("blame",): ("URI", "--where", "id > 3"),
    ("branches", "create"): ("URI", "exp"),
    ("branches", "delete"): ("URI", "old"),
    ("branches", "list"): ("URI",),
    ("catalog", "create-namespace"): ("CATALOG", "more", "--property", "team=a"),
    ("catalog", "deregister"): ("CATALOG", "sales.orders"),
    ("catalog", "describe"): ("CATALOG", "sales.orders"),
    ("catalog", "drop"): ("CATALOG", "sales.orders"),
    ("catalog", "drop-namespace"): ("CATALOG", "empty"),
    ("catalog", "namespaces"): ("CATALOG",),
    ("catalog", "register"): ("CATALOG", "sales.again", "t.lance"),
    ("catalog", "tables"): ("CATALOG", "sales"),
    ("cleanup",): ("URI", "--dry-run", "--older-than", "1s", "--keep-tagged"),
    ("commit",): ("URI",),
    ("compact",): ("URI",),
    ("count",): ("URI", "--where", "id > 3"),
    ("delete",): ("URI", "--where", "id = 3"),
    ("describe",): ("URI", "--description", "numbers", "--column", "id=which"),
    ("diff",): ("URI", "1"),
    ("doctor",): ("URI", "--deep"),
    ("files",): ("URI",),
    ("fragments",): ("URI",),
    ("head",): ("URI", "-n", "2"),
    ("index", "build"): ("URI", "name", "BITMAP"),
    ("index", "drop"): ("URI", "id_idx"),
    ("index", "optimize"): ("URI",),
    ("indices",): ("URI",),
    ("info",): ("URI",),
    ("job",): ("JOB",),
    ("ledger", "fold"): ("URI", "--older-than", "1s"),
    ("ledger", "forget"): ("URI", "committed"),
    ("ledger", "repair"): ("URI",),
    ("ledger", "show"): ("URI",),
    ("ledger", "verify"): ("URI",),
    ("log",): ("URI",),
    ("maintain",): ("POLICY", "URI"),
    ("merge-column-files",): ("URI", "--max-files", "1"),
    ("refresh",): ("URI", "--column", "twice"),
    ("report",): ("URI", "--html", "PAGE"),
    ("restore",): ("URI", "1"),
    ("schema",): ("URI", "--ids"),
    ("seal-indices",): ("URI",),
    ("sql",): ("SELECT count(*) AS n FROM a JOIN b USING (id)", "-t", "a=URI", "-t", "b=URI"),
    ("staged", "abort"): ("URI", IDENTITY),
    ("staged", "explain"): ("URI", IDENTITY),
    ("staged", "gc"): ("URI",),
    ("staged", "list"): ("URI",),
    ("staged", "repair"): ("URI",),
    ("staged", "settle"): ("URI", "another", "--version", "1"),
    ("staged", "show"): ("URI", IDENTITY),
    ("tables",): ("CATALOG",),
    ("tags", "create"): ("URI", "new"),
    ("tags", "delete"): ("URI", "good"),
    ("tags", "list"): ("URI",),
    ("tags", "update"): ("URI", "good", "2"),
    ("undeclare",): ("URI", "twice"),
    ("validate",): ("URI",),
    ("versions",): ("URI",),
    ("write",): ("URI", "ROWS"),
    ("wait",): ("URI", "--version", "1", "--timeout", "5"),
    ("warmup",): (),
}
"""Arguments each command is tried with; URI is a table, JOB the spec of a job, CATALOG the folder of the table."""

FIELDS: dict[tuple[str, ...], set[str]] = {
    ("catalog", "describe"): {"name", "location", "is_only_declared"},
    ("catalog", "register"): {"name", "location"},
    ("cleanup",): {"dry_run"},
    ("compact",): {"version", "fragments_removed", "fragments_added"},
    ("count",): {"rows"},
    ("delete",): {"version", "num_deleted_rows"},
    ("describe",): {"version", "description", "owner", "fresh_within", "columns"},
    ("maintain",): {"steps", "skipped", "alarms", "cost"},
    ("merge-column-files",): {"version", "fragments", "files_removed", "files_added"},
    ("index", "build"): {"version", "identities"},
    ("index", "drop"): {"version"},
    ("index", "optimize"): {"version", "identities"},
    ("info",): {"version", "rows", "fragments", "tags", "indices"},
    ("job",): {"identity", "read_version"},
    ("refresh",): {"version", "stale", "columns", "dry_run"},
    ("restore",): {"version", "restored"},
    ("staged", "abort"): {"files"},
    ("staged", "settle"): {"identity", "version"},
    ("undeclare",): {"version"},
    ("validate",): {"version"},
    ("write",): {"version", "rows_added"},
}


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_says_what_it_does(path: tuple[str, ...]) -> None:
    result = CliRunner().invoke(cli, [*path, "--help"])
    assert result.exit_code == 0
    command = COMMANDS[path]
    text = " ".join((command.help or "").split())
    assert len(text) > 10 and text.split(".")[0] in " ".join(result.output.split())
    for option in command.params:
        if isinstance(option, click.Option):
            assert option.help, f"{option.name} is not explained"
            assert option.opts[-1] in result.output
        else:
            assert option.human_readable_name.upper() in result.output.upper()
    assert "--json" in result.output


def test_groups_say_what_they_are() -> None:
    for name, command in cli.commands.items():
        assert command.get_short_help_str(), name
    assert all(name in CliRunner().invoke(cli, ["-h"]).output for name in cli.commands)


def prepared(folder: Path) -> str:
    uri = str(folder / "t.lance")
    ds = lance_core.write_dataset(pa.table({"id": range(10), "name": ["x"] * 10}), uri, max_rows_per_file=5)
    ds.delete("id = 1")
    ds.create_scalar_index("id", "BTREE")
    ds.tags.create("good", 1)
    ds.create_branch("old")
    append = {"kind": "append", "uri": uri, "identity": IDENTITY, "source": source(folder)}
    run_job(spec_from_json(json.dumps(append)))
    settle_by_hand(resolve_store(uri), "committed", version=1)
    lance_core.declare_column(uri, "twice", sql="id * 2")
    catalog = ns.DirectoryNamespace(root=str(folder))
    for name in ("sales", "empty"):
        catalog.create_namespace(ns.CreateNamespaceRequest(id=[name]))
    lance_core.write_dataset(pa.table({"id": [1]}), namespace_client=catalog, table_id=["sales", "orders"])
    return uri


def source(folder: Path) -> dict[str, Any]:
    import pyarrow.parquet as parquet

    path = folder / "new.parquet"
    parquet.write_table(pa.table({"id": pa.array([20, 21]), "name": ["y", "y"]}), path)
    return {"format": "parquet", "paths": [str(path)]}


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_json_and_text(path: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if path == ("warmup",):
        monkeypatch.setattr("lance_core.cli.maintenance.compile_all", lambda: 0, raising=False)
        pytest.skip("it compiles every kernel")
    for as_json in (True, False):
        folder = tmp_path / str(as_json)
        folder.mkdir()
        uri = prepared(folder)
        job = json.dumps({"kind": "append", "uri": uri, "source": source(folder)})
        policy = folder / "policy.yaml"
        policy.write_text(f"base_uri: {folder}\n")
        given = {"URI": uri, "JOB": job, "POLICY": str(policy), "PAGE": str(folder / "page.html"), "CATALOG": str(folder)}
        given["ROWS"] = str(folder / "new.parquet")
        arguments = [given.get(item, item.replace("=URI", f"={uri}")) for item in CASES[path]]
        result = CliRunner().invoke(cli, [*path, *arguments, *(["--json"] if as_json else [])])
        assert result.exit_code == 0, result.output
        if not as_json:
            assert not re.search(r"\(\)|\('|',\)|\d,\)|frozenset", result.output), result.output
            assert result.output.strip() and not result.output.lstrip().startswith(("{", "["))
            continue
        found = json.loads(result.output)
        assert isinstance(found, (dict, list)) and found != {}
        assert path not in FIELDS or FIELDS[path] <= set(found)
        keys = {key for item in (found if isinstance(found, list) else [found]) for key in item}
        assert [key for key in keys if not re.fullmatch(r"[a-z][a-z0-9_]*", key)] == [], "a program reads these names"


@pytest.mark.parametrize("path", [path for path in COMMANDS if path != ("warmup",)], ids=" ".join)
def test_a_path_that_cannot_be_written_is_one_line(
    path: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a command of the shell prints where every write and removal is refused by the system."""
    uri = prepared(tmp_path)
    job = json.dumps({"kind": "append", "uri": uri, "source": source(tmp_path)})
    policy = tmp_path / "policy.yaml"
    policy.write_text(f"base_uri: {tmp_path}\n")
    given = {"URI": uri, "JOB": job, "POLICY": str(policy), "PAGE": str(tmp_path / "page.html"), "CATALOG": str(tmp_path)}
    given["ROWS"] = str(tmp_path / "new.parquet")
    arguments = [given.get(item, item.replace("=URI", f"={uri}")) for item in CASES[path]]

    def refused(place: Any, *_: Any, **__: Any) -> Any:
        raise PermissionError(errno.EACCES, "Permission denied", str(place))

    with monkeypatch.context() as patched:
        for name in ("mkdir", "link", "replace", "unlink"):
            patched.setattr(os, name, refused)
        patched.setattr(Path, "write_text", refused)
        patched.setattr("lance_core.io.local.writer._create", refused)
        patched.setattr(sys, "argv", ["lance", *path, *arguments])
        try:
            main()
            code: Any = 0
        except SystemExit as stop:
            code = stop.code
    told = capsys.readouterr().err
    assert code in (0, None, 1), told
    assert "Traceback" not in told
    assert not code or ("denied" in told and (str(tmp_path) in told or "temporary directory" in told)), told


def test_a_page_in_a_folder_that_is_not_there_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = str(tmp_path / "none" / "page.html")
    monkeypatch.setattr(sys, "argv", ["lance", "report", prepared(tmp_path), "--html", page])
    with pytest.raises(SystemExit):
        main()
    told = capsys.readouterr().err.strip().splitlines()
    assert len(told) == 1 and page in told[0] and "Check that the folder exists" in told[0]


def test_every_command_has_a_case() -> None:
    assert {*COMMANDS} <= {*CASES}
    assert {*FIELDS} <= {*CASES}


LONG = {
    ("cleanup",): ("URI", "--older-than", "0s", "--keep-tagged", "--delete-unverified"),
    ("compact",): ("URI",),
    ("delete",): ("URI", "--where", "id = 3"),
    ("validate",): ("URI",),
}


@pytest.mark.parametrize("path", LONG, ids=" ".join)
def test_long_work_shows_how_far_it_is(path: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int]] = []
    shown = Output.progress

    def watched(self: Output, label: str) -> Any:
        manager = shown(self, label)

        class Watching:
            def __enter__(self) -> Callable[[int, int], None]:
                show = manager.__enter__()

                def both(done: int, total: int) -> None:
                    seen.append((done, total))
                    show(done, total)

                return both

            def __exit__(self, *error: Any) -> Any:
                return manager.__exit__(*error)

        return Watching()

    monkeypatch.setattr(Output, "progress", watched)
    uri = prepared(tmp_path)
    result = CliRunner().invoke(cli, [*path, *({"URI": uri}.get(item, item) for item in LONG[path])])
    assert result.exit_code == 0, result.output
    assert seen and all(0 <= done <= total for done, total in seen)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1][0] == seen[-1][1]


def test_a_bar_is_drawn_for_people_only(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    for as_json in (True, False):
        with Output(as_json=as_json).progress("working") as show:
            for done in range(0, 11, 5):
                show(done, 10)
        shown = capsys.readouterr()
        assert shown.out == ""
        assert ("100%" in shown.err) is not as_json
