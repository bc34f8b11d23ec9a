"""Changes of a table's rows by what other tables hold, as a query that gives keys and new values for a merge by key.

::

    UPDATE users u SET name = s.name FROM s WHERE u.id = s.user_id
        ->  SELECT s.user_id AS id, (s.name) AS name FROM s                                  merged on id
    UPDATE users u SET n = u.n + s.n FROM s WHERE u.id = s.id
        ->  SELECT u.id AS id, (u.n + s.n) AS n FROM users AS u ..., s WHERE u.id = s.id     the same
    DELETE FROM users u WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.id = u.id)
        ->  SELECT u.id AS id FROM users AS u ... WHERE NOT EXISTS (...)                     merge that deletes

The merge finds rows by key. Where new values or the choice of rows depend on the table's other columns, two rows with one
key would get each other's values, so such a query fails when it meets a key that is null or that two rows have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from lance_core.errors import InputError
from lance_core.jobs.specs.sql_reader import NOTHING, QUERY, StatementReader
from lance_core.jobs.specs.sql_tokens import Token, closing, split

Named = tuple[str, str]
"""A table's name and its alias."""
Keys = Sequence[tuple[str, str]]
"""Key columns of the changed table, each with the text of what it equals."""
Values = Mapping[str, Sequence[Token]]

_CURE = "Compare a key column of {0} with one of the other tables, such as {1}.id = s.id, in the WHERE."


def update_from(
    reader: StatementReader, named: Named, updates: Values, source: Sequence[Token], where: Sequence[Token] | None
) -> tuple[str, dict[str, Any]]:
    """The query and the fields of the merge for `UPDATE t SET ... FROM source WHERE`."""
    keys, rest = _keys(reader, named, where or (), what="UPDATE ... FROM")
    _refuse_keys(updates, keys)
    theirs = _tables(source, named)
    fields = {**NOTHING, "on": [key for key, _ in keys], "when_matched": "update"}
    if reads_only(reader, (*updates.values(), *rest), theirs):
        told = (*(f"{text} AS {_name(reader, key)}" for key, text in keys), *values(reader, updates))
        return reader.select(", ".join(told), reader.text(source) + _where(reader, rest)), fields
    columns = (*guarded(reader, named, [key for key, _ in keys]), *values(reader, updates))
    rows = f"{with_copies(reader, named, [key for key, _ in keys])}, {reader.text(source)}{_where(reader, [where or ()])}"
    return reader.select(", ".join(columns), rows), fields


def update_by_query(
    reader: StatementReader, named: Named, updates: Values, where: Sequence[Token] | None
) -> tuple[str, dict[str, Any]]:
    """The query and the fields of the merge for an UPDATE with subqueries."""
    key, inner = _key(reader, named, where or (), updates, what="UPDATE")
    _refuse_keys(updates, [(key, "")])
    fields = {**NOTHING, "on": [key], "when_matched": "update"}
    name = _name(reader, key)
    if inner and reads_only(reader, updates.values(), set()):
        rows = f"({_distinct(reader, key, inner)}) AS rows_of_keys"
        return reader.select(", ".join((name, *values(reader, updates))), rows), fields
    columns = (*guarded(reader, named, [key]), *values(reader, updates))
    condition = "" if where is None else _where(reader, [where])
    return reader.select(", ".join(columns), with_copies(reader, named, [key]) + condition), fields


def delete_using(
    reader: StatementReader, named: Named, source: Sequence[Token], where: Sequence[Token] | None
) -> tuple[str, dict[str, Any]]:
    """The query and the fields of the merge for `DELETE FROM t USING source WHERE`."""
    keys, rest = _keys(reader, named, where or (), what="DELETE ... USING")
    theirs = _tables(source, named)
    names = [key for key, _ in keys]
    fields = {"on": names, "when_matched": "delete"}
    if reads_only(reader, rest, theirs):
        told = ", ".join(f"{text} AS {_name(reader, key)}" for key, text in keys)
        return reader.select(f"DISTINCT {told}", reader.text(source) + _where(reader, rest)), fields
    rows = f"{with_copies(reader, named, names)}, {reader.text(source)}{_where(reader, [where or ()])}"
    return reader.select("DISTINCT " + ", ".join(guarded(reader, named, names)), rows), fields


def delete_by_query(reader: StatementReader, named: Named, where: Sequence[Token]) -> tuple[str, dict[str, Any]]:
    """The query and the fields of the merge for a DELETE with subqueries."""
    key, inner = _key(reader, named, where, {}, what="DELETE")
    fields = {"on": [key], "when_matched": "delete"}
    if inner:
        return _distinct(reader, key, inner), fields
    rows = f"{with_copies(reader, named, [key])}{_where(reader, [where])}"
    return reader.select(", ".join(guarded(reader, named, [key])), rows), fields


def values(reader: StatementReader, given: Values) -> list[str]:
    """Expressions with their columns' names."""
    return [f"({reader.text(tokens)}\n) AS {_name(reader, name)}" for name, tokens in given.items()]


def guarded(reader: StatementReader, named: Named, keys: Iterable[str]) -> list[str]:
    """The key columns of the rows of `with_copies`; the query fails for a key that does not identify its row."""
    target, alias = named[0].translate({39: None, 92: None}), _name(reader, named[1])
    names = [*keys]
    shown = ", ".join(names).translate({39: None, 92: None})
    text = f"'{target}: a key is null or not unique, so {shown} cannot tell which row to change'"
    refusal = f"CASE WHEN coalesce(lance_keys.lance_copies, 2) > 1 THEN {reader.dialect.fail}({text}) ELSE"
    return [f"{refusal} {alias}.{_name(reader, name)} END AS {_name(reader, name)}" for name in names]


def with_copies(reader: StatementReader, named: Named, keys: Iterable[str]) -> str:
    """The table under its alias, each row with the number of rows that have its key."""
    target, alias, names = _name(reader, named[0]), _name(reader, named[1]), [_name(reader, key) for key in keys]
    told = ", ".join(f"{name} AS lance_key_{number}" for number, name in enumerate(names))
    counted = reader.select(f"{told}, count(*) AS lance_copies", f"{target} GROUP BY {', '.join(names)}")
    same = " AND ".join(f"{alias}.{name} = lance_keys.lance_key_{number}" for number, name in enumerate(names))
    return f"{target} AS {alias} LEFT JOIN ({counted}) AS lance_keys ON {same}"


def reads_only(reader: StatementReader, parts: Iterable[Sequence[Token]], theirs: set[str]) -> bool:
    """Whether expressions are known to read no other tables than those; a plain column name may be anybody's."""
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError

    try:
        trees = [parse_one(f"({reader.text(tokens)}\n)", dialect=reader.dialect.engine) for tokens in parts]
    except (SqlglotError, RecursionError):  # valid for the engine, which has its own parser
        return False
    if any(tree.find(exp.Query) for tree in trees):
        return False
    names = (name.parent for tree in trees for name in tree.find_all(exp.Identifier) if name.arg_key != "expression")
    return all(isinstance(of, exp.Column) and len(of.parts) > 1 and of.parts[0].name in theirs for of in names)


def pair_of(part: Sequence[Token], own: set[str]) -> tuple[str, Sequence[Token]] | None:
    """`own.column = other.column` either way round: the own column, and the other one."""
    if [token.text for token in part[1::2]] != [".", "=", "."] or len(part) != 7 or not all(t.name for t in part[::2]):
        return None
    left, right = part[:3], part[4:]
    if (left[0].name in own) == (right[0].name in own):
        return None
    return (left[2].name, right) if left[0].name in own else (right[2].name, left)


def _tables(source: Sequence[Token], named: Named) -> set[str]:
    if not source:
        raise InputError(f"the statement: expected another table to change {named[0]} by, got none")
    return {token.name for token in source if token.name and token.depth == 0} - {*named}


def _keys(
    reader: StatementReader, named: Named, where: Sequence[Token], *, what: str
) -> tuple[list[tuple[str, str]], list[Sequence[Token]]]:
    """The keys that a condition compares, and its other parts."""
    if where and where[0].text == "(" and closing(where, 0) == len(where) - 1:
        where = where[1:-1]
    keys: dict[str, str] = {}
    rest: list[Sequence[Token]] = []
    for part in split(where, "AND") if where else ():
        found = pair_of(part, {*named})
        if found is None or found[0] in keys:
            rest.append(part)
        else:
            keys[found[0]] = reader.text(found[1])
    if any(token.word == "OR" and token.depth == where[0].depth - (where[0].text == "(") for token in where):
        keys = {}
    if not keys:
        raise InputError(f"{what}: the condition compares no key column of {named[0]}", cure=_CURE.format(*named))
    return [*keys.items()], rest


def _key(reader: StatementReader, named: Named, where: Sequence[Token], updates: Values, *, what: str) -> tuple[str, str]:
    """The key column that a statement with subqueries compares; and the query, where `key IN (query)` is all it says."""
    parts = split(where, "AND") if where else []
    for part in parts:
        own = part[2:] if len(part) > 2 and part[0].name in named and part[1].text == "." else part
        negated = len(own) > 1 and own[1].word == "NOT"
        rest = own[2:] if negated else own[1:]
        if own and own[0].name and len(rest) > 2 and rest[0].word == "IN" and rest[2].word in QUERY:
            is_all = len(parts) == 1 and not negated and closing(rest, 1) == len(rest) - 1 and not _qualified(rest, named)
            return own[0].name, reader.text(rest[2:-1]) if is_all else ""
    for tokens in (where, *updates.values()):
        for start in range(len(tokens) - 6):
            found = pair_of(tokens[start : start + 7], {*named})
            if found is not None and tokens[start].depth > tokens[0].depth - (tokens[0].text == "("):
                return found[0], ""
    raise InputError(
        f"{what}: no key column of {named[0]} is compared with what the subquery gives", cure=_CURE.format(*named)
    )


def _qualified(tokens: Sequence[Token], named: Named) -> bool:
    """Whether a query names columns of the changed table."""
    return any(token.name in named and after.text == "." for token, after in pairwise(tokens))


def _distinct(reader: StatementReader, key: str, query: str) -> str:
    name = _name(reader, key)
    return reader.select(f"DISTINCT {name}", f"({query}\n) AS rows_of_query({name}) WHERE {name} IS NOT NULL")


def _refuse_keys(updates: Values, keys: Keys) -> None:
    changed = next((key for key, _ in keys if key in updates), None)
    if changed is not None:
        raise InputError(
            f"UPDATE: {changed!r} is the key by which the rows are found, so it cannot be changed as well",
            cure="Change it with a statement of its own.",
        )


def _where(reader: StatementReader, parts: Sequence[Sequence[Token]]) -> str:
    return "\nWHERE " + " AND ".join(f"({reader.text(part)}\n)" for part in parts) if parts else ""


def _name(reader: StatementReader, name: str) -> str:
    return reader.dialect.quoted(name)
