"""The doors through which a user makes a mistake: Python, the command line, a DAG, the pages. Each gives what it says.

::

    say_python(lambda: dataset.delete("cty = 1"))      -> "FilterError: ...: no column 'cty'. Did you mean city?"
    say_command(["delete", uri, "--where", "cty = 1"]) -> (1, "error: ...")
"""

from __future__ import annotations

import functools
import io
import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

from lance_core.cli.main import main


def say_python(call: Callable[[], object]) -> str:
    """The type and the text of the error that a call raises; "" where it raises none."""
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def say_command(words: list[str]) -> tuple[int, str]:
    """The exit code of a `lance` command, and all that it printed."""
    out, err = io.StringIO(), io.StringIO()
    named = patch.object(sys, "argv", ["lance", *words]), patch.object(sys.modules["__main__"], "__package__", None)
    with named[0], named[1], redirect_stdout(out), redirect_stderr(err):
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0) if not isinstance(stop.code, str) else 1
    return code, (out.getvalue() + err.getvalue()).strip()


def say_shell(line: str) -> tuple[int, str]:
    """`say_command` of a line as it is written in a message."""
    return say_command(shlex.split(line)[1:])


@functools.cache
def page_client() -> Any:
    """One app for all mistakes: the processes that read rows for it are started once."""
    from fastapi.testclient import TestClient

    from airflow_lance.ui import app as pages
    from airflow_lance.ui.security import require_reader
    from airflow_lance.ui.settings import PagesSettings

    settings = PagesSettings(connections=("lance_default",), rows="connection", cache_seconds=0.001, timeout_seconds=240)
    app = pages.create_app(settings)
    app.dependency_overrides[require_reader] = lambda: "reader"
    return TestClient(app)


class PageDoor:
    """The app of the pages in this process, for a user who may see everything."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._client = page_client()

    def say(self, path: str, **query: Any) -> str:
        """The error of a GET below the table `t.lance`, as the browser gets it; "" for an answer."""
        return self._told(lambda number: self._client.get(f"/api/tables/{number}{path}", params=query))

    def search(self, **body: Any) -> str:
        """The error of a search."""
        head = {"X-Lance-Request": "1"}
        return self._told(lambda number: self._client.post(f"/api/tables/{number}/search", json=body, headers=head))

    def press(self, action: str, **arguments: Any) -> str:
        """The error of a button's request, which would trigger a run."""
        head = {"X-Lance-Request": "1"}
        body: dict[str, Any] = {"action": action, "arguments": arguments}
        with patch("airflow_lance.ui.routes_actions.may_trigger", lambda *_: True):
            return self._told(lambda number: self._client.post("/api/actions", json={**body, "table": number}, headers=head))

    def _told(self, ask: Callable[[str], Any]) -> str:
        connection = json.dumps({"conn_type": "lance", "extra": {"base_uri": str(self._base)}})
        with (
            patch.dict(os.environ, {"AIRFLOW_CONN_LANCE_DEFAULT": connection}),
            patch("airflow_lance.ui.routes_table.may_see_rows", lambda *_: True),
        ):
            listed = self._client.get("/api/tables", params={"refresh": True}).json()
            number = next(row["id"] for row in listed["tables"] if row["name"].startswith("t"))
            answer = ask(number)
        if answer.status_code < 400:
            return ""
        error: Mapping[str, Any] = answer.json()["error"]
        return f"{error['code']}: {error['message']} {error.get('cure') or ''}".strip()
