"""Columns of a source that the table lacks, added in the version that brings their rows (`schema_drift="add_extra"`).

::

    table "id", "x"    source "id", "x", "country"   ->   a Merge: the column after the others, every fragment, the new rows
    rows that are there, and rows of sources without the column, read as null; no file of theirs is written again

What the job would stage otherwise (an Append, an Update) says what happens to the fragments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from lance_core.arrow import schema_from_arrow, schema_to_arrow
from lance_core.dataset.columns.column_files import FirstId, append_fields
from lance_core.errors import InputError, UnsupportedFeatureError
from lance_core.format.fragment import Fragment
from lance_core.format.manifest import Manifest
from lance_core.format.schema import Schema
from lance_core.format.schema_rules import contradiction
from lance_core.jobs.runtime.protocols import StagedOperation, TaskResult
from lance_core.jobs.sources.conform import added_columns
from lance_core.jobs.specs.spec import Drift
from lance_core.publish.growth import Growth, next_fragment_id, numbered
from lance_core.table.field_ids import next_field_id
from lance_core.table.operations import Append, Merge, Update

Conclude = Callable[[Sequence[TaskResult]], StagedOperation]


@dataclass(frozen=True)
class BroughtColumns:
    """The version that was read, the schema that its table is to have, and what the transaction says about it."""

    read: Manifest
    schema: Schema
    growth: Growth

    @property
    def manifest(self) -> Manifest:
        """The version as if it had the new columns already: in all its rows they are null."""
        return replace(self.read, schema=self.schema)

    def properties(self) -> dict[str, str]:
        """The property of the transaction; empty when there are no new columns."""
        return self.growth.properties() if self.growth.columns else {}

    def conclude(self, inner: Conclude) -> Conclude:
        """What the results amount to, as one operation that adds the columns as well."""
        return Grows(inner, self) if self.growth.columns else inner


@dataclass(frozen=True)
class Grows:
    """The operation that the results amount to becomes a Merge."""

    inner: Conclude
    columns: BroughtColumns

    def __call__(self, results: Sequence[TaskResult]) -> StagedOperation:
        """The fragments of the version that was read, as the operation leaves them, then the new ones."""
        staged = self.inner(results)
        operation, read, new = staged.operation, self.columns.read, tuple[Fragment, ...]()
        kept: tuple[Fragment, ...] = tuple(read.fragments)
        if isinstance(operation, Append):
            new = tuple(operation.fragments)
        elif isinstance(operation, Update):
            changed, removed = {item.id: item for item in operation.updated_fragments}, {*operation.removed_fragment_ids}
            kept = tuple(changed.get(item.id, item) for item in kept if item.id not in removed)
            new = operation.new_fragments
        fragments = (*kept, *numbered(new, first=self.columns.growth.first_fragment))
        return replace(staged, operation=Merge(fragments, self.columns.schema, preserves_nullability=True))


def plan_columns(manifest: Manifest, source: pa.Schema, *, drift: Drift, operation: str, uri: str) -> BroughtColumns:
    """Which columns of a source are added to the table of `manifest` by rows that are staged as `operation` otherwise.

    InputError for a name that a table cannot have; UnsupportedFeatureError for a table whose files know no such columns.
    """
    added = added_columns(source, schema_to_arrow(manifest.schema), drift=drift)
    growth = Growth(tuple(added.names), next_fragment_id(manifest), operation)
    if not added.names:
        return BroughtColumns(manifest, manifest.schema, growth)
    if manifest.file_version.is_legacy:
        raise UnsupportedFeatureError(
            f"column {added.names[0]!r} cannot be added to a table of file version {manifest.file_version.text}, whose rows "
            "must have a value in every column",
            uri=uri,
            cure='Overwrite the table with a newer data_storage_version, or pass schema_drift="drop_extra".',
        )
    fields = schema_from_arrow(added, version=manifest.file_version)
    schema, _ = append_fields(manifest, fields, FirstId(next_field_id(manifest)))
    wrong = contradiction(schema.fields)
    if wrong:
        raise InputError(f"columns of the source cannot be added to the table: {wrong}", uri=uri, cure="Rename them there.")
    return BroughtColumns(manifest, schema, growth)


def grows_on_creation(source: pa.Schema, *, drift: Drift) -> dict[str, str]:
    """The property of rows that create the table, for the case that another writer creates it first with fewer columns."""
    names = added_columns(source, pa.schema([]), drift=drift).names
    return Growth(tuple(names), 0, "append").properties() if names else {}
