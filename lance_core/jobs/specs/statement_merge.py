"""MERGE INTO, read into a merge by key and the query that gives its rows.

::

    WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *       the rows of USING as they are
    UPDATE SET n = s.n ... INSERT (id, n) VALUES (s.id, s.n)            SELECT s.id AS id, (s.n) AS n FROM ...
    UPDATE SET n = t.n + s.n ... INSERT (id, n) VALUES (s.id, 1)        new values of rows that match UNION ALL new rows

Where new values depend on the table's own rows, the query reads the table as well; see `statement_keys` for what it refuses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from lance_core.errors import InputError
from lance_core.jobs.specs.sql_reader import NOTHING, Statement, StatementReader, as_filter
from lance_core.jobs.specs.sql_tokens import Token, closing, split
from lance_core.jobs.specs.statement_keys import Values, guarded, pair_of, reads_only, values, with_copies

_ONE_NAME = "MERGE: ON must compare columns of one name, such as t.id = s.id AND t.day = s.day"
_LISTS = "Give the columns in USING (SELECT ...), and write UPDATE SET * and INSERT *; or list the columns in both clauses."
_ROWS = "rows_of_query"

Action = Values | Literal["*"] | None


@dataclass(frozen=True)
class _Merge:
    """What a MERGE says. `source` is what follows FROM to read its rows, `keys` the table's key columns with theirs."""

    reader: StatementReader
    target: str
    alias: str
    theirs: str
    source: str
    query: str
    keys: Mapping[str, str]

    update: Action = None
    update_condition: Sequence[Token] | None = None
    insert: Action = None
    insert_condition: Sequence[Token] | None = None
    deletes: bool = False
    by_source: bool = False

    def name(self, name: str) -> str:
        return self.reader.dialect.quoted(name)

    def is_key(self, name: str, tokens: Sequence[Token]) -> bool:
        """Whether a value is the key that the row was found by."""
        shown = [token.text for token in tokens if token.text != "."]
        texts = [token.name for token in tokens if token.text != "."]
        return name in self.keys and texts in ([self.theirs, self.keys[name]], [self.keys[name]]) and len(shown) <= 2

    @property
    def key_columns(self) -> list[str]:
        return [f"{self.name(self.theirs)}.{self.name(theirs)} AS {self.name(own)}" for own, theirs in self.keys.items()]

    @property
    def same(self) -> str:
        """That a row of the source has the key of a row of the table."""
        pairs = (
            f"{self.name(self.alias)}.{self.name(own)} = {self.name(self.theirs)}.{self.name(theirs)}"
            for own, theirs in self.keys.items()
        )
        return " AND ".join(pairs)

    @property
    def exists(self) -> str:
        return f"EXISTS (SELECT 1 FROM {self.name(self.target)} AS {self.name(self.alias)} WHERE {self.same})"  # nosec B608


def read_merge(reader: StatementReader) -> Statement:
    """A merge by key. InputError for what no merge does."""
    reader.expect("MERGE")
    reader.expect("INTO")
    target, alias = reader.table()
    reader.expect("USING")
    if reader.peek() == "(":
        query = reader.text(reader.group())
        theirs = reader.alias()
        source = f"({query}\n) AS {reader.dialect.quoted(theirs or _ROWS)}"
    else:
        name, theirs = reader.table()
        query = reader.select("*", reader.dialect.quoted(name))
        source = f"{reader.dialect.quoted(name)} AS {reader.dialect.quoted(theirs)}"
    keys = _read_keys(reader, {target, alias}, theirs)
    found: dict[str, Any] = {}
    fields: dict[str, Any] = {}
    while reader.take("WHEN"):
        clause, told = _when(reader, {target, alias}, theirs)
        if not found.keys().isdisjoint(clause):
            raise InputError("MERGE: two clauses for the same rows are not supported", cure="Use one MERGE for each.")
        found |= clause
        fields |= told
    if reader.at < len(reader.tokens):
        raise InputError(f"MERGE: expected WHEN, got {reader.peek()}")
    found.pop("matched", None)
    merge = _Merge(reader, target, alias, theirs or _ROWS, source, query, keys, **found)
    fields = {**NOTHING, **fields, "on": [*keys]}
    lists = isinstance(merge.update, Mapping) or isinstance(merge.insert, Mapping)
    if not lists and any(own != other for own, other in keys.items()):
        raise InputError(_ONE_NAME, cure="Rename the column in USING (SELECT ...).")
    if lists:
        return Statement("merge", target, _rows_of_lists(merge), fields)
    if merge.update == "*" and merge.update_condition is not None:
        others = {theirs} - {""}
        fields["when_matched_condition"] = as_filter(
            merge.update_condition, {target, alias}, reader.dialect, as_="target", others=others, others_as="source"
        )
    if merge.insert_condition is None:
        return Statement("merge", target, query, fields)
    return Statement("merge", target, reader.select(f"{merge.name(merge.theirs)}.*", source + _chosen(merge)), fields)


def _read_keys(reader: StatementReader, own: set[str], theirs: str) -> dict[str, str]:
    """`ON a.k = b.j AND ...`, or `USING (k, ...)`; own column -> the source's."""
    if reader.take("USING"):
        return {name: name for name in reader.names()}
    reader.expect("ON")
    tokens = reader.until({"WHEN"})
    if tokens and tokens[0].text == "(" and closing(tokens, 0) == len(tokens) - 1:
        tokens = tokens[1:-1]
    found: dict[str, str] = {}
    for part in split(tokens, "AND"):
        pair = pair_of(part, own)
        if pair is None or pair[1][0].name != theirs:
            raise InputError(_ONE_NAME)
        found[pair[0]] = pair[1][2].name
    return found


def _when(reader: StatementReader, own: set[str], theirs: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """One clause: what it says, and the fields of the job that say the same."""
    is_matched = not reader.take("NOT")
    reader.expect("MATCHED")
    by_source = False
    if reader.take("BY"):
        by_source = reader.take("SOURCE")
        _ = by_source or reader.expect("TARGET")
    condition = reader.until({"THEN"})[1:] if reader.peek() == "AND" else None
    reader.expect("THEN")
    tokens = reader.until({"WHEN"})
    action = [token.word or token.text for token in tokens]
    if is_matched and action in (["UPDATE", "SET", "*"], ["UPDATE"]):
        return {"matched": 1, "update": "*", "update_condition": condition}, {"when_matched": "update"}
    if is_matched and action[:2] == ["UPDATE", "SET"] and len(action) > 2:
        told = reader.assignments(tokens[2:], own)
        return {"matched": 1, "update": told, "update_condition": condition}, {"when_matched": "update"}
    if is_matched and action == ["DELETE"] and condition is None:
        return {"matched": 1, "deletes": True}, {"when_matched": "delete"}
    if not is_matched and not by_source and action in (["INSERT", "*"], ["INSERT"]):
        return {"insert": "*", "insert_condition": condition}, {"when_not_matched": "insert"}
    if not is_matched and not by_source and action[:2] == ["INSERT", "("]:
        return {"insert": _inserted(tokens), "insert_condition": condition}, {"when_not_matched": "insert"}
    if by_source and action == ["DELETE"]:
        only = None if condition is None else as_filter(condition, own, reader.dialect)
        fields = {} if only is None else {"when_not_matched_by_source_condition": only}
        return {"by_source": True}, {"when_not_matched_by_source": "delete", **fields}
    raise InputError(f"MERGE: a clause with the action {' '.join(action)} is not supported here", cure=_LISTS)


def _inserted(tokens: Sequence[Token]) -> dict[str, Sequence[Token]]:
    """`INSERT (a, b) VALUES (x, y)`, by column."""
    end = closing(tokens, 1)
    names = [token.name for token in tokens[2:end] if token.name]
    rest = tokens[end + 1 :]
    if len(rest) < 2 or rest[0].word != "VALUES" or rest[1].text != "(" or closing(rest, 1) != len(rest) - 1:
        raise InputError("MERGE: expected INSERT (columns) VALUES (expressions)", cure=_LISTS)
    given = split(rest[2:-1], ",")
    if len(names) != len(given) or not all(given) or len({*names}) != len(names):
        raise InputError(f"MERGE: INSERT names {len(names)} columns and gives {len(given)} values")
    return dict(zip(names, given, strict=True))


def _rows_of_lists(merge: _Merge) -> str:
    """The query for clauses with lists of columns."""
    reader, update, insert = merge.reader, merge.update, merge.insert
    if update == "*" or insert == "*":
        raise InputError("MERGE: one clause lists its columns and the other has a *", cure=_LISTS)
    added = _without_keys(merge, insert, must=True) if isinstance(insert, Mapping) else {}
    if not isinstance(update, Mapping):
        return reader.select(", ".join((*merge.key_columns, *values(reader, added))), merge.source + _chosen(merge))
    changed = _without_keys(merge, update, must=False)
    if not changed:
        raise InputError("MERGE: UPDATE SET changes nothing but keys", cure="Omit the clause.")
    same = insert is None or _texts(added) == _texts(changed)
    if same and merge.update_condition is None and reads_only(reader, changed.values(), {merge.theirs}):
        return reader.select(", ".join((*merge.key_columns, *values(reader, changed))), merge.source + _chosen(merge))
    if merge.update_condition is not None and merge.by_source:
        raise InputError(
            "MERGE: a condition of WHEN MATCHED with a list of columns cannot be combined with WHEN NOT MATCHED BY SOURCE",
            cure="Use one MERGE for each.",
        )
    return _both(merge, changed, added)


def _both(merge: _Merge, changed: Values, added: Values) -> str:
    """New values of the rows that match, which may read those rows, and rows to insert."""
    reader, columns = merge.reader, [*dict.fromkeys([*changed, *added])]
    source = f"lance_source AS {merge.name(merge.theirs)}"
    kept = [f"{merge.name(merge.alias)}.{merge.name(name)}" for name in columns]
    told = [
        values(reader, {name: changed[name]})[0] if name in changed else f"{old} AS {merge.name(name)}"
        for name, old in zip(columns, kept, strict=True)
    ]
    named = (merge.target, merge.alias)
    condition = merge.update_condition
    more = "" if condition is None else f" AND ({reader.text(condition)}\n)"
    rows = f"{with_copies(reader, named, merge.keys)}, {source}\nWHERE {merge.same}{more}"
    found = reader.select(", ".join((*guarded(reader, named, merge.keys), *told)), rows)
    if merge.insert is not None:
        new = [
            values(reader, {name: added[name]})[0] if name in added else f"NULL AS {merge.name(name)}" for name in columns
        ]
        wanted = merge.insert_condition
        more = "" if wanted is None else f" AND ({reader.text(wanted)}\n)"
        rows = f"{source}\nWHERE NOT {merge.exists}{more}"
        found += "\nUNION ALL\n" + reader.select(", ".join((*merge.key_columns, *new)), rows)
    return f"WITH lance_source AS (SELECT * FROM {merge.source})\n{found}"  # nosec B608


def _chosen(merge: _Merge) -> str:
    """The condition of INSERT over the rows of the source, of which those that match are needed for other clauses."""
    if merge.insert_condition is None:
        return ""
    condition = f"({merge.reader.text(merge.insert_condition)}\n)"
    needed = merge.update is not None or merge.deletes or merge.by_source
    return f"\nWHERE {merge.exists} OR {condition}" if needed else f"\nWHERE {condition}"


def _without_keys(merge: _Merge, given: Values, *, must: bool) -> Values:
    """The values of columns that are no keys. InputError for a key with another value than that of the source's row."""
    for own, theirs in merge.keys.items():
        if (own in given or must) and not merge.is_key(own, given.get(own, ())):
            said = f"INSERT must give it the value {merge.theirs}.{theirs}" if must else "UPDATE SET cannot change it"
            raise InputError(
                f"MERGE: {own!r} is a key, so {said}",
                cure="Rows are found by the columns of ON, so they keep these values.",
            )
    return {name: tokens for name, tokens in given.items() if name not in merge.keys}


def _texts(given: Values) -> dict[str, list[str]]:
    return {name: [token.text for token in tokens] for name, tokens in given.items()}
