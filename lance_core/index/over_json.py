"""An index over the values at a path in JSON documents: an index of another kind, built over the extracted values.

::

    docs {"a": 3} {"a": 5} {}     path "a"     values 3, 5, null: int64     a B-tree over them
    json_get_int(docs, 'a') > 3   becomes   value > 3

Values are int64, float64, bool or string, whichever the documents hold; an index answers the `json_get_…` of that type and
no other, since the others convert. Kinds under it come from the registry, which hands them in. (Spec: FORMAT E.1, E.3.)

The values at a path in JSON documents, typed by all of them; what does not fit the memory goes to this machine's disk.

::

    batches of documents     {"a": 3} {"a": 5}  |  {}  |  {"a": 0.5}
    extracted, one by one    int64              |  null|  float64        the type of the whole: float64
    handed on                3.0 5.0            |  null|  0.5            the batches in their order, in that type
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from lance_core.arrow import schema_to_arrow
from lance_core.arrow_numpy import arrow_of
from lance_core.errors import CorruptFileError, InputError, UnsupportedFeatureError
from lance_core.expr import ast
from lance_core.expr.ast import Expr
from lance_core.expr.coerce import plain
from lance_core.expr.json_path import MISSING, parse_path, select
from lance_core.expr.json_path import Path as Steps
from lance_core.format.index import IndexDetails, IndexFile
from lance_core.format.index_details import Details, JsonDetails
from lance_core.index.base import ID, VALUE, Answer, IndexFolder, IndexKind, OpenIndex, gather
from lance_core.index.memory import memory_bytes
from lance_core.scratch import BatchFile, scratch_folder
from lance_core.wire.index import decode_details, encode_details

_COLUMN = "value"
_STEP = 1 << 16
_GETTERS: tuple[tuple[str, pa.DataType], ...] = (
    ("json_get_int", pa.int64()),
    ("json_get_float", pa.float64()),
    ("json_get_bool", pa.bool_()),
    ("json_get_string", pa.string()),
)
_OF_IDS = (b"BitmapIndexDetails", b"NGramIndexDetails")
"""What holds stable row ids under a path; nothing says so of other kinds, which the official library refuses or misreads."""
_SEARCHED = (b"BTreeIndexDetails", b"BitmapIndexDetails", b"ZoneMapIndexDetails", b"NGramIndexDetails")
_TYPED_BY = {
    "BTREE": ("page_lookup.lance", "min"),
    "BITMAP": ("bitmap_page_lookup.lance", "keys"),
    "ZONEMAP": ("zonemap.lance", "min"),
    "NGRAM": None,
}
"""Which file and column of a target tell the type of its values; an n-gram index is of texts. A bloom filter cannot tell."""


def json_kind(kinds: Sequence[IndexKind]) -> IndexKind:
    """The kind `JSON` over those of `kinds` that can be its target."""
    targets = {kind.name: kind for kind in kinds if kind.name in _TYPED_BY}

    def train(
        folder: IndexFolder,
        batches: Iterable[pa.RecordBatch],
        value_type: pa.DataType,
        *,
        path: str,
        target_index_type: str = "BTREE",
        target_index_parameters: str | Mapping[str, Any] | None = None,
    ) -> tuple[IndexFile, ...]:
        target = _target(targets, target_index_type)
        options = _options(target, target_index_parameters)
        limit = options.get("memory_limit")
        with scratch_folder("the values of an index over JSON") as place:
            found = extracted(batches, value_type, path, place=place, limit=memory_bytes(limit))
            if not target.accepts(found.type):
                raise InputError(f"{target.name} does not support {found.type}, the type of the values at {path!r}")
            return target.train(folder, found.batches(), found.type, **options)

    def describe(_type: pa.DataType, parameters: Mapping[str, Any]) -> Details:
        target = _target(targets, parameters.get("target_index_type", "BTREE"))
        path = parameters.get("path")
        if not isinstance(path, str):
            raise InputError(f"a JSON index needs a path, got {path!r}", cure="Pass path='a.b'.")
        parse_path(path)
        options = _options(target, parameters.get("target_index_parameters"))
        # The type of the values is not known here; of what it decides (seeds of texts) the official library writes none.
        return JsonDetails(path, encode_details(target.describe(pa.int64(), options)))

    def open_index(folder: IndexFolder, _type: pa.DataType, _path: tuple[str, ...]) -> OpenIndex:
        details = decode_details(folder.details) if folder.details is not None else None
        if not isinstance(details, JsonDetails) or details.target is None:
            raise CorruptFileError(f"{folder.path}: the manifest entry of this JSON index does not name its target index")
        target = next((kind for kind in targets.values() if kind.details == details.target.kind), None)
        if target is None:
            raise UnsupportedFeatureError(
                f"{folder.path}: searching a JSON index over {details.target.kind} is not implemented"
            )
        return JsonIndex(folder, details, target)

    def options_of(folder: IndexFolder, details: Details | None) -> Mapping[str, Any]:
        if not isinstance(details, JsonDetails) or details.target is None:
            raise CorruptFileError(f"{folder.path}: the manifest entry of this JSON index does not name its target index")
        target = next((kind for kind in targets.values() if kind.details == details.target.kind), None)
        if target is None:
            raise UnsupportedFeatureError(
                f"{folder.path}: building a JSON index over {details.target.kind} is not implemented"
            )
        options = dict(target.options_of(folder, decode_details(details.target)))
        return {"path": details.path, "target_index_type": target.name, "target_index_parameters": options}

    return IndexKind(
        name="JSON",
        title="Json",
        details="JsonIndexDetails",
        version=0,
        written_version=0,
        accepts=_is_json,
        can_answer=_asks_json,
        train=train,
        open=open_index,
        describe=describe,
        parameters=frozenset({"path", "target_index_type", "target_index_parameters"}),
        options_of=options_of,
    )


def is_searched(details: IndexDetails) -> bool:
    """Whether an index is none over JSON, or one over a target that is searched here."""
    return details.kind != "JsonIndexDetails" or any(name in details.value for name in _SEARCHED)


def may_hold_ids(details: IndexDetails) -> bool:
    """Whether an index can be used in a table with stable row ids: any but those over a path that hold addresses."""
    return details.kind != "JsonIndexDetails" or any(name in details.value for name in _OF_IDS)


class JsonIndex:
    """An open index over a path: questions about the path become questions about a column of its values."""

    streams: ClassVar[bool] = False

    def __init__(self, folder: IndexFolder, details: JsonDetails, target: IndexKind) -> None:
        self._path = details.path
        self._keys = _keys(details.path)
        value_type = _value_type(folder, target)
        self._getter = next((name for name, of in _GETTERS if of == value_type), "")
        self._type = value_type
        self._target, self._open = target, target.open(folder, value_type, (_COLUMN,))

    def search(self, part: Expr) -> Answer | None:
        """The rows for a test of this path by the function of its type; None for any other test."""
        asked = _rewritten(part, self._as_column)
        if any(name != _COLUMN for name in ast.columns_of(asked)) or not self._target.can_answer(asked):
            return None
        return self._open.search(asked)

    def _as_column(self, expr: Expr) -> Expr | None:
        if not isinstance(expr, ast.Call) or expr.name != self._getter or self._keys is None:
            return None
        keys: list[object] = []
        while isinstance(expr, ast.Call) and len(expr.arguments) == 2 and isinstance(expr.arguments[1], ast.Literal):
            keys.insert(0, expr.arguments[1].value)
            inner = expr.arguments[0]
            if isinstance(inner, ast.Column):
                return ast.Column((_COLUMN,)) if tuple(keys) == self._keys else None
            if not isinstance(inner, ast.Call) or inner.name != "json_get":
                return None
            expr = inner
        return None

    def verify_rows(self, batches: Iterable[pa.RecordBatch]) -> None:
        """What is at the path in each row is what the index under it says."""
        documents, ids = gather(batches, pa.json_())
        parts = (extract(documents.slice(first, _STEP), self._path) for first in range(0, max(1, len(ids)), _STEP))
        # Which type the values are of is for all rows to say: whole numbers of some are floats of the others.
        values = pa.concat_arrays([part.cast(self._type, safe=self._type != pa.float64()) for part in parts])
        schema = pa.schema([pa.field(VALUE, values.type), pa.field(ID, pa.uint64())])
        self._open.verify_rows([pa.RecordBatch.from_arrays([values, arrow_of(ids)], schema=schema)])

    def statistics(self) -> dict[str, Any]:
        """The path, and what the index under it tells."""
        return {"path": self._path, "target": self._target.title, **self._open.statistics()}


def _value_type(folder: IndexFolder, target: IndexKind) -> pa.DataType:
    place = _TYPED_BY[target.name]
    if place is None:
        return pa.string()
    schema = schema_to_arrow(folder.open(place[0]).schema)
    if place[1] not in schema.names:
        raise CorruptFileError(f"{folder.path}/{place[0]} has no column {place[1]}")
    found: pa.DataType = schema.field(place[1]).type
    return found


def _keys(path: str) -> tuple[object, ...] | None:
    """The path as the keys of `json_get`; None when it has steps that are no plain keys."""
    steps = parse_path(path)
    return steps if steps and all(isinstance(step, str) and not step.isdigit() for step in steps) else None


def _target(targets: Mapping[str, IndexKind], name: object) -> IndexKind:
    wanted = str(name).upper().replace("_", "")
    found = targets.get(wanted) if isinstance(name, str) else None
    if found is None:
        raise InputError(f"a JSON index over {name!r} is not implemented; expected one of {', '.join(sorted(targets))}")
    return found


def _options(target: IndexKind, given: str | Mapping[str, Any] | None) -> dict[str, Any]:
    try:
        options = json.loads(given) if isinstance(given, str) else dict(given or {})
    except ValueError:
        options = None
    if not isinstance(options, dict) or not set(options) <= target.parameters:
        known = ", ".join(sorted(target.parameters)) or "nothing"
        raise InputError(f"target_index_parameters are {given!r}; {target.name} takes {known}")
    return options


def _rewritten(expr: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """The expression with some nodes exchanged, outermost first."""
    changed = change(expr)
    if changed is not None:
        return changed
    values: dict[str, Any] = {}
    for item in fields(expr):
        value = getattr(expr, item.name)
        if isinstance(value, tuple):
            values[item.name] = tuple(_rewritten(one, change) if _is_node(one) else one for one in value)
        elif _is_node(value):
            values[item.name] = _rewritten(value, change)
    return replace(expr, **values)


def _is_node(value: object) -> bool:
    return isinstance(value, Expr.__args__)


def _is_json(value_type: pa.DataType) -> bool:
    return getattr(value_type, "extension_name", "") == "arrow.json"


def _asks_json(part: Expr) -> bool:
    names = {name for name, _ in _GETTERS}
    return any(isinstance(node, ast.Call) and node.name in names for node in ast.walk(part))


_DECODER: Any = json.JSONDecoder()  # the stubs do not know its scanner
_SHARE = 8
"""What the index under it may use is for that: values that wait for it get an eighth."""
_NAMES = {pa.int64(): "int", pa.float64(): "float", pa.bool_(): "bool", pa.string(): "str"}


@dataclass(frozen=True)
class Extracted:
    """Values with their ids, in parts: in memory, or in files."""

    type: pa.DataType
    parts: tuple[pa.RecordBatch | BatchFile, ...]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """One after the other, in the type of the whole."""
        schema = pa.schema([pa.field(VALUE, self.type), pa.field(ID, pa.uint64())])
        for part in self.parts:
            for batch in part if isinstance(part, BatchFile) else (part,):
                values = batch.column(0).cast(self.type, safe=self.type != pa.float64())
                yield pa.RecordBatch.from_arrays([values, batch.column(1)], schema=schema)


def extracted(
    batches: Iterable[pa.RecordBatch], value_type: pa.DataType, path: str, *, place: Path, limit: int
) -> Extracted:
    """What is at a path in each document; beyond its share of `limit` bytes it is kept in files in the folder `place`.

    Raises InputError for mixed or other values.
    """
    parts: list[pa.RecordBatch | BatchFile] = []
    waiting: list[pa.RecordBatch] = []
    types: set[pa.DataType] = set()
    size = 0
    for batch in batches:
        documents, ids = gather([batch], value_type)
        for first in range(0, len(ids), _STEP):
            values = extract(documents.slice(first, _STEP), path)
            if values.null_count == len(values):
                values = pa.nulls(len(values))
            else:
                types.add(values.type)
            made = pa.RecordBatch.from_arrays([values, arrow_of(ids[first : first + _STEP])], names=[VALUE, ID])
            waiting.append(made)
            size += made.nbytes
        if size > limit // _SHARE:
            parts += _written(waiting, place, first=len(parts))
            waiting, size = [], 0
    return Extracted(_joint_type(path, types), (*parts, *waiting))


def _written(batches: list[pa.RecordBatch], place: Path, *, first: int) -> Iterator[BatchFile]:
    """The batches in files, in their order: neighbours of one type share a file."""
    for number, (schema, group) in enumerate(groupby(batches, key=lambda batch: batch.schema), first):
        yield BatchFile.write(place / f"{number}.arrow", schema, group)


def _joint_type(path: str, types: set[pa.DataType]) -> pa.DataType:
    if types == {pa.int64(), pa.float64()}:
        return pa.float64()
    if len(types) > 1:
        raise _mixed(path, {_NAMES[found] for found in types})
    return next(iter(types), pa.string())


def extract(documents: Any, path: str) -> Any:
    """What is at a path in each document, as int64, float64, bool or string. Raises InputError for mixed or other values."""
    values = _found(plain(documents).to_pylist(), parse_path(path))
    kinds = {*map(type, values)} - {type(None)}
    if kinds == {int}:
        with suppress(OverflowError, pa.ArrowInvalid):
            return pa.array(values, pa.int64())
    if kinds and kinds <= {int, float}:
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    if kinds == {bool}:
        return pa.array(values, pa.bool_())
    if kinds <= {str}:
        return pa.array(values, pa.string())
    raise _mixed(path, {kind.__name__ for kind in kinds})


def _mixed(path: str, names: Collection[str]) -> InputError:
    return InputError(
        f"the values at {path!r} have the types {', '.join(sorted(names))}; expected only numbers, only strings or only "
        "booleans",
        cure="Index a path whose values have one type.",
    )


def _found(texts: list[str | None], steps: Steps) -> list[Any]:
    """What is at a path in each text; None where there is nothing."""
    found: list[Any] = []
    for text in texts:
        value: Any = None
        if text is not None:
            try:
                value, end = _DECODER.scan_once(text, 0)
            except StopIteration:
                end = -1
            if end != len(text):
                value = json.loads(text)
        if len(steps) == 1 and type(steps[0]) is str:
            value = value.get(steps[0]) if type(value) is dict else None
        elif value is not None:
            value = select(value, steps)
        found.append(None if value is MISSING else value)
    return found
