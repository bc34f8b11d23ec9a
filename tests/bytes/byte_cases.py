"""The matrix: which columns a case holds, and what the official library itself cannot keep.

    case_table("2.0", 1025, "some", "runs")      one column for each type that 2.0 knows, named after its pool

Nothing is left out for a limit of ours: `limit_of` names limits of the official writer, and `test_byte_limits.py` checks
that it still refuses each of them.
"""

from __future__ import annotations

import pyarrow as pa

from tests.bytes import byte_pools as pools

VERSIONS = ("2.0", "2.1", "2.2")
SMALL = (1, 1023, 1024, 1025)
LARGE = 100_000

NEEDS_2_2 = (
    "map",
    "map_struct",
    "map_list",
    "map_map",
    "list_map",
    "large_list_map",
    "struct_map",
    "fsl_struct",
    "fsl_struct_nulls",
)
VIEWS = tuple(pools.VIEWS)

ALONE = ("fsl_struct", "struct_empty")
"""Beginnings of names of columns that the official reader gets wrong, or gets others beside them wrong."""

MAP_OR_LIST_OF_STRUCT = "maps and fixed-size lists of structs begin with 2.2"
NULL_STRUCT = "2.0 keeps no nulls of structs"
VIEW = "the 2.0 writer takes no views"
NULL_EMPTY_STRUCT = "nulls of structs without fields are refused, or lost when all are null"


def limit_of(name: str, column: pa.Array, version: str) -> str | None:
    """Why the official writer refuses this column in this version; None when it does not."""
    if version != "2.2" and name in NEEDS_2_2:
        return MAP_OR_LIST_OF_STRUCT
    if version == "2.0" and holds_null_structs(column):
        return NULL_STRUCT
    if version == "2.0" and name in VIEWS and column.null_count < len(column):
        return VIEW
    if name == "struct_empty" and column.null_count:
        return NULL_EMPTY_STRUCT
    return None


def holds_null_structs(array: pa.Array) -> bool:
    """Whether a struct anywhere in it is null."""
    if pa.types.is_struct(array.type):
        return array.null_count > 0 or any(holds_null_structs(array.field(i)) for i in range(array.type.num_fields))
    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type) or pa.types.is_fixed_size_list(array.type):
        return holds_null_structs(array.flatten())
    return False


def case_table(
    version: str, num_rows: int, nulls: str, distribution: str, names: tuple[str, ...] = tuple(pools.POOLS)
) -> tuple[pa.Table, list[str]]:
    """All columns that the version knows, and the names of those that only we can write (views into 2.0)."""
    columns: dict[str, pa.Array] = {}
    ours_only = []
    for name in names:
        column = pools.column(name, num_rows, nulls, distribution)
        limit = limit_of(name, column, version)
        if limit is None or limit == VIEW:
            columns[name] = column
        if limit == VIEW:
            ours_only.append(name)
    return pa.table(columns), ours_only


def _keys(**settings: str) -> dict[str, str]:
    return {f"lance-encoding:{key.replace('_', '-')}": value for key, value in settings.items()}


_COMPRESSIBLE = (
    "int32_small",
    "int64",
    "double",
    "float_special",
    "decimal128",
    "string_sentences",
    "string_long",
    "binary",
    "fixed_binary_33",
    "bool",
    "list_int_nulls",
    "list_string",
    "fsl_f32",
    "timestamp_us",
    "struct",
)
_SETTINGS: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "zstd": (_keys(compression="zstd"), _COMPRESSIBLE),
    "zstd9": (_keys(compression="zstd", compression_level="9"), ("string_sentences", "double", "binary_long")),
    "lz4": (_keys(compression="lz4"), _COMPRESSIBLE),
    "none": (_keys(compression="none"), _COMPRESSIBLE),
    "fsst": (
        _keys(compression="fsst"),
        ("string", "string_sentences", "string_long", "large_string_long", "binary", "list_string"),
    ),
    "fullzip": (
        _keys(structural_encoding="fullzip"),
        (
            "int64",
            "double",
            "string",
            "string_sentences",
            "binary",
            "list_int_nulls",
            "list_list",
            "fixed_binary_7",
            "fsl_f32",
            "fsl_nulls",
            "struct_nulls",
            "large_list",
            "list_sentences",
        ),
    ),
    "miniblock": (_keys(structural_encoding="miniblock"), ("int64", "string", "list_int_nulls", "fsl_f32", "binary")),
    "rle": (_keys(rle_threshold="1.0"), ("int64", "int32_small", "int16", "float", "bool", "list_int", "date32")),
    "rle_off": (_keys(rle_threshold="0.0"), ("int64", "int32_small", "double")),
    "bss_on": (_keys(compression="zstd", bss="on"), ("double", "float", "float_special", "double_special")),
    "bss_auto": (_keys(compression="lz4", bss="auto"), ("double", "float")),
    "bss_off": (_keys(compression="zstd", bss="off"), ("double", "float")),
    "dict_divisor": (_keys(dict_divisor="1"), ("string", "int64", "double", "decimal128", "large_string", "binary")),
    "dict_ratio": (_keys(dict_size_ratio="1.0"), ("string", "int64", "string_sentences")),
    "dict_never": (_keys(dict_divisor="100000"), ("string", "int64")),
    "dict_zstd": (_keys(dict_values_compression="zstd"), ("string", "int64", "dictionary_of_sentences")),
    "dict_plain": (_keys(dict_values_compression="none"), ("string", "int64")),
    "fullzip_zstd": (
        _keys(structural_encoding="fullzip", compression="zstd"),
        ("string_sentences", "binary_long", "double", "fsl_f32", "list_sentences"),
    ),
    "fullzip_lz4": (
        _keys(structural_encoding="fullzip", compression="lz4"),
        ("string_sentences", "binary_long", "large_string_long"),
    ),
    "fullzip_none": (_keys(structural_encoding="fullzip", compression="none"), ("string_sentences", "int64")),
    "chunks": (_keys(minichunk_size="1024"), ("string", "binary", "int64", "list_string")),
}


def metadata_table(version: str, num_rows: int, nulls: str, distribution: str, *, share: int | None = None) -> pa.Table:
    """A column for every setting and every type it is tried on; with `share` (0 to 4) only every fifth of them."""
    fields, arrays = [], []
    wanted = [(setting, metadata, name) for setting, (metadata, names) in _SETTINGS.items() for name in names]
    for setting, metadata, name in wanted if share is None else wanted[share::5]:
        column = pools.column(name, num_rows, nulls, distribution)
        if limit_of(name, column, version) is None:
            fields.append(pa.field(f"{setting} {name}", column.type, metadata=metadata))
            arrays.append(column)
    return pa.table(arrays, schema=pa.schema(fields))


def settings(version: str, num_rows: int) -> list[tuple[str, pa.Array, dict[str, str]]]:
    """(name, column, field metadata) of every setting on every type, and of packed structs and blobs."""
    table = metadata_table(version, num_rows, "some", "random")
    found = [(item.name, table.column(item.name).chunk(0), _text(item.metadata)) for item in table.schema]
    found += [("packed", packed(num_rows), _keys(packed="true")), ("blob", blobs(num_rows), _keys(blob="true"))]
    return found


def packed(num_rows: int) -> pa.Array:
    """A struct of fixed-width children, for one packed column."""
    children = [pools.column(name, num_rows) for name in ("int32_small", "double", "int16")]
    return pa.StructArray.from_arrays(children, names=["x", "y", "z"])


def blobs(num_rows: int, nulls: str = "some") -> pa.Array:
    """Values for a blob column, empty ones among them."""
    return pools.column("binary_long", num_rows, nulls).cast(pa.large_binary())


def _text(metadata: dict[bytes, bytes]) -> dict[str, str]:
    return {key.decode(): value.decode() for key, value in metadata.items()}


def refused_metadata(table: pa.Table, version: str) -> list[str]:
    """Columns that make the official 2.0 writer panic: its FSST takes no 64-bit offsets, no binary of nulls only, and no few
    strings of nulls only."""
    few = table.num_rows < 1000

    def refuses(name: str) -> bool:
        if name == "fsst large_string_long":
            return True
        return name.startswith("fsst ") and table[name].null_count == table.num_rows and (few or name == "fsst binary")

    return [name for name in table.column_names if version == "2.0" and refuses(name)]
