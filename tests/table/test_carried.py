"""What each operation carries, over all operations: no fragment, file or schema of one is missed."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from lance_core.format.fragment import DataFile, Fragment
from lance_core.format.index import IndexMetadata
from lance_core.format.schema import Schema
from lance_core.maintenance.facts.history import new_fragments
from lance_core.table.carried import (
    added_fragments,
    new_indices,
    new_schema,
    replacing_files,
    rewritten_fragments,
    written_fragments,
)
from lance_core.table.operations import (
    OPERATIONS,
    Append,
    CreateIndex,
    DataOverlay,
    DataReplacement,
    Delete,
    Merge,
    Operation,
    OverlayGroup,
    Overwrite,
    Project,
    Replacement,
    ReserveFragments,
    Rewrite,
    RewriteGroup,
    Update,
)
from lance_core.table.transaction import Transaction

A, B, C = (
    Fragment(id=number, files=(DataFile(f"{number}.lance", (0,), (0,), 2, 1),), physical_rows=5) for number in range(3)
)
SCHEMA = Schema(())
INDEX = IndexMetadata(uuid="u", name="i", fields=(0,), dataset_version=1)

CASES: dict[str, tuple[Operation, tuple[Fragment, ...], tuple[Fragment, ...], tuple[Fragment, ...]]] = {
    # name: operation, added, written, rewritten
    "append": (Append((A, B)), (A, B), (A, B), ()),
    "overwrite": (Overwrite((A,), SCHEMA), (A,), (A,), ()),
    "merge": (Merge((A, B), SCHEMA), (), (A, B), ()),
    "update": (Update(updated_fragments=(A,), new_fragments=(B,)), (B,), (B, A), ()),
    "delete": (Delete(updated_fragments=(A,), deleted_fragment_ids=(1,)), (), (A,), ()),
    "rewrite": (Rewrite((RewriteGroup((A, B), (C,)),)), (), (C,), (C,)),
    "reserve": (ReserveFragments(3), (), (), ()),
    "overlay": (DataOverlay((OverlayGroup(0, ()),)), (), (), ()),
}


@pytest.mark.parametrize("name", CASES)
def test_an_operation_says_which_fragments_it_brings(name: str) -> None:
    operation, added, written, rewritten = CASES[name]
    assert added_fragments(operation) == added
    assert written_fragments(operation) == written
    assert rewritten_fragments(operation) == rewritten


def test_files_indices_and_schemas_are_found() -> None:
    file = DataFile("new.lance", (0,), (0,), 2, 1)
    assert replacing_files(DataReplacement((Replacement(0, file),))) == (file,)
    assert new_indices(CreateIndex(new_indices=(INDEX,))) == (INDEX,)
    assert [new_schema(item) for item in (Project(SCHEMA), Append(()))] == [SCHEMA, None]


def _holds(kind: Any, wanted: str) -> bool:
    """Whether a field of a dataclass, or of the dataclasses inside, is annotated with a type."""
    return is_dataclass(kind) and any(re.search(rf"\b{wanted}\b", str(item.type)) for item in fields(kind))


def test_every_operation_with_fragments_is_known() -> None:
    """A new operation with fragments, files, indices or a schema of its own needs a row in `table/carried.py`."""
    found = {
        kind.name: {wanted for wanted in ("Fragment", "RewriteGroup", "Replacement", "IndexMetadata", "Schema")
                    if _holds(kind, wanted)}
        for kind in OPERATIONS
    }  # fmt: skip
    assert {name: holds for name, holds in found.items() if holds} == {
        "Append": {"Fragment"},
        "Overwrite": {"Fragment", "Schema"},
        "Merge": {"Fragment", "Schema"},
        "Update": {"Fragment"},
        "Delete": {"Fragment"},
        "Rewrite": {"IndexMetadata", "RewriteGroup"},  # the reuse index, which has no files
        "DataReplacement": {"Replacement"},
        "CreateIndex": {"IndexMetadata"},
        "Project": {"Schema"},
    }


@pytest.mark.parametrize("name", CASES)
def test_the_history_of_a_table_reads_every_operation(name: str) -> None:
    """An overlay has groups too, and they hold no fragments."""
    operation, added, _, rewritten = CASES[name]
    found = new_fragments(Transaction(1, "u", operation))
    expected = rewritten or added
    assert found is None if name in ("merge", "delete", "reserve", "overlay") else tuple(found or ()) == expected
