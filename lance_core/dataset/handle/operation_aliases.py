"""The operations and transactions for a commit of one's own, by the official library's names and arguments.

::

    operation = LanceOperation.Append(fragments)                 what `write_fragments` gave
    LanceDataset.commit(uri, operation, read_version=3)
    isinstance(ds.read_transaction(4).operation, LanceOperation.Append)

What is made is the operation of `lance_core.table.operations`: one way to say it, two ways to spell it.
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa

from lance_core.arrow import schema_from_arrow
from lance_core.dataset.write.base_paths import as_bases
from lance_core.errors import InputError
from lance_core.format.fragment import Fragment
from lance_core.format.index import IndexDetails
from lance_core.format.index import RewrittenIndex as RewrittenIndex_
from lance_core.format.schema import Schema
from lance_core.table.operations import append, clone, create_index, data_replacement, delete, merge, overwrite, project
from lance_core.table.operations import restore as restoring
from lance_core.table.operations import rewrite as rewriting
from lance_core.table.operations import update as updating
from lance_core.table.operations import update_config as configuring
from lance_core.table.transaction import Transaction as OwnTransaction

_MODES = {"": 0, "rewrite_rows": 0, "rewrite_columns": 1}


class Spelled(type):
    """A class that is another spelling: calling it makes the other kind, whose instances are its instances, too."""

    _kind: type
    _make: Callable[..., Any]

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Make the other kind."""
        return cls._make(*args, **kwargs)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls._kind)


def _spelled(kind: type, make: Callable[..., Any]) -> Any:
    return Spelled(make.__name__, (), {"_kind": kind, "_make": staticmethod(make), "__doc__": make.__doc__})


def _schema(given: Schema | pa.Schema, fragments: Iterable[Fragment]) -> Schema:
    """A schema as the format has it; of a pyarrow one the fields are counted from 0, as in files that began a table."""
    if isinstance(given, Schema):
        return given
    if not isinstance(given, pa.Schema):
        raise InputError(f"expected a schema, got {type(given).__name__}")
    version = next((file.version for fragment in fragments for file in fragment.files), None)
    return schema_from_arrow(given) if version is None else schema_from_arrow(given, version=version)


def Append(fragments: Iterable[Fragment]) -> append.Append:
    """Fragments behind those that are there."""
    return append.Append(tuple(fragments))


def Delete(updated_fragments: Iterable[Fragment], deleted_fragment_ids: Iterable[int], predicate: str = "") -> delete.Delete:
    """Fragments with other deletion files, and ids of those that go."""
    return delete.Delete(tuple(updated_fragments), tuple(deleted_fragment_ids), predicate)


def Overwrite(
    new_schema: Schema | pa.Schema, fragments: Iterable[Fragment], initial_bases: Iterable[Any] | None = None
) -> overwrite.Overwrite:
    """Other rows of a schema in the place of all; also how a table begins."""
    parts = tuple(fragments)
    return overwrite.Overwrite(parts, _schema(new_schema, parts), initial_bases=as_bases(initial_bases))


def Merge(fragments: Iterable[Fragment], schema: Schema | pa.Schema, preserves_nullability: bool = False) -> merge.Merge:
    """All fragments with their new columns, and the schema then."""
    parts = tuple(fragments)
    return merge.Merge(parts, _schema(schema, parts), preserves_nullability)


def Project(schema: Schema | pa.Schema, preserves_nullability: bool = False) -> project.Project:
    """Another schema over the same files."""
    return project.Project(_schema(schema, ()), preserves_nullability)


def Restore(version: int) -> restoring.Restore:
    """An old version as the newest."""
    return restoring.Restore(version)


def Update(
    removed_fragment_ids: Iterable[int] = (),
    updated_fragments: Iterable[Fragment] = (),
    new_fragments: Iterable[Fragment] = (),
    fields_modified: Iterable[int] = (),
    fields_for_preserving_frag_bitmap: Iterable[int] = (),
    update_mode: str = "",
    updated_fragment_offsets: Mapping[int, bytes] | None = None,
) -> updating.Update:
    """Rows with new values, moved ("rewrite_rows") or in place ("rewrite_columns", see `LanceFragment.update_columns`)."""
    if update_mode not in _MODES:
        raise InputError(f"unknown update_mode {update_mode!r}", cure="Use rewrite_rows or rewrite_columns.")
    return updating.Update(
        removed_fragment_ids=tuple(removed_fragment_ids),
        updated_fragments=tuple(updated_fragments),
        new_fragments=tuple(new_fragments),
        fields_modified=tuple(fields_modified),
        fields_for_preserving_frag_bitmap=tuple(fields_for_preserving_frag_bitmap),
        update_mode=updating.UpdateMode(_MODES[update_mode]),
        updated_fragment_offset_bitmaps=dict(updated_fragment_offsets or {}),
    )


def Rewrite(
    groups: Iterable[rewriting.RewriteGroup], rewritten_indices: Iterable[RewrittenIndex_] = ()
) -> rewriting.Rewrite:
    """Groups of fragments with the same rows as others."""
    return rewriting.Rewrite(tuple(groups), tuple(rewritten_indices))


def RewriteGroup(old_fragments: Iterable[Fragment], new_fragments: Iterable[Fragment]) -> rewriting.RewriteGroup:
    """Fragments, and those that take their place."""
    return rewriting.RewriteGroup(tuple(old_fragments), tuple(new_fragments))


def RewrittenIndex(
    old_id: str, new_id: str, new_details_type_url: str, new_details_value: bytes, new_index_version: int
) -> RewrittenIndex_:
    """An index segment whose rows moved."""
    details = IndexDetails(new_details_type_url, new_details_value)
    return RewrittenIndex_(old_id, new_id, details, new_index_version)


def CreateIndex(new_indices: Iterable[Any], removed_indices: Iterable[Any] = ()) -> create_index.CreateIndex:
    """Index segments that come and go."""
    return create_index.CreateIndex(tuple(new_indices), tuple(removed_indices))


def DataReplacement(replacements: Iterable[data_replacement.Replacement]) -> data_replacement.DataReplacement:
    """Other files for whole columns."""
    return data_replacement.DataReplacement(tuple(replacements))


def DataReplacementGroup(fragment_id: int, new_file: Any) -> data_replacement.Replacement:
    """The file that takes the place of the one with the same fields."""
    return data_replacement.Replacement(fragment_id, new_file)


def UpdateMap(updates: Mapping[str, str | None], replace: bool = False) -> configuring.MapUpdate:
    """Values by key, None to delete one; `replace` drops all others."""
    return configuring.MapUpdate(dict(updates), replace)


def UpdateConfig(
    config_updates: configuring.MapUpdate | None = None,
    table_metadata_updates: configuring.MapUpdate | None = None,
    schema_metadata_updates: configuring.MapUpdate | None = None,
    field_metadata_updates: Mapping[int, configuring.MapUpdate] | None = None,
) -> configuring.UpdateConfig:
    """Keys of the configuration and of metadata."""
    fields = dict(field_metadata_updates or {})
    return configuring.UpdateConfig(config_updates, table_metadata_updates, schema_metadata_updates, fields)


def Clone(is_shallow: bool, ref_name: str | None, ref_version: int, ref_path: str, branch_name: str | None) -> clone.Clone:
    """A table that begins as a version of another one."""
    return clone.Clone(is_shallow, ref_version, ref_path, ref_name, branch_name)


class LanceOperation:
    """The operations; DataOverlay is recognised and refused, as its feature flag asks."""

    Append = _spelled(append.Append, Append)
    Clone = _spelled(clone.Clone, Clone)
    CreateIndex = _spelled(create_index.CreateIndex, CreateIndex)
    DataReplacement = _spelled(data_replacement.DataReplacement, DataReplacement)
    DataReplacementGroup = _spelled(data_replacement.Replacement, DataReplacementGroup)
    Delete = _spelled(delete.Delete, Delete)
    Merge = _spelled(merge.Merge, Merge)
    Overwrite = _spelled(overwrite.Overwrite, Overwrite)
    Project = _spelled(project.Project, Project)
    Restore = _spelled(restoring.Restore, Restore)
    Rewrite = _spelled(rewriting.Rewrite, Rewrite)
    RewriteGroup = _spelled(rewriting.RewriteGroup, RewriteGroup)
    RewrittenIndex = _spelled(RewrittenIndex_, RewrittenIndex)
    Update = _spelled(updating.Update, Update)
    UpdateConfig = _spelled(configuring.UpdateConfig, UpdateConfig)
    UpdateMap = _spelled(configuring.MapUpdate, UpdateMap)


def _transaction(
    read_version: int,
    operation: Any,
    uuid: str | None = None,
    transaction_properties: Mapping[str, str] | None = None,
) -> OwnTransaction:
    """An operation, the version it was planned on, and who it is."""
    properties = dict(transaction_properties or {})
    return OwnTransaction(read_version, uuid or str(uuids.uuid4()), operation, properties=properties)


Transaction = _spelled(OwnTransaction, _transaction)
