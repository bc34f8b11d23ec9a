"""What an operation carries: the fragments, files, index segments and the schema that it writes down.

::

    Append((f, g))                          added (f, g)      written (f, g)
    Update(updated=(u,), new=(n,))          added (n,)        written (n, u)
    Rewrite(groups=((a, b) -> (c,),))       added ()          written (c,)        rewritten (c,)
"""

from __future__ import annotations

from collections.abc import Sequence

from lance_core.format.fragment import DataFile, Fragment
from lance_core.format.index import IndexMetadata
from lance_core.format.schema import Schema
from lance_core.table.operations.append import Append
from lance_core.table.operations.base import Operation
from lance_core.table.operations.create_index import CreateIndex
from lance_core.table.operations.data_replacement import DataReplacement
from lance_core.table.operations.delete import Delete
from lance_core.table.operations.merge import Merge
from lance_core.table.operations.overwrite import Overwrite
from lance_core.table.operations.project import Project
from lance_core.table.operations.rewrite import Rewrite
from lance_core.table.operations.update import Update, UpdateMode
from lance_core.table.transaction import Transaction

Fragments = Sequence[Fragment]


def added_fragments(operation: Operation) -> Fragments:
    """Fragments with rows that were not in the table before."""
    if isinstance(operation, (Append, Overwrite)):
        return operation.fragments
    return operation.new_fragments if isinstance(operation, Update) else ()


def rewritten_fragments(operation: Operation) -> Fragments:
    """Fragments with rows that a Rewrite moved."""
    groups = operation.groups if isinstance(operation, Rewrite) else ()
    return tuple(item for group in groups for item in group.new_fragments)


def written_fragments(operation: Operation) -> Fragments:
    """Every fragment that the operation writes down as new or changed."""
    if isinstance(operation, Update):
        return (*operation.new_fragments, *operation.updated_fragments)
    if isinstance(operation, (Append, Overwrite, Merge)):
        return operation.fragments
    return operation.updated_fragments if isinstance(operation, Delete) else rewritten_fragments(operation)


def replacing_files(operation: Operation) -> tuple[DataFile, ...]:
    """Data files that take the place of others in fragments that stay."""
    if not isinstance(operation, DataReplacement):
        return ()
    return tuple(item.new_file for item in operation.replacements)


def new_indices(operation: Operation) -> tuple[IndexMetadata, ...]:
    """Index segments that are published."""
    return operation.new_indices if isinstance(operation, CreateIndex) else ()


def new_schema(operation: Operation) -> Schema | None:
    """The schema that the operation brings; None where the table's own stays."""
    return operation.schema if isinstance(operation, (Merge, Overwrite, Project)) else None


def merges_column_files(transaction: Transaction | None) -> bool:
    """Whether it changes no field and brings no row: with the same number of rows it only wrote files of fragments again."""
    operation = None if transaction is None else transaction.operation
    return (
        isinstance(operation, Update)
        and bool(operation.updated_fragments)
        and operation.update_mode is UpdateMode.REWRITE_ROWS
        and not (operation.new_fragments or operation.removed_fragment_ids or operation.fields_modified)
    )
