"""The operations of the log, one file each; `OPERATIONS` is all of them."""

from __future__ import annotations

from lance_core.format.index import RewrittenIndex
from lance_core.table.operations.append import Append
from lance_core.table.operations.base import CompactedSsTable, Operation
from lance_core.table.operations.clone import Clone
from lance_core.table.operations.create_index import CreateIndex
from lance_core.table.operations.data_overlay import DataOverlay, OverlayGroup
from lance_core.table.operations.data_replacement import DataReplacement, Replacement
from lance_core.table.operations.delete import Delete
from lance_core.table.operations.merge import Merge
from lance_core.table.operations.overwrite import Overwrite
from lance_core.table.operations.project import Project
from lance_core.table.operations.reserve_fragments import ReserveFragments
from lance_core.table.operations.restore import Restore
from lance_core.table.operations.rewrite import Rewrite, RewriteGroup
from lance_core.table.operations.update import KeyBloomFilter, KeyFilter, Update, UpdateMode
from lance_core.table.operations.update_bases import UpdateBases
from lance_core.table.operations.update_config import MapUpdate, UpdateConfig
from lance_core.table.operations.update_mem_wal import UpdateMemWalState

OPERATIONS: tuple[type[Operation], ...] = (
    Append,
    Delete,
    Overwrite,
    CreateIndex,
    Rewrite,
    Merge,
    Restore,
    ReserveFragments,
    Update,
    Project,
    UpdateConfig,
    DataReplacement,
    UpdateMemWalState,
    Clone,
    UpdateBases,
    DataOverlay,
)

__all__ = [
    "OPERATIONS",
    "Append",
    "Clone",
    "CompactedSsTable",
    "CreateIndex",
    "DataOverlay",
    "DataReplacement",
    "Delete",
    "KeyBloomFilter",
    "KeyFilter",
    "MapUpdate",
    "Merge",
    "Operation",
    "OverlayGroup",
    "Overwrite",
    "Project",
    "Replacement",
    "ReserveFragments",
    "Restore",
    "Rewrite",
    "RewriteGroup",
    "RewrittenIndex",
    "Update",
    "UpdateBases",
    "UpdateConfig",
    "UpdateMemWalState",
    "UpdateMode",
]
