"""Deep validation of tables of old releases: what the official library reads is whole, and what is not is called so."""

from __future__ import annotations

from pathlib import Path

import lance
import pytest

import lance_core
from lance_core.dataset.maintain.validate import find_damages
from tests.compatibility.old_tables import releases, unpack

SOME = ("0.4.21", "0.7.5", "0.10.18", "0.18.2", "0.20.0", "0.30.0", "0.37.0")


def wrong(release: str, root: Path) -> list[str]:
    """Tables that the official library reads whole and that we call damaged."""
    found = []
    for name in unpack(release, root):
        if name.startswith("stable") and (0, 20) <= tuple(map(int, release.split("."))) < (0, 32):
            continue  # compaction of these releases lost row ids: 58 ids for 72 rows
        try:
            lance.dataset(root / name).to_table()
        except (ValueError, OSError):
            continue
        found += [f"{release}/{name}: {line}" for line in find_damages(lance_core.dataset(str(root / name)).snapshot)]
    return found


@pytest.mark.parametrize(
    ("release", "name"),
    [
        ("0.9.19", "ivf-pq-cosine"),  # codes of what was scaled after the centroid had been subtracted
        ("0.15.0", "indices"),  # full text without offsets
        ("0.23.2", "indices"),  # n-grams as texts
        ("0.34.0", "indices"),  # zone_size instead of zone_length
        ("0.36.0", "ivf-hnsw-flat"),  # three rows of a graph of 141 are out of reach
    ],
)
def test_indices_of_other_layouts_are_whole(release: str, name: str, tmp_path: Path) -> None:
    unpack(release, tmp_path)
    dataset = lance_core.dataset(str(tmp_path / name))
    assert list(find_damages(dataset.snapshot)) == []
    assert dataset.check_indices() >= 1


@pytest.mark.parametrize("release", SOME)
def test_tables_of_some_releases_are_whole(release: str, tmp_path: Path) -> None:
    assert wrong(release, tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("release", [release for release in releases() if release not in SOME])
def test_tables_of_every_release_are_whole(release: str, tmp_path: Path) -> None:
    assert wrong(release, tmp_path) == []


def test_lost_row_ids_are_called_so(tmp_path: Path) -> None:
    unpack("0.21.0", tmp_path)
    messages = list(find_damages(lance_core.dataset(str(tmp_path / "stable-2.0")).snapshot))
    assert any("has 58 row ids for 72 rows" in message for message in messages)
