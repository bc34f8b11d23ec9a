"""Listings of tags and branches have the order of the official library, and tags keep their metadata."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import InputError


@pytest.fixture
def ds(tmp_path: Path) -> lance_core.LanceDataset:
    made = lance_core.write_dataset(pa.table({"a": [1]}), tmp_path / "t")
    made.insert(pa.table({"a": [2]}))
    return made


def test_tags_in_order_and_their_metadata(ds: lance_core.LanceDataset) -> None:
    for name, version in (("b", 1), ("d", 1), ("a", 1), ("c", 2)):
        ds.tags.create(name, version)
    for order in (None, "asc", "desc"):
        found = [[name for name, _ in library.dataset(ds.uri).tags.list_ordered(order)] for library in (lance_core, lance)]
        assert found[0] == found[1]
    with pytest.raises(InputError):
        ds.tags.list_ordered("up")
    ds.tags.replace_metadata("a", {"owner": "x"})
    lance.dataset(ds.uri).tags.replace_metadata("b", {"owner": "y"})
    for library in (lance, lance_core):
        found = library.dataset(ds.uri).tags.list()
        assert (found["a"]["metadata"], found["b"]["metadata"]) == ({"owner": "x"}, {"owner": "y"})


def test_branches_in_order(ds: lance_core.LanceDataset) -> None:
    for name, version in (("b", 1), ("a", 1), ("c", 2)):
        ds.create_branch(name, version)
    for order in (None, "asc", "desc"):
        found = [[name for name, _ in lib.dataset(ds.uri).branches.list_ordered(order)] for lib in (lance_core, lance)]
        assert found[0] == found[1]
