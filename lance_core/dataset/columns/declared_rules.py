"""What a table with declared columns refuses: values that are not the declaration's, and inputs that vanish.

::

    column "doubled" is declared as x * 2
    append of rows with a column "doubled"          refused: its values come from refresh
    drop, rename or cast of x                       refused: "doubled" reads it
    drop of "doubled"                               its evidence goes with it

LanceDB refuses the same. Writers that know nothing of declarations are not stopped: what they write has no evidence.
"""

from __future__ import annotations

from collections.abc import Iterable

from lance_core.errors import InputError
from lance_core.format.declared import declared_fields, evidence_of, hides_from_all, readers_of
from lance_core.format.schema import Schema


def refuse_values(schema: Schema, names: Iterable[str]) -> None:
    """InputError when one of these columns, for which rows or expressions bring values, is declared or evidence."""
    declared = {item.name for item in declared_fields(schema)} | hides_from_all(schema)
    for name in names:
        if name in declared:
            raise InputError(
                f"column {name!r} is declared: its values come from refresh and cannot be written",
                cure="Leave it out and refresh it (lance_core.refresh_columns), or undeclare it first.",
            )


def refuse_vanishing_input(schema: Schema, names: Iterable[str], *, what: str) -> None:
    """InputError when a declared column that stays reads one of these columns, which `what` would take from it."""
    gone = {*names}
    for name in gone:
        left = [reader for reader in readers_of(schema, name) if reader not in gone]
        if left:
            raise InputError(
                f"cannot {what} column {name!r}: the declared column {left[0]!r} reads it",
                cure="Drop or undeclare that column first.",
            )


def with_evidence(schema: Schema, names: Iterable[str]) -> list[str]:
    """The columns and the evidence beside those that are declared."""
    wanted = {*names}
    found = (evidence_of(schema, item) for item in declared_fields(schema) if item.name in wanted)
    return [*dict.fromkeys([*names, *(item.name for item in found if item is not None)])]


def refuse_cast(schema: Schema, name: str) -> None:
    """InputError when a column whose type is to change is declared."""
    if any(item.name == name for item in declared_fields(schema)):
        raise InputError(
            f"cannot change the type of column {name!r}, which is declared", cure="Drop it and declare it with the new type."
        )
