"""ALTER TABLE of Spark's SQL: columns added, dropped, renamed, retyped, and properties, each kind as one version.

::

    [{"change": "add", "column": ["price"], "type": "\\"double\\"", "nullable": true}, {"change": "drop", "column": ["old"]}]

New columns are null in the rows that are there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from lance_core.errors import InputError, UnsupportedFeatureError

if TYPE_CHECKING:
    from lance_core.dataset import LanceDataset

Change = Mapping[str, Any]


def alter(uri: str, storage: Mapping[str, str], changes: Sequence[Change]) -> None:
    """Carry out changes in order, neighbours of one kind at once. UnsupportedFeatureError before any for an unknown kind."""
    from lance_core.dataset import dataset

    unknown = [str(item["change"]) for item in changes if item["change"] not in _CHANGES]
    if unknown:
        raise UnsupportedFeatureError(f"ALTER TABLE of a lance table cannot do: {unknown[0]}", uri=uri)
    for kind, same in groupby(changes, key=lambda item: str(item["change"])):
        _CHANGES[kind](dataset(uri, storage_options=dict(storage)), [*same])


def _add(table: LanceDataset, changes: Sequence[Change]) -> None:
    from pyspark.sql.types import StructField, StructType, _parse_datatype_json_string

    from lance_core.spark.types import arrow_schema

    for item in changes:
        if len(item["column"]) > 1:
            raise UnsupportedFeatureError(f"a field cannot be added to a struct: {'.'.join(item['column'])}", uri=table.uri)
        if not item["nullable"]:
            raise InputError(
                f"new column {item['column'][0]!r} is NOT NULL, and the rows that are there have no value for it",
                uri=table.uri,
                cure="Add it without NOT NULL.",
            )
    kinds = [_parse_datatype_json_string(item["type"]) for item in changes]
    names = [item["column"][0] for item in changes]
    fields = StructType([StructField(name, kind, True) for name, kind in zip(names, kinds, strict=True)])
    table.add_columns(arrow_schema(fields))


def _drop(table: LanceDataset, changes: Sequence[Change]) -> None:
    wanted = [".".join(item["column"]) for item in changes]
    skipped = [item for item in changes if item["if_exists"] and item["column"][0] not in table.schema.names]
    table.drop_columns([name for name, item in zip(wanted, changes, strict=True) if item not in skipped])


def _rename(table: LanceDataset, changes: Sequence[Change]) -> None:
    table.alter_columns(*({"path": ".".join(item["column"]), "name": item["name"]} for item in changes))


def _retype(table: LanceDataset, changes: Sequence[Change]) -> None:
    from pyspark.sql.types import StructField, StructType, _parse_datatype_json_string

    from lance_core.spark.types import arrow_schema

    wanted = []
    for item in changes:
        kind = _parse_datatype_json_string(item["type"])
        field = arrow_schema(StructType([StructField("c", kind, True)])).field(0)
        wanted.append({"path": ".".join(item["column"]), "data_type": field.type})
    table.alter_columns(*wanted)


def _nullable(table: LanceDataset, changes: Sequence[Change]) -> None:
    table.alter_columns(*({"path": ".".join(item["column"]), "nullable": bool(item["nullable"])} for item in changes))


def _set(table: LanceDataset, changes: Sequence[Change]) -> None:
    table.update_config({item["property"]: item["value"] for item in changes})


def _unset(table: LanceDataset, changes: Sequence[Change]) -> None:
    table.delete_config_keys([item["property"] for item in changes])


def _comment(table: LanceDataset, changes: Sequence[Change]) -> None:
    from lance_core.dataset.edit.description import Description, describe

    columns = {".".join(item["column"]): Description(text=item["comment"] or "") for item in changes}
    describe(table.snapshot, Description(), columns)


_CHANGES: Mapping[str, Callable[[Any, Sequence[Change]], None]] = {
    "add": _add,
    "drop": _drop,
    "rename": _rename,
    "type": _retype,
    "nullable": _nullable,
    "comment": _comment,
    "set": _set,
    "unset": _unset,
}
