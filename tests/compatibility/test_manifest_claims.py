"""Manifests that contradict themselves, or use flags in a sense we cannot know, and what both libraries make of them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import CorruptFileError, LanceError, UnsupportedFeatureError
from lance_core.format.index import IndexDetails
from lance_core.format.manifest import Manifest, WriterVersion
from lance_core.index.base import IndexKind
from lance_core.index.registry import KINDS
from lance_core.wire.manifest_file import decode_manifest_file, encode_manifest_file

ROWS = pa.table({"a": [1, 2, 3]})


def table_of(path: Path, versions: list[str]) -> Path:
    """A table whose fragments are of these storage versions."""
    lance.write_dataset(ROWS, path, data_storage_version=versions[0])
    for version in versions[1:]:
        lance.write_dataset(ROWS, path, mode="append", data_storage_version=version)
    return path


def edited(path: Path, edit: Callable[[Manifest], Manifest]) -> Path:
    """The newest manifest, changed in place."""
    newest = min(path.glob("_versions/*.manifest"))
    found = decode_manifest_file(newest.read_bytes())
    newest.write_bytes(encode_manifest_file(edit(found.manifest), transaction=found.transaction))
    return path


def answers(library: object, path: Path) -> tuple[object, object]:
    """What a library reads, and whether it appends; None where it refuses."""
    try:
        dataset = library.dataset(str(path))  # type: ignore[attr-defined]
        read = dataset.to_table().num_rows, dataset.take([0, 1]).num_rows
    except (ValueError, OSError, LanceError):
        return None, None
    try:
        library.write_dataset(ROWS, str(path), mode="append")  # type: ignore[attr-defined]
    except (ValueError, OSError, LanceError):
        return read, None
    return read, True


def agree(tmp_path: Path, versions: list[str], edit: Callable[[Manifest], Manifest]) -> tuple[object, object]:
    """What both libraries answer about equal tables."""
    ours = answers(lance_core, edited(table_of(tmp_path / "ours", versions), edit))
    assert ours == answers(lance, edited(table_of(tmp_path / "theirs", versions), edit))
    return ours


@pytest.mark.parametrize(
    ("versions", "says", "is_read"),
    [
        (["2.0"], "0.1", True),
        (["legacy"], "2.0", False),
        (["2.1"], "2.2", False),
        (["2.0", "2.1"], "2.0", True),
        (["2.0", "2.1"], "2.1", True),
    ],
)
def test_file_versions_other_than_the_tables(versions: list[str], says: str, is_read: bool, tmp_path: Path) -> None:
    found = agree(tmp_path, versions, lambda manifest: replace(manifest, data_storage_version=says))
    assert (found[0] is not None) is is_read


def test_mixed_versions_without_the_flag_are_refused(tmp_path: Path) -> None:
    plain = lambda manifest: replace(manifest, reader_feature_flags=0, writer_feature_flags=0)  # noqa: E731
    assert agree(tmp_path, ["2.0", "2.1"], plain) == (None, None)
    with pytest.raises(CorruptFileError, match=r"2\.0, 2\.1"):
        lance_core.dataset(str(tmp_path / "ours"))


@pytest.mark.parametrize("words", ["reader", "writer", "both"])
@pytest.mark.parametrize("bit", range(17))
def test_each_flag_is_taken_as_the_official_library_takes_it(bit: int, words: str, tmp_path: Path) -> None:
    flag = 1 << bit
    reader, writer = (flag if words in (word, "both") else 0 for word in ("reader", "writer"))
    agree(tmp_path, ["2.2"], lambda manifest: replace(manifest, reader_feature_flags=reader, writer_feature_flags=writer))


@pytest.mark.parametrize("flag", [2048, 16384])
@pytest.mark.parametrize("writer", [None, WriterVersion("lance", "15.0.0"), WriterVersion("other", "1.0")])
def test_flags_that_moved_are_not_believed_of_writers_nobody_measured(
    flag: int, writer: WriterVersion | None, tmp_path: Path
) -> None:
    def edit(manifest: Manifest) -> Manifest:
        return replace(manifest, reader_feature_flags=flag, writer_feature_flags=flag, writer_version=writer)

    path = edited(table_of(tmp_path / "t", ["2.2"]), edit)
    with pytest.raises(UnsupportedFeatureError, match=f"{flag}"):
        lance_core.dataset(str(path))
    edited(path, lambda manifest: replace(manifest, writer_version=WriterVersion("lance", "14.0.2")))
    assert lance_core.dataset(str(path)).count_rows() == 3


def test_a_fragment_of_a_large_table_is_checked_when_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lance_core.table.features._CHECKED_AT_OPEN", 0)
    path = edited(table_of(tmp_path / "t", ["2.2"]), lambda manifest: replace(manifest, reader_feature_flags=2))
    with pytest.raises(CorruptFileError, match="row ids"):
        lance_core.dataset(str(path)).to_table()


@pytest.mark.parametrize("claimed", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("column", ["t", "l", "f"])
def test_an_index_of_a_kind_that_its_column_cannot_have(tmp_path: Path, claimed: IndexKind, column: str) -> None:
    """Whoever wrote the manifest changed the kind of the index: optimising it ends typed, and so does a filter."""
    rows = pa.table({"t": ["a", "b"], "l": [["a"], ["b"]], "f": [1.5, 2.5]})
    uri = str(tmp_path / "t")
    lance_core.write_dataset(rows, uri)
    opened = lance_core.dataset(uri)
    opened.create_scalar_index(column, "LABEL_LIST" if column == "l" else "BTREE")
    lance_core.write_dataset(rows, uri, mode="append")
    details = IndexDetails(f"/lance.table.{claimed.details}", b"")

    def forged(manifest: Manifest) -> Manifest:
        return replace(manifest, indices=tuple(replace(index, details=details) for index in manifest.indices))

    edited(tmp_path / "t", forged)
    for act in (
        lambda table: table.optimize.optimize_indices(),
        lambda table: table.to_table(filter="t = 'a' and f > 1 and array_has(l, 'a')"),
    ):
        with contextlib.suppress(LanceError):
            act(lance_core.dataset(uri))
