"""Statements that Spark's SQL does not have, said as statements that it has.

::

    OPTIMIZE lake.sales.orders                    CALL lake.system.compact(table => 'sales.orders')
    ALTER TABLE orders CREATE TAG good            CALL lake.system.tag(table => 'sales.orders', name => 'good', ...)
    SHOW INDEXES FROM orders                      SELECT ... FROM lake.sales.orders.indices
    REPLACE orders WHERE day = 1 AS SELECT ...    INSERT INTO orders REPLACE WHERE day = 1 SELECT ...
    ... FROM VECTOR_SEARCH('orders', array(1, 2)) ... FROM lake.sales.orders.`vector_search {...}`

The words are those of lance-spark's documentation. Which catalog a table's name belongs to is known to the JVM only, so the
answer has a place for each catalog and table, and the JVM leaves the statement to Spark where one of them is not ours.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lance_core.errors import InputError
from lance_core.jobs.specs.sql_tokens import SPARK, Token, spark_text, tokens_of
from lance_core.spark.searches import PARAMETERS

_LIKE_A_NAME = re.compile(r"\d\w*[^\W\d]\w*")
_NUMBER = re.compile(r"(?P<digits>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?P<kind>[LDFldf]?)")
_CONSTANTS: Mapping[str, bool | None] = {"TRUE": True, "FALSE": False, "NULL": None}


@dataclass
class Rewritten:
    """A statement for Spark. In `sql`, "\\0c0\\0" and "\\0t0\\0" stand for the catalog of the table number 0, and for its
    name there with dots, as text, "\\0q0\\0" for both, quoted part by part."""

    sql: str
    tables: list[list[str]] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """For the JVM."""
        return {"sql": self.sql, "tables": self.tables}


def rewrite(sql: str) -> Rewritten | None:
    """What to say instead; None for a statement that is Spark's own. InputError for one of ours that cannot be read."""
    tokens = _tokens(sql)
    for words, make in _STATEMENTS:
        if tuple(map(_said, tokens[: len(words)])) == words:
            found = make(_Reader(sql, tokens, len(words)))
            if found is not None:
                return found
    return _with_searches(sql, tokens)


def _tokens(sql: str) -> list[Token]:
    """Of a session's text as it is: several statements are for Spark to take or to refuse."""
    return tokens_of(sql, SPARK, may_be_several=True)


def _said(token: Token) -> str:
    """A token as a keyword or a sign; "" for a text and a name in quotes."""
    return token.word or (token.text if token.kind == "other" else "")


class _Reader:
    """The tokens of a statement, one after the other."""

    def __init__(self, sql: str, tokens: Sequence[Token], at: int) -> None:
        self.sql, self.tokens, self.at = sql, tokens, at

    @property
    def is_over(self) -> bool:
        """Whether nothing but a semicolon follows."""
        return all(token.text == ";" for token in self.tokens[self.at :])

    def take(self, *words: str) -> bool:
        """Whether these words follow; they are passed over then."""
        if tuple(map(_said, self.tokens[self.at : self.at + len(words)])) != words:
            return False
        self.at += len(words)
        return True

    def need(self, *words: str) -> None:
        """These words must follow."""
        if not self.take(*words):
            raise self.error(" ".join(words))

    def error(self, expected: str) -> InputError:
        """What was expected here."""
        found = self.tokens[self.at].text if self.at < len(self.tokens) else "the end"
        return InputError(f"expected {expected}, found {found}, in: {self.sql.strip()}")

    def name(self) -> str:
        """An identifier; Spark's may begin with a digit."""
        token = self.tokens[self.at] if self.at < len(self.tokens) else None
        name = "" if token is None else token.name or (token.text if _LIKE_A_NAME.fullmatch(token.text) else "")
        if not name:
            raise self.error("a name")
        self.at += 1
        return name

    def names(self) -> list[str]:
        """An identifier with dots."""
        found = [self.name()]
        while self.take("."):
            found.append(self.name())
        return found

    def value(self) -> Any:
        """A literal, or `array(...)` of literals."""
        if self.take("ARRAY", "(") or self.take("ARRAY", "["):
            return self._items()
        first, sign = self.at, -1 if self.take("-") else 1
        point = "." if self.take(".") else ""
        token = self.tokens[self.at] if self.at < len(self.tokens) else None
        self.at += 1
        if token is not None and (number := _NUMBER.fullmatch(point + token.text)) is not None:
            whole = number["digits"].isdecimal() and number["kind"].upper() not in ("D", "F")
            return sign * (int if whole else float)(number["digits"])
        if token is not None and self.at == first + 1:
            if token.kind == "text":
                return spark_text(token)
            if token.word in _CONSTANTS:
                return _CONSTANTS[token.word]
        self.at = first
        raise self.error("a literal value, such as 'text', 1.5, TRUE or array(1, 2)")

    def _items(self) -> list[Any]:
        found: list[Any] = []
        while not (self.take(")") or self.take("]")):
            if found:
                self.need(",")
            found.append(self.value())
        return found

    def options(self) -> dict[str, Any]:
        """`WITH (name = value, ...)`, where it follows; then the end."""
        found: dict[str, Any] = {}
        if self.take("WITH"):
            self.need("(")
            while not self.take(")"):
                if found:
                    self.need(",")
                name = self.name().lower()
                self.need("=")
                found[name] = self.value()
        self.end()
        return found

    def end(self) -> None:
        """Nothing may follow."""
        if not self.is_over:
            raise self.error("the end of the statement")


_TABLE = "\0t0\0"


def _call(procedure: str, table: Sequence[str], **arguments: Any) -> Rewritten:
    given = ", ".join(
        f"{name} => {_literal(value)}" for name, value in {"table": _TABLE, **arguments}.items() if value is not None
    )
    return Rewritten(f"CALL \0c0\0.system.{procedure}({given})", [[*table]])


def _literal(value: Any) -> str:
    if isinstance(value, str) and value == _TABLE:
        return _TABLE
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, (int, float)):
        return f"{value}D" if isinstance(value, float) else str(value)
    if isinstance(value, list):
        return f"array({', '.join(_literal(item) for item in value)})"
    escaped = str(value).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _known(options: Mapping[str, Any], taken: Sequence[str], ignored: Sequence[str], what: str) -> dict[str, Any]:
    """Those that a job has; those that only steer another engine's speed are left out, others refused."""
    unknown = sorted(set(options) - {*taken, *ignored})
    if unknown:
        raise InputError(f"{what} has no option {unknown[0]!r}", cure=f"Its options: {', '.join([*taken, *ignored])}.")
    return {name: options[name] for name in taken if name in options}


# Statements on a whole table


def _optimize(reader: _Reader) -> Rewritten:
    table = reader.names()
    own = ("target_rows_per_fragment", "max_bytes_per_file", "materialize_deletions_threshold", "max_source_fragments")
    options = reader.options()
    materializes = options.pop("materialize_deletions", True)
    given = _known(options, own, ("max_rows_per_group", "num_threads", "batch_size", "defer_index_remap"), "OPTIMIZE")
    if not materializes:
        given["materialize_deletions_threshold"] = 1.0
    if "materialize_deletions_threshold" in given:
        given["materialize_deletions_threshold"] = float(given["materialize_deletions_threshold"])
    return _call("compact", table, **given)


def _vacuum(reader: _Reader) -> Rewritten:
    table, options = reader.names(), reader.options()
    given = _known(options, ("before_version", "delete_unverified", "error_if_tagged_old_versions"),
                   ("before_timestamp_millis",), "VACUUM")  # fmt: skip
    if "before_timestamp_millis" in options:
        given["older_than_seconds"] = max(0.0, time.time() - int(options["before_timestamp_millis"]) / 1000)
    return _call("cleanup", table, **given)


def _replace(reader: _Reader) -> Rewritten | None:
    """Of rows; REPLACE TABLE is Spark's own."""
    if reader.take("TABLE"):
        return None
    first = reader.at
    table = reader.names()
    if not reader.take("WHERE"):
        return None
    name = reader.sql[reader.tokens[first].start : reader.tokens[reader.at - 2].end]
    begin, depth = reader.tokens[reader.at].start, reader.tokens[first].depth
    for token, after in zip(reader.tokens[reader.at :], reader.tokens[reader.at + 1 :], strict=False):
        if (
            token.depth == depth
            and token.word == "AS"
            and _said(after) in ("SELECT", "WITH", "VALUES", "FROM", "TABLE", "(")
        ):
            where, query = reader.sql[begin : token.start], reader.sql[token.end :].rstrip().rstrip(";")
            return Rewritten(f"INSERT INTO {name} REPLACE WHERE {where}{query}", [table])
    raise reader.error("AS and a query behind the rows that it replaces")


# ALTER TABLE name ...


def _alter(reader: _Reader) -> Rewritten | None:
    table = reader.names()
    for words, make in _ALTERATIONS:
        if reader.take(*words):
            return make(reader, table)
    return None


def _create_index(reader: _Reader, table: list[str]) -> Rewritten:
    name = reader.name()
    reader.need("USING")
    method = reader.name().upper()
    reader.need("(")
    columns = [".".join(reader.names())]
    while reader.take(","):
        columns.append(".".join(reader.names()))
    reader.need(")")
    options = reader.options()
    if len(columns) > 1:
        raise InputError(
            f"an index has one column, and {name} names {len(columns)}",
            cure="Create one for each column: a filter on several uses them together.",
        )
    for unused in ("build_mode", "rows_per_range", "num_segments", "zone_size", "prefetch_distance"):
        options.pop(unused, None)
    renamed = {"distance_type": "metric", "m": "num_edges", "max_iters": "max_iterations"}
    parameters = {renamed.get(option, option): value for option, value in options.items()}
    parameters = parameters if method.startswith("IVF") else options
    more = {"parameters": json.dumps(parameters)} if parameters else {}
    kind = {"FTS": "INVERTED"}.get(method, method)
    return _call("build_index", table, column=columns[0], index_type=kind, name=name, replace=True, **more)


def _drop_index(reader: _Reader, table: list[str]) -> Rewritten:
    name = reader.name()
    reader.end()
    return _call("drop_index", table, name=name)


def _optimize_index(reader: _Reader, table: list[str]) -> Rewritten:
    name = reader.name()
    given = _known(reader.options(), ("num_indices_to_merge", "retrain"), (), "OPTIMIZE INDEX")
    return _call("optimize_indices", table, index_names=[name], **given)


def _refresh_index(reader: _Reader, table: list[str]) -> Rewritten:
    """Options of the method are the index's own here, so those that are given again change nothing."""
    name = reader.name()
    reader.options()
    return _call("optimize_indices", table, index_names=[name], num_indices_to_merge=0)


def _create_tag(reader: _Reader, table: list[str]) -> Rewritten:
    if_absent = reader.take("IF", "NOT", "EXISTS")
    name, chosen = reader.name(), _as_of(reader)
    return _call("tag", table, name=name, action="create", if_absent=if_absent or None, **chosen)


def _drop_tag(reader: _Reader, table: list[str]) -> Rewritten:
    reader.take("IF", "EXISTS")  # forgetting a name that nobody knows is the same as forgetting it
    name = reader.name()
    reader.end()
    return _call("tag", table, name=name, action="delete")


def _create_branch(reader: _Reader, table: list[str]) -> Rewritten:
    if_absent = reader.take("IF", "NOT", "EXISTS")
    name, chosen = reader.name(), _as_of(reader)
    return _call("branch", table, name=name, action="create", if_absent=if_absent or None, **chosen)


def _drop_branch(reader: _Reader, table: list[str]) -> Rewritten:
    if_exists = reader.take("IF", "EXISTS")
    name = reader.name()
    reader.end()
    return _call("branch", table, name=name, action="delete", if_exists=if_exists or None)


def _as_of(reader: _Reader) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if reader.take("AS", "OF"):
        if reader.take("TAG"):
            found["tag"] = reader.name()
        if reader.take("BRANCH"):
            found["from_branch"] = reader.name()
        if not found or reader.take("VERSION"):
            if not found and not reader.take("VERSION"):
                raise reader.error("VERSION, BRANCH or TAG")
            found["version"] = int(reader.value())
    reader.end()
    return found


def _set_key(reader: _Reader, table: list[str]) -> Rewritten:
    reader.need("(")
    columns = [reader.name()]
    while reader.take(","):
        columns.append(reader.name())
    reader.need(")")
    reader.end()
    return _call("set_primary_key", table, columns=columns)


def _update_columns(reader: _Reader, table: list[str]) -> Rewritten:
    raise InputError(
        "UPDATE COLUMNS ... FROM goes by row addresses, which Spark's MERGE cannot match a table by",
        cure="MERGE INTO the table USING the source ON a key WHEN MATCHED THEN UPDATE SET its columns.",
    )


def _add_columns(reader: _Reader, table: list[str]) -> Rewritten | None:
    """Those of a query. ADD COLUMNS with types is Spark's own."""
    names = [reader.name()] if not reader.take("(") else []
    while names and reader.take(","):
        names.append(reader.name())
    if not names or not reader.take("FROM"):
        return None
    raise InputError(
        f"ADD COLUMNS {', '.join(names)} FROM is two statements here",
        cure="ALTER TABLE ... ADD COLUMNS with their types, then MERGE INTO the table by a key; or compute them "
        "without Spark's rows: LanceAddColumnsOperator, dataset.add_columns.",
    )


# SHOW


def _show(name: str, columns: str) -> Callable[[_Reader], Rewritten | None]:
    def make(reader: _Reader) -> Rewritten | None:
        if not (reader.take("FROM") or reader.take("IN")):
            return None
        table = reader.names()
        reader.end()
        # Both come from the constants below; the table's name is quoted by the JVM.
        return Rewritten(f"SELECT DISTINCT {columns} FROM \0q0\0.{name}", [table])  # nosec B608

    return make


_SHOW_INDICES = _show(
    "indices",
    "name, columns AS fields, lower(type) AS index_type, num_indexed_fragments, num_indexed_rows, num_unindexed_fragments, "
    "num_unindexed_rows",
)
_SHOW_TAGS = _show("tags", "name, branch, version, created_at")
_SHOW_BRANCHES = _show("branches", "name, parent_branch, parent_version, created_at")


_ALTERATIONS: Sequence[tuple[tuple[str, ...], Callable[[_Reader, list[str]], Rewritten | None]]] = (
    (("CREATE", "INDEX"), _create_index),
    (("DROP", "INDEX"), _drop_index),
    (("OPTIMIZE", "INDEX"), _optimize_index),
    (("REFRESH", "INDEX"), _refresh_index),
    (("CREATE", "TAG"), _create_tag),
    (("DROP", "TAG"), _drop_tag),
    (("CREATE", "BRANCH"), _create_branch),
    (("DROP", "BRANCH"), _drop_branch),
    (("SET", "UNENFORCED", "PRIMARY", "KEY"), _set_key),
    (("UPDATE", "COLUMNS"), _update_columns),
    (("ADD", "COLUMNS"), _add_columns),
)

_STATEMENTS: Sequence[tuple[tuple[str, ...], Callable[[_Reader], Rewritten | None]]] = (
    (("OPTIMIZE",), _optimize),
    (("VACUUM",), _vacuum),
    (("REPLACE",), _replace),
    (("ALTER", "TABLE"), _alter),
    (("SHOW", "INDEXES"), _SHOW_INDICES),
    (("SHOW", "INDEX"), _SHOW_INDICES),
    (("SHOW", "TAGS"), _SHOW_TAGS),
    (("SHOW", "TAG"), _SHOW_TAGS),
    (("SHOW", "BRANCHES"), _SHOW_BRANCHES),
    (("SHOW", "BRANCH"), _SHOW_BRANCHES),
)


# VECTOR_SEARCH, SEARCH, HYBRID_SEARCH in FROM


def _with_searches(sql: str, tokens: Sequence[Token]) -> Rewritten | None:
    pieces: list[str] = []
    tables: list[list[str]] = []
    done = 0
    for number in range(1, len(tokens) - 1):
        kind = _SEARCHES.get(tokens[number].word)
        if kind is None or _said(tokens[number - 1]) not in ("FROM", "JOIN", ",") or tokens[number + 1].text != "(":
            continue
        reader = _Reader(sql, tokens, number + 2)
        arguments = _arguments(reader, kind)
        table = arguments.pop("table", None)
        if not isinstance(table, str):
            raise InputError(
                f"{tokens[number].text} needs the table's name as text", cure="Pass it first, or table => '...'."
            )
        name = f"{kind} {json.dumps(arguments)}".replace("`", "``")
        pieces += [sql[done : tokens[number].start], f"\0q{len(tables)}\0.`{name}`"]
        tables.append(_Reader(table, _tokens(table), 0).names())
        done = tokens[reader.at - 1].end
    return Rewritten("".join([*pieces, sql[done:]]), tables) if tables else None


def _arguments(reader: _Reader, kind: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    while not reader.take(")"):
        if found:
            reader.need(",")
        if [token.text for token in reader.tokens[reader.at + 1 : reader.at + 3]] == ["=", ">"]:
            name = reader.name().lower()
            reader.need("=", ">")
        elif len(found) < len(_POSITIONS[kind]):
            name = _POSITIONS[kind][len(found)]
        else:
            raise reader.error("an argument by its name, such as columns => array('id')")
        if name != "table" and name not in PARAMETERS[kind]:
            raise InputError(f"{kind} has no argument {name!r}", cure=f"It has: table, {', '.join(PARAMETERS[kind])}.")
        found[name] = reader.value()
    return found


_SEARCHES = {
    "VECTOR_SEARCH": "vector_search",
    "SEARCH": "text_search",
    "TEXT_SEARCH": "text_search",
    "HYBRID_SEARCH": "hybrid_search",
}
_POSITIONS = {
    "vector_search": ("table", "query_vector", "num_results"),
    "text_search": ("table", "query", "num_results"),
    "hybrid_search": ("table", "query_vector", "query", "num_results"),
}
