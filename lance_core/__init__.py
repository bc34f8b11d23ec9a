"""The Lance table and file format in Python.

::

    import lance_core as lance

    lance.write_dataset(table, "/data/flights.lance")
    lance.dataset("/data/flights.lance").to_table(filter="distance > 2000", limit=10)

Names are those of the official Python library. Nothing is imported before it is used (PEP 562).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.lazy import lazy_face

if TYPE_CHECKING:
    from lance_core.arrow.blob import Blob as Blob
    from lance_core.arrow.blob import blob_array as blob_array
    from lance_core.arrow.blob import blob_field as blob_field
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
else:
    __getattr__, __dir__ = lazy_face(
        __name__,
        {
            "BatchUDF": "lance_core.dataset.columns.udf",
            "Blob": "lance_core.arrow.blob",
            "BlobFile": "lance_core.dataset.scan.blobs",
            "CleanupStats": "lance_core.dataset.versions.cleanup",
            "ColumnOrdering": "lance_core.dataset.scan.order_by",
            "DataStatistics": "lance_core.dataset.maintain.statistics",
            "DatasetBasePath": "lance_core.dataset.write.base_paths",
            "FieldStatistics": "lance_core.dataset.maintain.statistics",
            "FragmentMetadata": "lance_core.format.fragment:Fragment",
            "Index": "lance_core.format.index:IndexMetadata",
            "IndexFile": "lance_core.format.index",
            "LanceDataset": "lance_core.dataset.handle.dataset",
            "LanceError": "lance_core.errors",
            "LanceFragment": "lance_core.dataset.handle.fragment",
            "LanceOperation": "lance_core.dataset.handle.operation_aliases",
            "LanceScanner": "lance_core.dataset.query.scanner",
            "MergeInsertBuilder": "lance_core.dataset.handle.merge_builder",
            "ScanStatistics": "lance_core.dataset.scan.statistics",
            "Transaction": "lance_core.dataset.handle.operation_aliases",
            "batch_udf": "lance_core.dataset.columns.udf",
            "blob_array": "lance_core.arrow.blob",
            "blob_field": "lance_core.arrow.blob",
            "write_dataset": "lance_core.dataset.handle.open",
            "blob": "lance_core.blob:",
            "cli": "lance_core.cli:",
            "conditions": "lance_core.conditions:",
            # A module that can be called: both `lance_core.dataset(uri)` and `lance_core.dataset.write.stage` work.
            "dataset": "lance_core.dataset:",
            "errors": "lance_core.errors:",
            "fragment": "lance_core.fragment:",
            "indices": "lance_core.indices:",
            "jobs": "lance_core.jobs:",
            "optimize": "lance_core.optimize:",
            "query": "lance_core.query:",
        },
    )

__version__ = "0.1.0"

__all__ = [
    "BatchUDF",
    "Blob",
    "BlobFile",
    "CleanupStats",
    "ColumnOrdering",
    "DataStatistics",
    "DatasetBasePath",
    "FieldStatistics",
    "FragmentMetadata",
    "Index",
    "IndexFile",
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
    "write_dataset",
]
