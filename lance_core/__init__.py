"""The Lance table and file format in Python.

::

    import lance_core as lance

    lance.write_dataset(table, "/data/flights.lance")
    lance.dataset("/data/flights.lance").to_table(filter="distance > 2000", limit=10)

Names are those of the official Python library. Nothing heavy is imported before it is used (PEP 562).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import lance_core.forks as _forks  # noqa: F401
import lance_core.late_threads as _late_threads  # noqa: F401
from lance_core.lazy import lazy_face

if TYPE_CHECKING:
    from lance_core.arrow.blob import Blob as Blob
    from lance_core.arrow.blob import BlobColumn as BlobColumn
    from lance_core.arrow.blob import blob_array as blob_array
    from lance_core.arrow.blob import blob_field as blob_field
    from lance_core.arrow.schema_json import json_to_schema as json_to_schema
    from lance_core.arrow.schema_json import schema_to_json as schema_to_json
    from lance_core.computed.limits import Computed as Computed
    from lance_core.dataset.columns.udf import BatchUDF as BatchUDF
    from lance_core.dataset.columns.udf import batch_udf as batch_udf
    from lance_core.dataset.handle.dataset import LanceDataset as LanceDataset
    from lance_core.dataset.handle.fragment import LanceFragment as LanceFragment
    from lance_core.dataset.handle.merge_builder import MergeInsertBuilder as MergeInsertBuilder
    from lance_core.dataset.handle.open import dataset as dataset
    from lance_core.dataset.handle.open import write_dataset as write_dataset
    from lance_core.dataset.handle.operation_aliases import LanceOperation as LanceOperation
    from lance_core.dataset.handle.operation_aliases import Transaction as Transaction
    from lance_core.dataset.maintain.statistics import DataStatistics as DataStatistics
    from lance_core.dataset.maintain.statistics import FieldStatistics as FieldStatistics
    from lance_core.dataset.query.scanner import LanceScanner as LanceScanner
    from lance_core.dataset.scan.blobs import BlobFile as BlobFile
    from lance_core.dataset.scan.order_by import ColumnOrdering as ColumnOrdering
    from lance_core.dataset.scan.statistics import ScanStatistics as ScanStatistics
    from lance_core.dataset.versions.cleanup import CleanupStats as CleanupStats
    from lance_core.dataset.write.base_paths import DatasetBasePath as DatasetBasePath
    from lance_core.errors import LanceError as LanceError
    from lance_core.format.fragment import Fragment as FragmentMetadata
    from lance_core.format.index import IndexFile as IndexFile
    from lance_core.format.index import IndexMetadata as Index
    from lance_core.index.text.tokens import FtsToken as FtsToken
    from lance_core.index.text.tokens import tokenize as tokenize
    from lance_core.jobs.declared_columns import declare_column as declare_column
    from lance_core.jobs.declared_columns import failed_rows as failed_rows
    from lance_core.jobs.declared_columns import refresh_columns as refresh_columns
    from lance_core.jobs.declared_columns import undeclare_column as undeclare_column
    from lance_core.log import set_logger as set_logger
    from lance_core.progress import IndexProgress as IndexProgress
else:
    __getattr__, __dir__ = lazy_face(
        __name__,
        {
            "BatchUDF": "lance_core.dataset.columns.udf",
            "Blob": "lance_core.arrow.blob",
            "BlobColumn": "lance_core.arrow.blob",
            "BlobFile": "lance_core.dataset.scan.blobs",
            "CleanupStats": "lance_core.dataset.versions.cleanup",
            "ColumnOrdering": "lance_core.dataset.scan.order_by",
            "DataStatistics": "lance_core.dataset.maintain.statistics",
            "DatasetBasePath": "lance_core.dataset.write.base_paths",
            "FieldStatistics": "lance_core.dataset.maintain.statistics",
            "FragmentMetadata": "lance_core.format.fragment:Fragment",
            "FtsToken": "lance_core.index.text.tokens",
            "Index": "lance_core.format.index:IndexMetadata",
            "IndexFile": "lance_core.format.index",
            "IndexProgress": "lance_core.progress",
            "LanceDataset": "lance_core.dataset.handle.dataset",
            "LanceError": "lance_core.errors",
            "LanceFragment": "lance_core.dataset.handle.fragment",
            "LanceOperation": "lance_core.dataset.handle.operation_aliases",
            "LanceScanner": "lance_core.dataset.query.scanner",
            "MergeInsertBuilder": "lance_core.dataset.handle.merge_builder",
            "ScanStatistics": "lance_core.dataset.scan.statistics",
            "Transaction": "lance_core.dataset.handle.operation_aliases",
            "batch_udf": "lance_core.dataset.columns.udf",
            "Computed": "lance_core.computed.limits",
            "failed_rows": "lance_core.jobs.declared_columns",
            "declare_column": "lance_core.jobs.declared_columns",
            "refresh_columns": "lance_core.jobs.declared_columns",
            "undeclare_column": "lance_core.jobs.declared_columns",
            "blob_array": "lance_core.arrow.blob",
            "blob_field": "lance_core.arrow.blob",
            "json_to_schema": "lance_core.arrow.schema_json",
            "schema_to_json": "lance_core.arrow.schema_json",
            "set_logger": "lance_core.log",
            "tokenize": "lance_core.index.text.tokens",
            "write_dataset": "lance_core.dataset.handle.open",
            "blob": "lance_core.blob:",
            "cli": "lance_core.cli:",
            "commit": "lance_core.commit:",
            "conditions": "lance_core.conditions:",
            # A module that can be called: both `lance_core.dataset(uri)` and `lance_core.dataset.write.stage` work.
            "dataset": "lance_core.dataset:",
            "errors": "lance_core.errors:",
            "file": "lance_core.file:",
            "fragment": "lance_core.fragment:",
            "indices": "lance_core.indices:",
            "jobs": "lance_core.jobs:",
            "log": "lance_core.log:",
            "optimize": "lance_core.optimize:",
            "progress": "lance_core.progress:",
            "query": "lance_core.query:",
            "schema": "lance_core.schema:",
            "types": "lance_core.types:",
            "udf": "lance_core.udf:",
            "util": "lance_core.util:",
            "vector": "lance_core.vector:",
        },
    )

__version__ = "0.1.0"

__all__ = [
    "BatchUDF",
    "Blob",
    "BlobColumn",
    "BlobFile",
    "CleanupStats",
    "ColumnOrdering",
    "Computed",
    "DataStatistics",
    "DatasetBasePath",
    "FieldStatistics",
    "FragmentMetadata",
    "FtsToken",
    "Index",
    "IndexFile",
    "IndexProgress",
    "LanceDataset",
    "LanceError",
    "LanceFragment",
    "LanceOperation",
    "LanceScanner",
    "MergeInsertBuilder",
    "ScanStatistics",
    "Transaction",
    "__version__",
    "batch_udf",
    "blob_array",
    "blob_field",
    "dataset",
    "declare_column",
    "failed_rows",
    "json_to_schema",
    "refresh_columns",
    "schema_to_json",
    "set_logger",
    "tokenize",
    "undeclare_column",
    "write_dataset",
]
