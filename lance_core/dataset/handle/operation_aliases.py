"""Operations and transactions for a separate commit, with the official library's names and arguments.

::

    operation = LanceOperation.Append(fragments)                 what `write_fragments` gave
    LanceDataset.commit(uri, operation, read_version=3)
    isinstance(ds.read_transaction(4).operation, LanceOperation.Append)

What is made is the operation of `lance_core.table.operations`: one way to say it, two ways to spell it.
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Iterable, Mapping
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
from lance_core.table.operations.base import Operation
from lance_core.table.transaction import Transaction as OwnTransaction

_MODES = {"": 0, "rewrite_rows": 0, "rewrite_columns": 1}


class Spelling(type):
    """The metaclass of a class that is another way to make its base: what it makes are plain instances of the base, and
    these are its instances too."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.__bases__[0])


def _schema(given: Schema | pa.Schema, fragments: Iterable[Fragment]) -> Schema:
    """A schema as the format has it; of a pyarrow one the fields are counted from 0, as in files that began a table."""
    if isinstance(given, Schema):
        return given
    if not isinstance(given, pa.Schema):
        raise InputError(f"expected a schema, got {type(given).__name__}")
    version = next((file.version for fragment in fragments for file in fragment.files), None)
    # Without files the version is the table's, which the commit knows.
    return schema_from_arrow(given, check=False) if version is None else schema_from_arrow(given, version=version)


class LanceOperation:
    """The operations; DataOverlay is recognised and refused, as its feature flag asks."""

    BaseOperation = Operation

    class Append(append.Append, metaclass=Spelling):
        """Fragments after the existing ones."""

        def __new__(cls, fragments: Iterable[Fragment]) -> Any:
            return append.Append(tuple(fragments))

    class Clone(clone.Clone, metaclass=Spelling):
        """A table that begins as a version of another one."""

        def __new__(
            cls, is_shallow: bool, ref_name: str | None, ref_version: int, ref_path: str, branch_name: str | None
        ) -> Any:
            return clone.Clone(is_shallow, ref_version, ref_path, ref_name, branch_name)

    class CreateIndex(create_index.CreateIndex, metaclass=Spelling):
        """Index segments to add and to remove."""

        def __new__(cls, new_indices: Iterable[Any], removed_indices: Iterable[Any] = ()) -> Any:
            return create_index.CreateIndex(tuple(new_indices), tuple(removed_indices))

    class DataReplacement(data_replacement.DataReplacement, metaclass=Spelling):
        """Other files for whole columns."""

        def __new__(cls, replacements: Iterable[data_replacement.Replacement]) -> Any:
            return data_replacement.DataReplacement(tuple(replacements))

    class DataReplacementGroup(data_replacement.Replacement, metaclass=Spelling):
        """The file that takes the place of the one with the same fields."""

        def __new__(cls, fragment_id: int, new_file: Any) -> Any:
            return data_replacement.Replacement(fragment_id, new_file)

    class Delete(delete.Delete, metaclass=Spelling):
        """Fragments with other deletion files, and ids of those that go."""

        def __new__(
            cls, updated_fragments: Iterable[Fragment], deleted_fragment_ids: Iterable[int], predicate: str = ""
        ) -> Any:
            return delete.Delete(tuple(updated_fragments), tuple(deleted_fragment_ids), predicate)

    class Merge(merge.Merge, metaclass=Spelling):
        """All fragments with their new columns, and the schema then."""

        def __new__(
            cls, fragments: Iterable[Fragment], schema: Schema | pa.Schema, preserves_nullability: bool = False
        ) -> Any:
            parts = tuple(fragments)
            return merge.Merge(parts, _schema(schema, parts), preserves_nullability)

    class Overwrite(overwrite.Overwrite, metaclass=Spelling):
        """Other rows of a schema in the place of all; also how a table begins."""

        def __new__(
            cls, new_schema: Schema | pa.Schema, fragments: Iterable[Fragment], initial_bases: Iterable[Any] | None = None
        ) -> Any:
            parts = tuple(fragments)
            return overwrite.Overwrite(parts, _schema(new_schema, parts), initial_bases=as_bases(initial_bases))

    class Project(project.Project, metaclass=Spelling):
        """Another schema over the same files."""

        def __new__(cls, schema: Schema | pa.Schema, preserves_nullability: bool = False) -> Any:
            return project.Project(_schema(schema, ()), preserves_nullability)

    class Restore(restoring.Restore, metaclass=Spelling):
        """An old version as the newest."""

        def __new__(cls, version: int) -> Any:
            return restoring.Restore(version)

    class Rewrite(rewriting.Rewrite, metaclass=Spelling):
        """Groups of fragments with the same rows as others."""

        def __new__(cls, groups: Iterable[rewriting.RewriteGroup], rewritten_indices: Iterable[RewrittenIndex_] = ()) -> Any:
            return rewriting.Rewrite(tuple(groups), tuple(rewritten_indices))

    class RewriteGroup(rewriting.RewriteGroup, metaclass=Spelling):
        """Fragments, and those that take their place."""

        def __new__(cls, old_fragments: Iterable[Fragment], new_fragments: Iterable[Fragment]) -> Any:
            return rewriting.RewriteGroup(tuple(old_fragments), tuple(new_fragments))

    class RewrittenIndex(RewrittenIndex_, metaclass=Spelling):
        """An index segment whose rows moved."""

        def __new__(
            cls, old_id: str, new_id: str, new_details_type_url: str, new_details_value: bytes, new_index_version: int
        ) -> Any:
            details = IndexDetails(new_details_type_url, new_details_value)
            return RewrittenIndex_(old_id, new_id, details, new_index_version)

    class Update(updating.Update, metaclass=Spelling):
        """Rows with new values, moved ("rewrite_rows") or in place ("rewrite_columns")."""

        def __new__(
            cls,
            removed_fragment_ids: Iterable[int] = (),
            updated_fragments: Iterable[Fragment] = (),
            new_fragments: Iterable[Fragment] = (),
            fields_modified: Iterable[int] = (),
            fields_for_preserving_frag_bitmap: Iterable[int] = (),
            update_mode: str = "",
            updated_fragment_offsets: Mapping[int, bytes] | None = None,
        ) -> Any:
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

    class UpdateConfig(configuring.UpdateConfig, metaclass=Spelling):
        """Keys of the configuration and of metadata."""

        def __new__(
            cls,
            config_updates: configuring.MapUpdate | None = None,
            table_metadata_updates: configuring.MapUpdate | None = None,
            schema_metadata_updates: configuring.MapUpdate | None = None,
            field_metadata_updates: Mapping[int, configuring.MapUpdate] | None = None,
        ) -> Any:
            fields = dict(field_metadata_updates or {})
            return configuring.UpdateConfig(config_updates, table_metadata_updates, schema_metadata_updates, fields)

    class UpdateMap(configuring.MapUpdate, metaclass=Spelling):
        """Values by key, None to delete one; `replace` drops all others."""

        def __new__(cls, updates: Mapping[str, str | None], replace: bool = False) -> Any:
            return configuring.MapUpdate(dict(updates), replace)


class Transaction(OwnTransaction, metaclass=Spelling):
    """An operation, the version it was planned on, and who it is."""

    def __new__(
        cls,
        read_version: int,
        operation: Operation,
        uuid: str | None = None,
        transaction_properties: Mapping[str, str] | None = None,
    ) -> Any:
        """Make a transaction; without a uuid it gets one."""
        properties = dict(transaction_properties or {})
        return OwnTransaction(read_version, uuid or str(uuids.uuid4()), operation, properties=properties)
