"""Cleanup over random histories: what any version, tag, branch, clone or staged transaction needs is never removed."""

from __future__ import annotations

import datetime as dt
import sys
import tempfile
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lance_core
from lance_core.errors import IncompatibleConflictError
from tests.dataset.exact_storage import missing, strangers

sys.path.insert(0, str(Path(__file__).parents[2] / "commit"))

from lance_core.publish.abort import abort_attempt
from lance_core.publish.collect import collect_garbage
from lance_core.publish.commit import commit_staged
from tests.commit.commit_support import stage

STEPS = ("append", "append", "delete", "update", "overwrite", "compact", "index", "tag", "untag", "branch", "clone", "stage",
         "land", "cleanup", "cleanup", "cleanup")  # fmt: skip
STEP = st.tuples(st.sampled_from(STEPS), st.integers(0, 1 << 16))


class Table:
    """The table, and what each of its versions is known to hold: (line, version) -> rows."""

    def __init__(self, folder: Path) -> None:
        self.uri = str(folder / "t")
        self.folder = folder
        self.next = 3
        self.lines: list[str | None] = [None]
        self.clones: dict[str, list[int]] = {}
        self.staged: list[tuple[Any, int]] = []
        self.known: dict[tuple[str | None, int], list[int]] = {}
        self.note(None, lance_core.write_dataset(pa.table({"a": [0, 1, 2]}), self.uri))

    def open(self, line: str | None, version: int | None = None) -> Any:
        return lance_core.dataset(self.uri).checkout_version((line, version))

    def note(self, line: str | None, handle: Any) -> None:
        self.known[line, handle.version] = rows(handle)

    def take(self, count: int = 1) -> pa.Table:
        self.next += count
        return pa.table({"a": [*range(self.next - count, self.next)]})

    def step(self, kind: str, pick: int) -> None:
        line = self.lines[pick % len(self.lines)]
        handle = self.open(line)
        getattr(self, f"do_{kind}")(line, handle, pick)
        if kind not in ("cleanup", "clone", "tag", "untag", "stage"):
            self.note(line, self.open(line))

    def do_append(self, line: str | None, handle: Any, pick: int) -> None:
        handle.insert(self.take(1 + pick % 3))

    def do_delete(self, line: str | None, handle: Any, pick: int) -> None:
        handle.delete(f"a % 5 = {pick % 5}")

    def do_update(self, line: str | None, handle: Any, pick: int) -> None:
        handle.update({"a": "a + 1000"}, where=f"a % 7 = {pick % 7}")

    def do_overwrite(self, line: str | None, handle: Any, pick: int) -> None:
        handle.insert(self.take(2), mode="overwrite")

    def do_compact(self, line: str | None, handle: Any, pick: int) -> None:
        handle.optimize.compact_files()

    def do_index(self, line: str | None, handle: Any, pick: int) -> None:
        handle.create_scalar_index("a", "BTREE", replace=True)

    def do_tag(self, line: str | None, handle: Any, pick: int) -> None:
        versions = [version for at, version in self.known if at == line]
        self.next += 1
        handle.tags.create(f"t{self.next}", (line, versions[pick % len(versions)]))

    def do_untag(self, line: str | None, handle: Any, pick: int) -> None:
        for name in [*handle.tags.list()][:1]:
            handle.tags.delete(name)

    def do_branch(self, line: str | None, handle: Any, pick: int) -> None:
        if len(self.lines) < 3:
            versions = [version for at, version in self.known if at == line]
            name = f"b{len(self.lines)}"
            branch = self.open(line, versions[pick % len(versions)]).create_branch(name)
            self.lines.append(name)
            self.note(name, branch)

    def do_clone(self, line: str | None, handle: Any, pick: int) -> None:
        if len(self.clones) < 2:
            path = str(self.folder / f"clone{len(self.clones)}")
            self.clones[path] = rows(handle.shallow_clone(path, handle.version))

    def do_stage(self, line: str | None, handle: Any, pick: int) -> None:
        if len(self.staged) < 2:
            self.next += 1
            self.staged.append((stage(lance_core.dataset(self.uri).snapshot.store, (self.next - 1,)), self.next - 1))

    def do_land(self, line: str | None, handle: Any, pick: int) -> None:
        if self.staged:
            work, value = self.staged.pop()
            store = lance_core.dataset(self.uri).snapshot.store
            try:
                commit_staged(store, [work])
            except IncompatibleConflictError:  # the table was overwritten meanwhile
                abort_attempt(store, work.identity, work.attempt, certain=True)
                return
            self.note(None, self.open(None))
            assert value in self.known[None, self.open(None).version]

    def do_cleanup(self, line: str | None, handle: Any, pick: int) -> None:
        options: dict[str, Any] = {"retain_versions": 1 + pick % 3} if pick % 2 else {"older_than": dt.timedelta(0)}
        handle.cleanup_old_versions(**options, delete_unverified=pick % 3 > 0, error_if_tagged_old_versions=False)
        left = {version["version"] for version in self.open(line).versions()}
        tagged = {
            tag["version"] for tag in handle.tags.list().values() if tag["branch"] in (line, "main" if line is None else "")
        }
        assert handle.version in left
        assert tagged <= left
        self.known = {key: value for key, value in self.known.items() if key[0] != line or key[1] in left}
        self.check()

    def check(self) -> None:
        """Every version of every line, every tag and every clone reads as it was."""
        root = lance_core.dataset(self.uri).snapshot.store
        assert missing(root) == []
        for (line, version), expected in self.known.items():
            assert rows(self.open(line, version)) == expected
        for name in lance_core.dataset(self.uri).tags.list():
            lance_core.dataset(self.uri).checkout_version(name).validate()
        for path, expected in self.clones.items():
            assert rows(lance_core.dataset(path)) == expected

    def finish(self) -> None:
        """Land what is staged, clean all lines up: storage is exact, and the official library reads all that is left."""
        while self.staged:
            self.do_land(None, None, 0)
        root = lance_core.dataset(self.uri).snapshot.store
        collect_garbage(root)
        for line in self.lines:
            self.do_cleanup(line, self.open(line), 1 + 2 * 3 * 5)
        for line in self.lines:  # what only removed versions of branches needed in other lines
            self.open(line).cleanup_old_versions(
                retain_versions=9, delete_unverified=True, error_if_tagged_old_versions=False
            )
        self.check()
        assert strangers(root) == []
        for (line, version), expected in self.known.items():
            assert rows(lance.dataset(self.uri).checkout_version((line, version))) == expected


def rows(handle: Any) -> list[int]:
    return sorted(handle.to_table(columns=["a"])["a"].to_pylist())


def run(steps: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = Table(Path(folder))
        for kind, pick in steps:
            table.step(kind, pick)
        table.finish()


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEP, min_size=4, max_size=14))
def test_what_is_needed_stays(steps: list[tuple[str, int]]) -> None:
    run(steps)


@pytest.mark.slow
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEP, min_size=8, max_size=30))
def test_what_is_needed_stays_for_long(steps: list[tuple[str, int]]) -> None:
    run(steps)
