"""Lance schemas and pyarrow schemas: conversion in both directions.

``schema_from_arrow`` and ``schema_to_arrow`` translate, ``check_compatible`` says whether data fits a table,
``cast_batch`` brings a batch into the exact types of a schema. Nothing here reads or writes files.
"""

from __future__ import annotations

from lance_core.arrow.cast import BatchCaster, ExactBatches, cast_batch
from lance_core.arrow.check import check_compatible
from lance_core.arrow.from_arrow import schema_from_arrow
from lance_core.arrow.to_arrow import field_to_arrow, schema_to_arrow, storage_type

__all__ = [
    "BatchCaster",
    "ExactBatches",
    "cast_batch",
    "check_compatible",
    "field_to_arrow",
    "schema_from_arrow",
    "schema_to_arrow",
    "storage_type",
]
