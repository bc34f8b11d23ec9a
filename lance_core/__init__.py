"""The Lance table and file format in Python.

::

    import lance_core as lance

    lance.write_dataset(table, "/data/flights.lance")
    lance.dataset("/data/flights.lance").to_table(filter="distance > 2000", limit=10)

Names are those of the official Python library. Nothing is imported before it is used (PEP 562).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
    from lance_core.fragment import FragmentMetadata as FragmentMetadata

__version__ = "0.1.0"

_HOMES = {
    "FragmentMetadata": "lance_core.fragment",
    "Transaction": "lance_core.dataset.handle.operation_aliases",
    "ScanStatistics": "lance_core.dataset.scan.statistics",
    "MergeInsertBuilder": "lance_core.dataset.handle.merge_builder",
    "LanceOperation": "lance_core.dataset.handle.operation_aliases",
    "FieldStatistics": "lance_core.dataset.maintain.statistics",
    "DataStatistics": "lance_core.dataset.maintain.statistics",
    "CleanupStats": "lance_core.dataset.versions.cleanup",
    "BatchUDF": "lance_core.dataset.columns.udf",
    "Blob": "lance_core.arrow.blob",
    "BlobFile": "lance_core.dataset.scan.blobs",
    "ColumnOrdering": "lance_core.dataset.scan.order_by",
    "DatasetBasePath": "lance_core.dataset.write.base_paths",
    "batch_udf": "lance_core.dataset.columns.udf",
    "blob_array": "lance_core.arrow.blob",
    "blob_field": "lance_core.arrow.blob",
    "LanceDataset": "lance_core.dataset.handle.dataset",
    "LanceFragment": "lance_core.dataset.handle.fragment",
    "LanceScanner": "lance_core.dataset.query.scanner",
    "write_dataset": "lance_core.dataset.handle.open",
    "LanceError": "lance_core.errors",
}
_MODULES = ("blob", "cli", "dataset", "errors", "fragment", "indices", "jobs", "optimize", "query", "conditions")

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


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _MODULES:
        # `dataset` is a module that can be called: both `lance_core.dataset(uri)` and `lance_core.dataset.write.stage` work.
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
