"""The public face of the dataset API. Calling the module opens a table.

::

    lance_core.dataset("/t.lance")                       opens a table, as the official library's `lance.dataset` does
    from lance_core.dataset import LanceDataset          the names of the official module `lance.dataset`
    from lance_core.dataset.write import ...             the packages below

One name is both: a module that can be called. Nothing is imported before it is used.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from lance_core.lazy import lazy_face

if TYPE_CHECKING:
    from lance_core.dataset.edit.insert import COMMIT_MESSAGE as LANCE_COMMIT_MESSAGE_KEY
    from lance_core.dataset.handle.dataset import BulkCommitResult as BulkCommitResult
    from lance_core.dataset.handle.dataset import LanceDataset as LanceDataset
    from lance_core.dataset.handle.fragment import LanceFragment as LanceFragment
    from lance_core.dataset.handle.merge_builder import MergeInsertBuilder as MergeInsertBuilder
    from lance_core.dataset.handle.open import dataset as dataset
    from lance_core.dataset.handle.open import write_dataset as write_dataset
    from lance_core.dataset.handle.operation_aliases import LanceOperation as LanceOperation
    from lance_core.dataset.handle.operation_aliases import Transaction as Transaction
    from lance_core.dataset.handle.optimize import DatasetOptimizer as DatasetOptimizer
    from lance_core.dataset.handle.ref_verbs import Branches as Branches
    from lance_core.dataset.handle.scanner_builder import ScannerBuilder as ScannerBuilder
    from lance_core.dataset.maintain.statistics import DataStatistics as DataStatistics
    from lance_core.dataset.maintain.statistics import FieldStatistics as FieldStatistics
    from lance_core.dataset.maintain.statistics import LanceStats as LanceStats
    from lance_core.dataset.query.change_feed import DatasetDelta as DatasetDelta
    from lance_core.dataset.query.scanner import LanceScanner as LanceScanner
    from lance_core.dataset.query.sql import SqlQuery as SqlQuery
    from lance_core.dataset.query.sql import SqlQueryBuilder as SqlQueryBuilder
    from lance_core.dataset.refs.tags import Tags as Tags
    from lance_core.dataset.results import AlterColumn as AlterColumn
    from lance_core.dataset.results import AutoCleanupConfig as AutoCleanupConfig
    from lance_core.dataset.results import Branch as Branch
    from lance_core.dataset.results import DatasetStats as DatasetStats
    from lance_core.dataset.results import DeleteResult as DeleteResult
    from lance_core.dataset.results import ExecuteResult as ExecuteResult
    from lance_core.dataset.results import IndexInformation as IndexInformation
    from lance_core.dataset.results import Tag as Tag
    from lance_core.dataset.results import UpdateResult as UpdateResult
    from lance_core.dataset.results import Version as Version
    from lance_core.dataset.results import VersionRef as VersionRef
    from lance_core.dataset.scan.blobs import BlobFile as BlobFile
    from lance_core.dataset.scan.order_by import ColumnOrdering as ColumnOrdering
    from lance_core.dataset.scan.statistics import ScanStatistics as ScanStatistics
    from lance_core.dataset.versions.cleanup import CleanupStats as CleanupStats
    from lance_core.dataset.write.base_paths import DatasetBasePath as DatasetBasePath
    from lance_core.format.index import IndexFile as IndexFile
    from lance_core.format.index import IndexMetadata as Index
else:
    __getattr__, __dir__ = lazy_face(
        __name__,
        {
            "AlterColumn": "lance_core.dataset.results",
            "AutoCleanupConfig": "lance_core.dataset.results",
            "BlobFile": "lance_core.dataset.scan.blobs",
            "Branch": "lance_core.dataset.results",
            "Branches": "lance_core.dataset.handle.ref_verbs",
            "BulkCommitResult": "lance_core.dataset.handle.dataset",
            "CleanupStats": "lance_core.dataset.versions.cleanup",
            "ColumnOrdering": "lance_core.dataset.scan.order_by",
            "DataStatistics": "lance_core.dataset.maintain.statistics",
            "DatasetBasePath": "lance_core.dataset.write.base_paths",
            "DatasetDelta": "lance_core.dataset.query.change_feed",
            "DatasetOptimizer": "lance_core.dataset.handle.optimize",
            "DatasetStats": "lance_core.dataset.results",
            "DeleteResult": "lance_core.dataset.results",
            "ExecuteResult": "lance_core.dataset.results",
            "FieldStatistics": "lance_core.dataset.maintain.statistics",
            "Index": "lance_core.format.index:IndexMetadata",
            "IndexFile": "lance_core.format.index",
            "IndexInformation": "lance_core.dataset.results",
            "LANCE_COMMIT_MESSAGE_KEY": "lance_core.dataset.edit.insert:COMMIT_MESSAGE",
            "LanceDataset": "lance_core.dataset.handle.dataset",
            "LanceFragment": "lance_core.dataset.handle.fragment",
            "LanceOperation": "lance_core.dataset.handle.operation_aliases",
            "LanceScanner": "lance_core.dataset.query.scanner",
            "LanceStats": "lance_core.dataset.maintain.statistics",
            "MergeInsertBuilder": "lance_core.dataset.handle.merge_builder",
            "ScanStatistics": "lance_core.dataset.scan.statistics",
            "ScannerBuilder": "lance_core.dataset.handle.scanner_builder",
            "SqlQuery": "lance_core.dataset.query.sql",
            "SqlQueryBuilder": "lance_core.dataset.query.sql",
            "Tag": "lance_core.dataset.results",
            "Tags": "lance_core.dataset.refs.tags",
            "Transaction": "lance_core.dataset.handle.operation_aliases",
            "UpdateResult": "lance_core.dataset.results",
            "Version": "lance_core.dataset.results",
            "VersionRef": "lance_core.dataset.results",
            "dataset": "lance_core.dataset.handle.open",
            "write_dataset": "lance_core.dataset.handle.open",
        },
    )

__all__ = [
    "LANCE_COMMIT_MESSAGE_KEY",
    "AlterColumn",
    "AutoCleanupConfig",
    "BlobFile",
    "Branch",
    "Branches",
    "BulkCommitResult",
    "CleanupStats",
    "ColumnOrdering",
    "DataStatistics",
    "DatasetBasePath",
    "DatasetDelta",
    "DatasetOptimizer",
    "DatasetStats",
    "DeleteResult",
    "ExecuteResult",
    "FieldStatistics",
    "Index",
    "IndexFile",
    "IndexInformation",
    "LanceDataset",
    "LanceFragment",
    "LanceOperation",
    "LanceScanner",
    "LanceStats",
    "MergeInsertBuilder",
    "ScanStatistics",
    "ScannerBuilder",
    "SqlQuery",
    "SqlQueryBuilder",
    "Tag",
    "Tags",
    "Transaction",
    "UpdateResult",
    "Version",
    "VersionRef",
    "dataset",
    "write_dataset",
]


class _CallableModule(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Open a table: see `lance_core.dataset.handle.open.dataset`."""
        from lance_core.dataset.handle.open import dataset

        return dataset(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule
