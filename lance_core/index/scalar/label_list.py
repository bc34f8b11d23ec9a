"""Label list: for each label the set of rows whose list holds it.

::

    tags [[x, z], null, [x, null]]     keys [null, x, z]     bitmaps [{2}, {0, 2}, {0}]
    global buffer 1 = rows whose list is null {1}; metadata lance:label_list_nulls = "1"

(Spec: FORMAT E.3; index version 1.)
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pyarrow import compute

from lance_core.arrow.kinds import list_type
from lance_core.arrow_numpy import arrow_of, numpy_of
from lance_core.expr import ast
from lance_core.expr.ast import Expr
from lance_core.format.index import IndexFile
from lance_core.format.index_details import PlainDetails
from lance_core.index.base import ID, VALUE, Answer, IndexFolder, IndexKind, gather
from lance_core.index.memory import OPTION, memory_bytes
from lance_core.index.scalar.external_sort import in_order as sorted_parts
from lance_core.index.scalar.external_sort import is_ordered
from lance_core.index.scalar.id_lookup import STEP, Places
from lance_core.index.scalar.postings import Postings, write_postings
from lance_core.index.scalar.predicates import HAS_ALL, elements_of, made_of
from lance_core.index.scalar.row_sets import Holding
from lance_core.index.scalar.verify import in_order, require
from lance_core.kernels.sort import distinct
from lance_core.rowids.selection import AddressSet, address_set, encode_address_set

pc: Any = compute  # the stubs know only some of what the kernels take


def train(
    folder: IndexFolder, batches: Iterable[pa.RecordBatch], value_type: pa.DataType, *, memory_limit: int | None = None
) -> tuple[IndexFile, ...]:
    """Sort the rows by the labels of their lists, on disk where they do not fit the memory that may be used."""
    missing: list[AddressSet] = []
    labels = _labels(batches, missing)
    parts = sorted_parts(labels, list_type(value_type).value_type, limit=memory_bytes(memory_limit))
    # All batches have passed when the first part is there, and with them the rows without a list.
    parts = itertools.chain([*itertools.islice(parts, 1)], parts)
    buffer = encode_address_set(_union(missing))
    metadata = {"lance:label_list_nulls": b"1"}
    return (write_postings(folder, parts, list_type(value_type).value_type, metadata=metadata, buffers=[buffer]),)


def _labels(batches: Iterable[pa.RecordBatch], missing: list[AddressSet]) -> Iterator[pa.RecordBatch]:
    """Each label with its row; rows without a list are noted in `missing`."""
    for batch in batches:
        lists, ids = batch.column(VALUE), numpy_of(batch.column(ID))
        if lists.null_count:
            missing.append(address_set(ids[numpy_of(lists.is_null(), may_copy=True)]))
        parents = numpy_of(pc.list_parent_indices(lists)).astype(np.int64)
        yield pa.RecordBatch.from_arrays([pc.list_flatten(lists), arrow_of(ids[parents])], [VALUE, ID])


class LabelList:
    """An open label list index."""

    streams: ClassVar[bool] = False

    def __init__(self, folder: IndexFolder, value_type: pa.DataType, path: tuple[str, ...]) -> None:
        self._postings = Postings(folder, ("label",))
        self._type = value_type

    def search(self, part: Expr) -> Answer | None:
        """The rows whose list holds the requested labels, exactly."""
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

    def verify_rows(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Each row is in the sets of its labels and in no others."""
        lists, ids = in_order(*gather(batches, self._type))
        sets, keys = self._postings.row_sets(), self._postings.keys()
        if sets is None:
            self._compare_pairs(lists, ids, keys)
            return
        require(len(sets.firsts) == len(keys) + 1, "the numbers of labels and of sets differ")
        # As many pairs as the sets have, each of them in a set: then there are no others.
        rows, holding, total, num_keys = Places(ids), Holding(sets), 0, max(self._postings.num_keys, 1)
        for first in range(0, len(ids), STEP):
            numbers, parents = self._numbered(lists.slice(first, STEP), keys)
            owners, numbers = np.divmod(distinct(parents * num_keys + numbers), num_keys)
            count = holding.count(numbers.astype(np.int32), ids[first : first + STEP][owners])
            require(count == len(numbers), "a row is not in the set of its label")
            total += count
        told = sum(int((rows.of(stored) >= 0).sum()) for _, stored in sets.pairs())
        require(told == total, "a row is in the set of a label that it does not have")

    def _compare_pairs(self, lists: Any, ids: Any, keys: Any) -> None:
        numbers, parents = self._numbered(lists, keys)
        rows, have = Places(ids), [np.empty(0, np.int64)]
        for positions, stored in self._postings.pairs(ids):
            found = rows.of(stored)
            is_here = found >= 0
            have.append(positions[is_here] * len(ids) + found[is_here])
        wanted = distinct(numbers * len(ids) + parents)
        require(np.array_equal(np.sort(np.concatenate(have)), wanted), "the rows of a label differ from the table's")

    def _numbered(self, lists: Any, keys: Any) -> tuple[Any, Any]:
        """The number of each label, and of the list it is in; int64."""
        labels, parents = pc.list_flatten(lists), numpy_of(pc.list_parent_indices(lists)).astype(np.int64)
        numbers = pc.index_in(labels, keys.cast(labels.type), skip_nulls=False)
        require(numbers.null_count == 0, "a label has no set")
        return numpy_of(numbers).astype(np.int64), parents

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
    return is_list and is_ordered(list_type(value_type).value_type)


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
    parameters=frozenset({OPTION}),
)
