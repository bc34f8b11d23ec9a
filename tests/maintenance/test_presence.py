"""The quick doctor and the health of a table see a file that is gone, and say when they did not look."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from click.testing import CliRunner

import lance_core
from lance_core.cli.main import cli
from lance_core.dataset.snapshot.snapshot import snapshot_of
from lance_core.io.resolve import resolve_store
from lance_core.io.store import StoreEntry
from lance_core.io.wrapped import CountingStore
from lance_core.maintenance.doctor import diagnose
from lance_core.maintenance.health import health_of
from lance_core.maintenance.observe import Observation, observe
from lance_core.maintenance.policy import ManagedTable, ServiceLevels
from lance_core.maintenance.presence import MAX_REQUESTS, OBJECTS_PER_REQUEST, Presence, check_presence
from lance_core.maintenance.report import table_report
from lance_core.maintenance.report_html import report_html


def rows(first: int, count: int) -> pa.Table:
    return pa.table({"id": range(first, first + count), "text": [f"row {number}" for number in range(count)]})


def ours(uri: str) -> None:
    lance_core.write_dataset(rows(0, 100), uri, max_rows_per_file=10).create_scalar_index("id", "BTREE")
    lance_core.dataset(uri).delete("id % 3 = 0")
    lance_core.dataset(uri).add_columns({"twice": "id * 2"})


def official(uri: str) -> None:
    lance.write_dataset(rows(0, 100), uri, max_rows_per_file=10).create_scalar_index("id", "BTREE")
    lance.dataset(uri).delete("id % 3 = 0")


def single(uri: str) -> None:
    lance_core.write_dataset(rows(0, 10), uri)


def legacy(uri: str) -> None:
    lance.write_dataset(rows(0, 100), uri, max_rows_per_file=20, data_storage_version="legacy")


def clone(uri: str) -> None:
    ours(f"{uri}-source")
    lance_core.dataset(f"{uri}-source").shallow_clone(uri, None)
    lance_core.write_dataset(rows(200, 10).append_column("twice", pa.array(range(10))), uri, mode="append")


def branch(uri: str) -> None:
    ours(uri)
    lance_core.dataset(uri).create_branch("exp")


MAKERS: tuple[Callable[[str], None], ...] = (ours, official, single, legacy, clone, branch)


def seen_of(uri: str) -> Observation:
    return observe(ManagedTable(uri=uri), file_requests=MAX_REQUESTS)


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_a_whole_table_is_checked_and_not_accused(make: Callable[[str], None], tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    make(uri)
    seen = seen_of(uri)
    assert seen.files is not None and not seen.files.is_damaged and seen.files.unchecked == ""
    assert seen.files.num_files >= 1 and 1 <= seen.files.requests <= MAX_REQUESTS
    assert health_of(seen, ServiceLevels()).is_checked
    assert {item.code for item in diagnose(uri)} & {"missing-files", "files-not-checked"} == set()


@pytest.mark.parametrize("make", [ours, official, single, legacy], ids=lambda make: make.__name__)
@pytest.mark.parametrize("how", ["gone", "shorter", "empty"])
def test_every_file_that_is_gone_or_cut_is_found(make: Callable[[str], None], how: str, tmp_path: Path) -> None:
    """Each file of the version in turn; the manifest does not know the length of deletion files."""
    uri = str(tmp_path / "t.lance")
    make(uri)
    needed = needed_of(uri)
    assert needed
    for path, size in needed.items():
        content = path.read_bytes()
        if how == "gone":
            path.unlink()
        else:
            path.write_bytes(content[: len(content) // 2] if how == "shorter" else b"")
        seen = seen_of(uri)
        assert seen.files is not None
        if how == "gone" or size is not None:
            health = health_of(seen, ServiceLevels())
            named = str(path.relative_to(uri))
            assert named in (*seen.files.missing, *seen.files.wrong_size), named
            assert (health.score, health.parts[0].code) == (0, "damaged-files")
            (finding,) = [item for item in diagnose(uri) if item.code == "missing-files"]
            assert finding.severity == "error" and named in finding.cost
        path.write_bytes(content)
    assert diagnose_codes(uri) & {"missing-files", "files-not-checked"} == set()


def diagnose_codes(uri: str) -> set[str]:
    return {item.code for item in diagnose(uri)}


def needed_of(uri: str) -> dict[Path, int | None]:
    """What the official library says the newest version is made of; sizes where its manifest has them."""
    found: dict[Path, int | None] = {}
    for fragment in lance.dataset(uri).get_fragments():
        data = fragment.metadata
        found |= {Path(uri, "data", file.path): file.file_size_bytes for file in data.files}
        path = fragment.deletion_file()
        if path:
            found[Path(uri, path)] = None
    for entry in lance_core.dataset(uri).describe_indices():
        for segment in entry.segments:
            found |= {path: path.stat().st_size for path in Path(uri, "_indices", segment.uuid).glob("*.lance")}
    return found


def test_the_command_exits_with_1_and_names_the_file(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    ours(uri)
    path = next(Path(uri, "data").glob("*.lance"))
    path.unlink()
    shown = CliRunner().invoke(cli, ["doctor", uri])
    assert shown.exit_code == 1 and path.name in shown.output and "lance restore" in shown.output


class Crowded(CountingStore):
    """A store whose data folder has many objects more, and which counts what is listed."""

    listed = 0
    extra = MAX_REQUESTS * OBJECTS_PER_REQUEST

    def list(self, prefix: str) -> Iterator[StoreEntry]:
        for number in range(self.extra if prefix == "data/" else 0):
            self.listed += 1
            yield StoreEntry(f"data/other-{number:06}.lance", 1, 0.0)
        yield from super().list(prefix)


def test_beyond_the_bound_nothing_is_green(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = str(tmp_path / "t.lance")
    ours(uri)
    store = Crowded(resolve_store(uri))
    found = check_presence(snapshot_of(store))
    assert f"more than {MAX_REQUESTS} requests" in found.unchecked and not found.is_damaged
    assert store.listed <= MAX_REQUESTS * OBJECTS_PER_REQUEST
    monkeypatch.setattr("lance_core.maintenance.observe.check_presence", lambda snapshot, max_requests: found)
    health = health_of(seen_of(uri), ServiceLevels())
    assert not health.is_checked and "requests" in health.unchecked
    (note,) = [item for item in diagnose(uri) if item.code == "files-not-checked"]
    assert (note.severity, note.cure) == ("note", f"lance doctor {uri} --deep") and "10 requests" in note.cost
    report = table_report(uri)
    assert report.health is None and "not checked" in report_html(report)
    assert "health not checked" in CliRunner().invoke(cli, ["report", uri, "--html", str(tmp_path / "r.html")]).output


def test_a_version_that_a_cleanup_took_is_no_damage(tmp_path: Path) -> None:
    """The files of an old version go while they are compared: a newer version was committed meanwhile."""
    uri = str(tmp_path / "t.lance")
    lance_core.write_dataset(rows(0, 10), uri)
    old = snapshot_of(resolve_store(uri))
    lance_core.write_dataset(rows(10, 10), uri, mode="overwrite")
    for name in needed_names(old):
        Path(uri, "data", name).unlink()
    found = check_presence(old)
    assert not found.is_damaged and "version 2 was committed" in found.unchecked


def needed_names(snapshot: object) -> list[str]:
    fragments = snapshot.manifest.fragments  # type: ignore[attr-defined]
    return [file.path for fragment in fragments for file in fragment.files]


def test_nobody_asked_is_not_checked() -> None:
    assert not health_of(Observation(uri="t"), ServiceLevels()).is_checked
    assert health_of(Observation(uri="t", files=Presence(num_files=0)), ServiceLevels()).is_checked
