"""Runs in the environment of the release before: one JSON command a line in, one JSON answer a line out.

::

    {"do": "stage", "uri": "/t.lance", "identity": "…", "ids": [1, 2]}      {"ok": {…the reference…}}
    {"do": "commit", "uri": "/t.lance", "identity": "…", "pause": true}     {"paused": true}, and goes on at the next line
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import lance_core.jobs.commit as committing
from lance_core.commit.abort import abort_attempt
from lance_core.commit.garbage import collect_garbage
from lance_core.io.wrap import WrappedStore
from lance_core.jobs.edit_specs import DeleteSpec

from lance_core.commit.registry import list_staged
from lance_core.errors import LanceError
from lance_core.io.resolve import resolve_store
from lance_core.jobs.run import run_job
from lance_core.jobs.spec import AppendSpec, CommitSpec, SourceSpec


class Pausing(WrappedStore):
    """Waits before it publishes a version."""

    @property
    def is_local(self) -> bool:
        return True

    def _around(self, inner: Any) -> Pausing:
        return Pausing(inner)

    def _call(self, name: str, path: str, action: Any) -> Any:
        if name == "put_if_absent" and path.startswith("_versions/"):
            answer({"paused": True})
            sys.stdin.readline()
        return action()


def stage(uri: str, identity: str, ids: list[int]) -> object:
    source = SourceSpec(callable="tests.upgrades.upgrade_rows:rows", kwargs={"ids": ids})
    return run_job(AppendSpec(uri=uri, source=source, identity=identity)).to_dict()


def delete(uri: str, identity: str, predicate: str) -> object:
    return run_job(DeleteSpec(uri=uri, predicate=predicate, identity=identity)).to_dict()


def commit(uri: str, identity: str, *, pause: bool = False) -> object:
    committing.resolve_store = (lambda *given: Pausing(resolve_store(*given))) if pause else resolve_store
    return run_job(CommitSpec(uri=uri, identities=(identity,))).to_dict()


def abort(uri: str, identity: str) -> object:
    store = resolve_store(uri)
    entries = [entry for entry in list_staged(store) if entry.identity == identity]
    return [abort_attempt(store, identity, entry.attempt) for entry in entries]


def gc(uri: str) -> object:
    return collect_garbage(resolve_store(uri)).to_dict()


def answer(what: object) -> None:
    print(json.dumps(what, default=str), flush=True)


def main() -> None:
    verbs = {"stage": stage, "delete": delete, "commit": commit, "abort": abort, "gc": gc}
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            answer({"ok": verbs[asked.pop("do")](**asked)})
        except LanceError as error:
            answer({"refused": type(error).__name__, "text": str(error), "retryable": error.retryable})


if __name__ == "__main__":
    # Behind everything else: only for the module with the rows.
    sys.path.append(str(Path(__file__).parent.parent.parent))
    main()
