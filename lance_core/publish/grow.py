"""Combine appends that bring columns, and other appends beside them, into one transaction on the newest version.

::

    newest  fields 0 "a", 1 "c"; fragments 0 to 8        staged  Merge of "a", "b"   Merge of "a", "b"   Append of "a"
    ->      one Merge: fields 0 "a", 1 "c", 2 "b"; fragments 0 to 8 as they are, and 9, 10, 11 with the new rows

A column that is there by now, with the same type, is used as it is; if all are, this is one Append. Rows that were there,
and new ones of members without the column, read as null.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lance_core.commit.conflicts import PartlyCommittedError
from lance_core.commit.identities import GROWS_PROPERTY, published
from lance_core.errors import LanceError, RetryableConflictError, SchemaMismatchError
from lance_core.format.fragment import Fragment
from lance_core.format.manifest import Manifest
from lance_core.format.schema import NO_PARENT, Schema
from lance_core.publish.adopt import adopt_fragments
from lance_core.publish.errors import NotWholeError
from lance_core.publish.members import Loaded
from lance_core.publish.merge import Rebase, blame
from lance_core.publish.staged_properties import Growth, growth_of, new_rows, next_fragment_id, numbered
from lance_core.table.field_ids import next_field_id
from lance_core.table.operations import Append, Merge
from lance_core.table.transaction import Transaction


def grow(members: Sequence[Loaded], newest: Manifest, *, uuid: str, rebase: Rebase) -> Transaction:
    """One transaction on `newest` that does what all members do.

    Raises MemberConflictError for members that a concurrent commit made invalid, NotWholeError with a SchemaMismatchError
    for those whose columns do not fit the table, or another member's.
    """
    schema, first = newest.schema, next_field_id(newest)
    new: list[Fragment] = []
    outdated, unfit = dict[int, RetryableConflictError](), dict[str, LanceError]()
    for number, item in enumerate(members):
        rows = new_rows(item.transaction)
        try:
            rebase(replace(item.transaction, operation=Append(rows)))
            schema, fitted = fit_rows(item.transaction, rows, schema, first_id=max(first, schema.max_field_id + 1))
        except PartlyCommittedError:
            raise
        except RetryableConflictError as error:
            outdated[number] = error
        except SchemaMismatchError as error:
            unfit[item.ref.identity] = error
        else:
            new += fitted
    if unfit:
        raise NotWholeError(unfit)
    if outdated:
        conflict = outdated[min(outdated)]
        raise blame(conflict, [*outdated]) from conflict
    return _transaction(members, newest, schema, new, uuid=uuid)


def fit_rows(
    transaction: Transaction, rows: Sequence[Fragment], schema: Schema, *, first_id: int
) -> tuple[Schema, Sequence[Fragment]]:
    """The schema with the columns of a member, and its rows with the ids of that schema."""
    operation, growth = transaction.operation, growth_of(transaction.properties)
    if not isinstance(operation, Merge) or growth is None:
        return schema, rows
    lacking = [name for name in growth.columns if operation.schema.has_column(name) and not schema.has_column(name)]
    grown = with_columns(schema, operation.schema, lacking, first_id=first_id)
    return grown, adopt_fragments(rows, staged=operation.schema, table=grown, happened="changed the columns of the table")


def with_columns(schema: Schema, source: Schema, names: Sequence[str], *, first_id: int) -> Schema:
    """The schema with columns of another one at its end, under new ids; rows that are there have nulls in them."""
    added = [field for name in names for field in source.descend(source.find(name).id)]
    ids = {field.id: first_id + number for number, field in enumerate(added)}
    fields = tuple(
        replace(field, id=ids[field.id], parent_id=NO_PARENT, nullable=True)
        if field.parent_id == NO_PARENT
        else replace(field, id=ids[field.id], parent_id=ids[field.parent_id])
        for field in added
    )
    return replace(schema, fields=schema.fields + fields) if fields else schema


def _transaction(
    members: Sequence[Loaded], newest: Manifest, schema: Schema, new: Sequence[Fragment], *, uuid: str
) -> Transaction:
    properties = {name: text for item in members for name, text in published(item.transaction.properties).items()}
    properties.pop(GROWS_PROPERTY, None)
    if schema is newest.schema:
        fragments = tuple(replace(item, id=0) for item in new)
        return Transaction(newest.version, uuid, Append(fragments), properties=properties)
    first = next_fragment_id(newest)
    columns = tuple(field.name for field in schema.top_level if not newest.schema.has_column(field.name))
    operation = Merge((*newest.fragments, *numbered(new, first=first)), schema, preserves_nullability=True)
    properties.update(Growth(columns, first, "append").properties())
    return Transaction(newest.version, uuid, operation, properties=properties)
