"""Every `lance ...` command on every page is one that exists, with options that it takes."""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path

import click
import pytest

from lance_core.cli.main import cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *(path for path in sorted((ROOT / "docs").rglob("*.md")) if path.parent.name != "adr")]
_IN_TEXT = re.compile(r"`(lance [a-z][^`\n]*)`")
_IN_BLOCK = re.compile(r"^(?:\$ )?(lance [a-z].*?)(?:\s+#.*)?$", re.MULTILINE)
_SHELL = re.compile(r"```(?:sh|bash|console)\n(.*?)```", re.DOTALL)


def _commands(page: Path) -> list[str]:
    text = page.read_text(encoding="utf-8")
    found = _IN_TEXT.findall(text)
    for block in _SHELL.findall(text):
        found += _IN_BLOCK.findall(block.replace("\\\n", " "))
    return [command for command in dict.fromkeys(found) if not command.startswith("lance COMMAND")]


@pytest.mark.parametrize("page", [page for page in PAGES if _commands(page)], ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_on_the_page_exist(page: Path) -> None:
    wrong = [f"{command}: {problem}" for command in _commands(page) if (problem := _problem(command))]
    assert wrong == []


def test_the_reference_has_every_command_and_option() -> None:
    made = runpy.run_path(str(ROOT / ".ci" / "cli_reference.py"))
    text = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    assert made["PLACE"] in text, "where the site's build puts the commands"
    page = text.replace(made["PLACE"], made["page"]())
    groups = [("lance", cli)]
    while groups:
        path, command = groups.pop()
        if isinstance(command, click.Group):
            groups += [(f"{path} {name}", item) for name, item in command.commands.items()]
            continue
        section = page.partition(f"\n## {path}\n")[2].partition("\n## ")[0]
        assert section, path
        options = [item for item in command.params if isinstance(item, click.Option) and "--json" not in item.opts]
        assert [item.opts[-1] for item in options if item.opts[-1] not in section] == [], path


def _problem(text: str) -> str:
    """What is wrong with a command; "" for nothing."""
    words = shlex.split(text.replace("...", "x").split("|")[0].split(" > ")[0].split(" && ")[0])[1:]
    command: click.Command = cli
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.commands.get(words[0])
        if found is None:
            return f"there is no {words[0]!r}"
        command, words = found, words[1:]
    known = {name for item in command.params for name in (*item.opts, *item.secondary_opts)} | {"-h", "--help"}
    options = [word.split("=")[0] for word in words if re.match(r"--?[A-Za-z]", word)]
    unknown = [option for option in options if option not in known]
    return f"no option {', '.join(unknown)}" if unknown else ""
