"""Spool the rows of a source once into files of the attempt, for all tasks. The files are removed before staging.

::

    partition 0 -> data/…{attempt}….lance (rows 0..9), partition 1 -> data/…{attempt}….lance (rows 10..14)
    Spool.read(store)          all 15 rows, numbered in this order
    Spool.read(store, only=1)  rows 10..14
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from lance_core.arrow.buffers import fields_schema
from lance_core.dataset.scan.plan import LARGE_BATCH_ROWS, plan_scan
from lance_core.dataset.scan.projection import plan_projection
from lance_core.dataset.scan.sinks import scan
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.format.manifest import Manifest
from lance_core.format.schema import Schema
from lance_core.io.store import Store
from lance_core.wire.fragments import decode_fragment


@dataclass(frozen=True)
class Spool:
    """The source's rows as they were put aside: `fragments` on the wire, row numbers in their order."""

    uri: str
    storage_options: Mapping[str, str] = field(repr=False)
    schema: Schema
    version: str
    fragments: tuple[bytes, ...]

    def read(self, store: Store, *, only: int | None = None, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows, or those of one fragment; `columns` in this order, None for all."""
        chosen = self.fragments if only is None else self.fragments[only : only + 1]
        fragments = tuple(replace(decode_fragment(data), id=number) for number, data in enumerate(chosen))
        manifest = Manifest(self.schema, fragments, 0, data_storage_version=self.version)
        snapshot = Snapshot(store, manifest, self.storage_options)
        plan = plan_scan(self.schema, fragments, plan_projection(self.schema, None if columns is None else [*columns]))
        schema = snapshot.arrow_schema
        if columns is not None:
            schema = fields_schema([schema.field(name) for name in columns], schema.metadata)
        return pa.Table.from_batches(scan(snapshot, plan, batch_size=LARGE_BATCH_ROWS), schema=schema)
