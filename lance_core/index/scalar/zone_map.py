"""Zone map: bounds and null counts of zones of rows.

::

    zonemap.lance     min, max, null_count, nan_count, fragment_id, zone_start, zone_length (0.34, 0.35: zone_size)
    global buffer 1 = rows that are null (row address map); metadata rows_per_zone = "8192", null_bitmap = "1"

It says where rows may be, so what it picks is tested again; only which rows are null it knows exactly. (Spec: FORMAT E.3.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pyarrow import compute

from lance_core.arrow_numpy import arrow_of, no_values, numpy_of, true_of
from lance_core.errors import InputError
from lance_core.expr import ast
from lance_core.expr.ast import Expr
from lance_core.format.index import IndexFile
from lance_core.format.index_details import Details, ZoneMapDetails
from lance_core.index.base import Answer, IndexFolder, IndexKind, number_of, read_all
from lance_core.index.scalar.bounds import may_match
from lance_core.index.scalar.external_sort import extremes, is_ordered
from lance_core.index.scalar.predicates import is_value_test
from lance_core.index.scalar.verify import (
    NullCheck,
    Zones,
    in_pieces,
    null_mask,
    require,
    require_bounds_of_all,
)
from lance_core.index.scalar.zones import (
    PLACE,
    PLACES,
    ROWS_PER_ZONE,
    Zone,
    Zoned,
    null_rows,
    require_told,
    zone_rows,
    zones_of,
)
from lance_core.rowids.selection import AddressSet, address_set, decode_address_set, encode_address_set

FILE = "zonemap.lance"
_SUMMARY = ("min", "max", "null_count", "nan_count")
_OLD_LENGTH, _OLD_ROWS_PER_ZONE = "zone_size", "zonemap_size"
pc: Any = compute  # the stubs know only some of what the kernels take


def train(
    folder: IndexFolder,
    batches: Iterable[pa.RecordBatch],
    value_type: pa.DataType,
    *,
    rows_per_zone: int = ROWS_PER_ZONE,
) -> tuple[IndexFile, ...]:
    """Summarise the zones; one batch of the column is in memory at a time."""
    if isinstance(rows_per_zone, bool) or not isinstance(rows_per_zone, int) or not 0 < rows_per_zone < 1 << 31:
        raise InputError(f"rows_per_zone must be a positive integer, got {rows_per_zone!r}")
    zones = [_summary(zone) for zone in zones_of(batches, rows_per_zone)]
    schema = pa.schema(
        [
            pa.field("min", value_type),
            pa.field("max", value_type),
            pa.field("null_count", pa.uint32(), nullable=False),
            pa.field("nan_count", pa.uint32(), nullable=False),
            *PLACE,
        ]
    )
    columns = [
        _array([zone.low for zone in zones], value_type),
        _array([zone.high for zone in zones], value_type),
        *(pa.array(counts, item.type) for counts, item in zip(_counts(zones), [*schema][2:], strict=True)),
    ]
    metadata = {"rows_per_zone": str(rows_per_zone).encode(), "null_bitmap": b"1"}
    buffer = encode_address_set(address_set(null_rows([zone.nulls for zone in zones])))
    table = pa.Table.from_arrays(columns, schema=schema)
    return (folder.write(FILE, table, schema, metadata=metadata, buffers=[buffer]),)


@dataclass(frozen=True, eq=False)
class _Summary:
    low: Any
    high: Any
    nulls: Any
    counts: tuple[int, ...]


def _summary(zone: Zone) -> _Summary:
    low, high = extremes(zone.values)
    nulls = zone.addresses[:0]
    if zone.values.null_count:
        nulls = zone.addresses[numpy_of(zone.values.is_null(), may_copy=True)]
    return _Summary(low, high, nulls, (len(nulls), _num_nans(zone.values), zone.fragment_id, zone.start, zone.length))


def _counts(zones: list[_Summary]) -> list[list[int]]:
    """null_count, nan_count, fragment_id, zone_start, zone_length: a list of each."""
    return [[zone.counts[number] for zone in zones] for number in range(5)]


def _array(scalars: list[Any], value_type: pa.DataType) -> Any:
    # Through one-element arrays: Python values would lose nanoseconds and the like.
    return pa.concat_arrays([pa.repeat(scalar, 1) for scalar in scalars]) if scalars else no_values(value_type)


def _num_nans(values: Any) -> int:
    return int(_is_nan(values).sum()) if pa.types.is_floating(values.type) else 0


def _is_nan(values: Any) -> Any:
    """Whether each float is not a number; null is not."""
    return true_of(pc.is_nan(values))


class ZoneMap(Zoned):
    """An open zone map: all of it is in memory."""

    def __init__(self, folder: IndexFolder, value_type: pa.DataType, path: tuple[str, ...]) -> None:
        opened = folder.open(FILE)
        self._type = value_type
        is_old = any(item.name == _OLD_LENGTH for item in opened.schema.top_level)
        names = [*_SUMMARY, *PLACES[:-1], _OLD_LENGTH if is_old else PLACES[-1]]
        self._zones = read_all(opened, names).rename_columns([*_SUMMARY, *PLACES])
        self.rows_per_zone = number_of(opened, _OLD_ROWS_PER_ZONE if is_old else "rows_per_zone", ROWS_PER_ZONE)
        self._note_ends(opened, self._zones)
        # Of some types the official library writes no bounds: such a zone may hold anything.
        require_told(self._zones, ("null_count",), where=opened.path)
        nulls, lengths = (numpy_of(self._zones.column(name)) for name in ("null_count", "zone_length"))
        self._untold = numpy_of(self._zones.column("max").is_null(), may_copy=True) & (nulls < lengths)
        self._has_untold = bool(self._untold.any())
        self._nulls: AddressSet | None = None
        where = opened.schema.metadata.get("null_bitmap")
        if where is not None and where.isdigit() and 0 < int(where) < opened.num_global_buffers:
            self._nulls = decode_address_set(opened.global_buffer(int(where)), what=f"the nulls of {opened.path}")

    def search(self, part: Expr) -> Answer | None:
        """The zones that may hold rows for the test; for IS NULL the rows themselves."""
        if isinstance(part, ast.IsNull) and self._nulls is not None:
            return Answer(self._nulls, is_exact=True)
        return Answer(zone_rows(self._zones, may_match(part, self._zones) | self._untold), is_exact=False)

    def single_values(self) -> dict[int, Any]:
        """Fragment id -> the value that all its zones have alone, without nulls or NaN."""
        low, high = self._zones.column("min"), self._zones.column("max")
        nulls, nans = (
            numpy_of(self._zones.column(name).fill_null(1), may_copy=True) for name in ("null_count", "nan_count")
        )
        is_single = true_of(pc.equal(low, high)) & (nulls == 0) & (nans == 0)
        owners, first, zones = np.unique(
            numpy_of(self._zones.column("fragment_id")), return_index=True, return_inverse=True
        )  # the first zone of each fragment, and the place of each zone's fragment among them
        is_single &= true_of(pc.equal(low, low.take(arrow_of(first[zones]))))
        counts = np.bincount(zones, weights=~is_single, minlength=len(owners))
        kept = np.flatnonzero(counts == 0)
        return {int(owners[place]): low[int(first[place])] for place in kept.tolist()}

    streams: ClassVar[bool] = True

    def verify_rows(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Each row is in a zone that allows for its value; the rows told to be null are."""
        require_told(self._zones, ("nan_count",), where=FILE)
        zones_of_rows, told = Zones(self._zones), NullCheck(self._nulls)
        nulls, nans = (numpy_of(self._zones.column(name)) for name in ("null_count", "nan_count"))
        counted = np.zeros(len(nulls), np.int64)
        for values, ids in in_pieces(batches, self._type):
            zones, is_null = zones_of_rows.of(ids), null_mask(values)
            if is_null.any():
                np.add.at(counted, zones[is_null], 1)
            told.note(ids, is_null)
            if is_ordered(self._type):
                self._require_bounds(values, zones, is_null, nans)
        require((counted <= nulls).all(), "a zone has more nulls than it declares")
        told.require_same()

    def _require_bounds(self, values: Any, zones: Any, is_null: Any, nans: Any) -> None:
        if not (self._has_untold or is_null.any() or pa.types.is_floating(self._type)):
            require_bounds_of_all(self._zones, zones, values)
            return
        kept = ~(is_null | self._untold[zones])
        if pa.types.is_floating(self._type):
            is_nan = _is_nan(values)
            require((nans[zones[is_nan]] > 0).all(), "a zone has NaN values, but declares none")
            kept &= ~is_nan
        values, zones = (values, zones) if kept.all() else (values.filter(arrow_of(kept)), zones[kept])
        require_bounds_of_all(self._zones, zones, values)

    def statistics(self) -> dict[str, Any]:
        """The number of zones, and the most rows one has."""
        return {"num_zones": self._zones.num_rows, "rows_per_zone": self.rows_per_zone}


def describe(value_type: pa.DataType, parameters: Any) -> ZoneMapDetails:
    """What the manifest says: variable-width columns may have seeds in data files."""
    t = pa.types
    is_variable = any(test(value_type) for test in (t.is_string, t.is_large_string, t.is_binary, t.is_large_binary))
    return ZoneMapDetails(parameters.get("rows_per_zone", ROWS_PER_ZONE), is_variable, has_null_bitmap=True)


def options_of(_folder: IndexFolder, details: Details | None) -> Mapping[str, Any]:
    """The size of zones a segment was built with."""
    if isinstance(details, ZoneMapDetails) and details.rows_per_zone:
        return {"rows_per_zone": details.rows_per_zone}
    return {}


KIND = IndexKind(
    name="ZONEMAP",
    title="ZoneMap",
    details="ZoneMapIndexDetails",
    version=0,
    written_version=0,
    accepts=is_ordered,
    can_answer=is_value_test,
    train=train,
    open=ZoneMap,
    describe=describe,
    parameters=frozenset({"rows_per_zone"}),
    needs_addresses=True,
    options_of=options_of,
)
