"""Label list: for each label the set of rows whose list holds it.

::

    tags [[x, z], null, [x, null]]     keys [null, x, z]     bitmaps [{2}, {0, 2}, {0}]
    global buffer 1 = rows whose list is null {1}; metadata lance:label_list_nulls = "1"

(Spec: FORMAT E.3; index version 1.)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute

from lance_core.expr import ast
from lance_core.expr.ast import Expr
from lance_core.format.index import IndexFile
from lance_core.format.index_details import PlainDetails
from lance_core.index.base import Answer, IndexFolder, IndexKind, gather
from lance_core.index.scalar.agreement import require
from lance_core.index.scalar.order import is_ordered
from lance_core.index.scalar.places import Places
from lance_core.index.scalar.postings import Postings, write_postings
from lance_core.index.scalar.shapes import HAS_ALL, elements_of, made_of
from lance_core.kernels.sort import distinct
from lance_core.rowids.selection import AddressSet, address_set, encode_address_set

pc: Any = compute  # the stubs know only some of what the kernels take


def train(folder: IndexFolder, batches: Iterable[pa.RecordBatch], value_type: pa.DataType) -> tuple[IndexFile, ...]:
    """Group the rows by the labels of their lists."""
    lists, ids = gather(batches, value_type)
    labels, parents = pc.list_flatten(lists), pc.list_parent_indices(lists).to_numpy()
    missing = ids[lists.is_null().to_numpy(zero_copy_only=False)]
    buffer = encode_address_set(address_set(missing))
    metadata = {"lance:label_list_nulls": b"1"}
    return (write_postings(folder, labels, ids[parents.astype(np.int64)], metadata=metadata, buffers=[buffer]),)


class LabelList:
    """An open label list index."""

    def __init__(self, folder: IndexFolder, value_type: pa.DataType, path: tuple[str, ...]) -> None:
        self._postings = Postings(folder, ("label",))
        self._type = value_type

    def search(self, part: Expr) -> Answer | None:
        """The rows whose list holds what is asked for, exactly."""
        return Answer(self._rows(part), is_exact=True)

    def _rows(self, part: Expr) -> AddressSet:
        if isinstance(part, ast.Or):
            return _union([self._rows(item) for item in part.items])
        if isinstance(part, ast.And):
            return _intersection([self._rows(item) for item in part.items])
        wanted = elements_of(part)
        assert wanted is not None
        assert isinstance(part, ast.Call)
        found = [self._holding(label) for label in wanted]
        return _intersection(found) if part.name == HAS_ALL else _union(found)

    def _holding(self, label: ast.Literal) -> AddressSet:
        return self._postings.rows(self._postings.matching(ast.Compare("=", ast.Column(("label",)), label)))

    def agree_with(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Each row is in the sets of its labels and in no others."""
        lists, ids = gather(batches, self._type)
        labels, parents = pc.list_flatten(lists), pc.list_parent_indices(lists).to_numpy().astype(np.int64)
        rows, keys, have = Places(ids), self._postings.keys(), [np.empty(0, np.int64)]
        for positions, stored in self._postings.pairs(ids):
            found = rows.of(stored)
            is_here = found >= 0
            have.append(positions[is_here] * len(ids) + found[is_here])
        numbers = pc.index_in(labels, keys.cast(labels.type), skip_nulls=False)
        require(numbers.null_count == 0, "a label has no set")
        wanted = distinct(numbers.to_numpy() * np.int64(len(ids)) + parents)
        require(np.array_equal(np.sort(np.concatenate(have)), wanted), "the rows of a label are others than in the table")

    def statistics(self) -> dict[str, Any]:
        """The number of distinct labels."""
        return {"num_bitmaps": self._postings.num_keys}


def _union(sets: list[AddressSet]) -> AddressSet:
    found = AddressSet()
    for rows in sets:
        found = found | rows
    return found


def _intersection(sets: list[AddressSet]) -> AddressSet:
    found = sets[0]
    for rows in sets[1:]:
        found = found & rows
    return found


def accepts(value_type: pa.DataType) -> bool:
    """Lists of plain values."""
    is_list = pa.types.is_list(value_type) or pa.types.is_large_list(value_type)
    return is_list and is_ordered(value_type.value_type)


KIND = IndexKind(
    name="LABEL_LIST",
    title="LabelList",
    details="LabelListIndexDetails",
    version=1,
    written_version=1,
    accepts=accepts,
    can_answer=lambda part: made_of(part, lambda leaf: elements_of(leaf) is not None),
    train=train,
    open=LabelList,
    describe=lambda _type, _parameters: PlainDetails("LabelListIndexDetails"),
)
