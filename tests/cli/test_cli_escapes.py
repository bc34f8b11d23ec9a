"""What a table, a store or a catalog says reaches no terminal as a command: each command over hostile names."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

import lance_core
from lance_core import cli as package
from lance_core.cli import main
from lance_core.cli.output import printable
from lance_core.errors import CorruptFileError
from tests.cli.test_cli_walk import CASES, COMMANDS, prepared, source

TITLE = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\u202egpj"
_COMMAND = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def _hostile(folder: Path) -> str:
    uri = prepared(folder)
    ds = lance_core.dataset(uri)
    ds.add_columns(pa.table({f"c{TITLE}": [f"v{TITLE}"] * ds.count_rows()}))
    ds.update_config({f"k{TITLE}": f"v{TITLE}"})
    ds.create_scalar_index("name", "BTREE", name=f"i{TITLE}")
    lance_core.write_dataset(
        ds.to_table().drop_columns(["twice"]),
        uri,
        mode="append",
        transaction_properties={f"p{TITLE}": TITLE},
        commit_message=TITLE,
    )
    return uri


@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
@pytest.mark.parametrize("path", [path for path in COMMANDS if path != ("warmup",)], ids=" ".join)
def test_no_command_prints_one(path: tuple[str, ...], as_json: bool, tmp_path: Path) -> None:
    uri = _hostile(tmp_path)
    job = json.dumps({"kind": "append", "uri": uri, "source": source(tmp_path)})
    policy = tmp_path / "policy.yaml"
    policy.write_text(f"base_uri: {tmp_path}\n")
    given = {"URI": uri, "JOB": job, "POLICY": str(policy), "PAGE": str(tmp_path / "page.html"), "CATALOG": str(tmp_path)}
    arguments = [given.get(item, item.replace("=URI", f"={uri}")) for item in CASES[path]]
    output = CliRunner().invoke(main.cli, [*path, *arguments, *(["--json"] if as_json else [])]).output
    assert not _COMMAND.search(output), repr(output)
    if path in (("head",), ("schema",)):
        assert "\\x1b]0;owned" in output or "\\u001b]0;owned" in output


def test_an_error_prints_none(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(**_: object) -> None:
        raise CorruptFileError(f"the column {TITLE!s} is damaged")

    monkeypatch.setattr(main, "cli", fail)
    with pytest.raises(SystemExit):
        main.main()
    shown = capsys.readouterr().err
    assert "\\x1b]0;owned" in shown and not _COMMAND.search(shown)


def test_wrong_usage_prints_none(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["lance", f"no{TITLE}"])
    with pytest.raises(SystemExit):
        main.main()
    assert not _COMMAND.search(capsys.readouterr().err)


def test_every_command_prints_through_one_function() -> None:
    files = [path for path in Path(package.__file__).parent.glob("*.py") if path.name != "output.py"]
    assert len(files) > 10
    for path in files:
        assert not re.search(r"\bprint\(|click\.s?echo|sys\.std(out|err)\.write", path.read_text()), path.name


def test_what_is_no_command_stays() -> None:
    text = "Überschrift\t日本語 👩‍💻 ‏\n"
    assert printable(text) == text.replace("\u200f", "\\u200f")
    assert printable("\ud800\x00\x1b") == "\\ud800\\x00\\x1b"
