"""What a JVM may ask: a literal table from the request's name to a function of it and its connection.

::

    driver      open -> schema, at      plan -> reader, groups, rows, bytes, clustered, keys      count -> rows
                begin | begin_edit -> writer, arrow  commit | abort      exact -> exact      delete
                statement -> sql, tables
                statement -> sql, tables
                catalog.* (see `catalog`)
    task        read -> Arrow's stream  write <- Arrow's stream -> result

A question with `again` was asked before, of a process that died: `begin` begins again, `commit` and `delete` (which carries
the statement's identity) go on.

`reader`, `group`, `writer` and `result` are opaque to the JVM, which carries them from the driver to tasks and back as Spark
carries a Python function: pickled, in the tasks of one application. No table, file or option ever supplies such words.
"""

from __future__ import annotations

import base64
import json
import pickle  # nosec B403: only what this application's own driver made and Spark carried, as any function of PySpark
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from lance_core.arrays import Addresses
from lance_core.errors import InputError, NotFoundError
from lance_core.jobs.kinds import carry_out
from lance_core.jobs.runtime.local_runner import LocalRunner
from lance_core.jobs.runtime.protocols import TaskResult
from lance_core.jobs.specs.edits import DeleteSpec
from lance_core.jobs.specs.secret import as_secret
from lance_core.publish.model import StagedTransaction
from lance_core.spark.bridge import catalog
from lance_core.spark.bridge.frames import Connection
from lance_core.spark.bridge.predicates import all_to_sql, to_sql
from lance_core.spark.bridge.statements import rewrite
from lance_core.spark.clustered import clustering, only_of_value
from lance_core.spark.column_totals import TotalsReader, parse_totals
from lance_core.spark.edit_writer import ADDRESS_FIELD, EditWriter, RowChanges
from lance_core.spark.options import SourceOptions, parse_options, refuse_search
from lance_core.spark.searches import SearchReader, search_of
from lance_core.spark.table_reader import FragmentGroup, TableReader, open_read_snapshot, read_schema
from lance_core.spark.table_writer import TableWriter, asked_by_statement, publish, table_of
from lance_core.spark.top_rows import TopReader, parse_keys

Request = Mapping[str, Any]
Reader: TypeAlias = TableReader | TopReader | TotalsReader | SearchReader
_T = TypeVar("_T")
_OF_QUERIES = frozenset({"checkpointlocation", "queryname"})
"""What Spark keeps of itself among the options of a stream."""


def answer(request: Request, peer: Connection) -> None:
    """Carry out one request. Its error is the answer; OSError and EOFError of the connection are the caller's."""
    act = _REQUESTS.get(str(request.get("do")))
    if act is None:
        peer.send_error(InputError(f"no request {request.get('do')!r}"))
        return
    act(request, peer)


def _answered(make: Callable[[Request], Mapping[str, Any]]) -> Callable[[Request, Connection], None]:
    """A question whose answer is JSON."""

    def act(request: Request, peer: Connection) -> None:
        try:
            found = make(request)
        except Exception as error:
            peer.send_error(error)
        else:
            peer.send_json(found)

    return act


def _open(request: Request) -> Mapping[str, Any]:
    from lance_core.spark.types import spark_schema

    options = parse_options(request["options"])
    snapshot = open_read_snapshot(options)
    at = json.dumps({"place": snapshot.uri, "version": snapshot.version})
    return {"schema": spark_schema(read_schema(options, snapshot=snapshot)).json(), "at": at}


def _plan(request: Request) -> Mapping[str, Any]:
    options, target = parse_options(request["options"]), _target(request)
    search, at = search_of(options), _at(request)
    if search is not None and at is not None:
        ranked = SearchReader(options, search, target, at=at)
        return _planned(ranked, [FragmentGroup(0, 0)], rows=ranked.num_rows, size=ranked.size)
    totals, top = request.get("totals"), request.get("top")
    read = target if totals is None else _schema_of(totals["columns"])
    reader = TableReader(options, read.names, read, at=at)
    known = [to_sql(described, reader.arrow_schema) for described in request["filters"]]
    reader.filter_also(" AND ".join(text for text in known if text is not None) or None)
    parallelism = max(1, int(request["parallelism"]))
    groups = reader.groups(parallelism=parallelism)
    size, rows = reader.size_of(groups), reader.rows_of(groups)
    if totals is not None:
        groups = groups or [FragmentGroup(0, 0)]  # one row says that there are none
        part = TotalsReader(reader, parse_totals(totals["of"]), target)
        return _planned(part, groups, rows=len(groups), size=size * len(groups) // max(1, rows))
    if top is not None:
        most = int(top["most"])
        first = TopReader(reader, _schema_of(top["columns"]), parse_keys(top["order"]), most)
        given = min(rows, most * len(groups))
        return _planned(first, groups, rows=given, size=size * given // max(1, rows))
    limit = int(request["limit"])
    if limit >= 0 and not reader.is_filtered:
        groups = reader.first_groups(groups, rows=limit)
    if request.get("may_cluster"):
        told = request.get("clustered")
        found = clustering(reader, groups, parallelism=parallelism, column=None if told is None else str(told))
        if found is not None:
            planned = _planned(reader, found.groups, rows=rows, size=size)
            return {**planned, "clustered": found.column, "keys": found.keys}
    return _planned(reader, groups, rows=rows, size=size)


def _planned(reader: Reader, groups: Sequence[FragmentGroup], *, rows: int, size: int) -> Mapping[str, Any]:
    return {"reader": _packed(reader), "groups": [_packed(group) for group in groups], "rows": rows, "bytes": size}


def _count(request: Request) -> Mapping[str, Any]:
    options = parse_options(request["options"])
    snapshot = open_read_snapshot(options, at=_at(request))
    return {"rows": sum(fragment.num_rows for fragment in snapshot.manifest.fragments)}


def _at(request: Request) -> tuple[str, int] | None:
    if "at" not in request:
        return None
    found = json.loads(request["at"])
    return str(found["place"]), int(found["version"])


def _read(request: Request, peer: Connection) -> None:
    try:
        reader = _unpacked_reader(request["reader"])
        group = _unpacked(FragmentGroup, request["group"])
        limit = int(request["limit"])
        batches = only_of_value(reader.read(group), group)
    except Exception as error:
        peer.send_error(error)
        return
    peer.send_batches(reader.target, batches if limit < 0 else _first(batches, limit))


def _first(batches: Iterator[pa.RecordBatch], limit: int) -> Iterator[pa.RecordBatch]:
    left = limit
    for batch in batches:
        yield batch.slice(0, left)
        left -= batch.num_rows
        if left <= 0:
            return


def _exact(request: Request) -> Mapping[str, Any]:
    options = parse_options(request["options"])
    refuse_search(options)
    try:
        schema = open_read_snapshot(options, at=_at(request)).arrow_schema
    except NotFoundError:  # a write may create it
        return {"exact": False}
    return {"exact": all_to_sql(request["filters"], schema) is not None}


def _delete(request: Request) -> Mapping[str, Any]:
    options = parse_options(request["options"])
    predicate = all_to_sql(request["filters"], open_read_snapshot(options, at=_at(request)).arrow_schema)
    if predicate is None:
        raise InputError("Lance cannot decide this filter as Spark does")
    spec = DeleteSpec(
        uri=table_of(options),
        storage_options={name: as_secret(text, where=name) for name, text in options.storage.items()},
        identity=options.identity or str(request["identity"]),
        asked=asked_by_statement(options, "delete"),
        predicate=predicate,
    )
    staged = carry_out(spec, LocalRunner())
    if isinstance(staged, StagedTransaction):
        publish(spec, staged.attempt)
    return {}


def _begin(request: Request) -> Mapping[str, Any]:
    is_batch = "query" in request
    given = {name: text for name, text in request["options"].items() if not (is_batch and name.lower() in _OF_QUERIES)}
    options: SourceOptions = parse_options(given)
    target = _target(request)
    if is_batch:
        options = replace(options, query=options.query or str(request["query"]), batch=int(request["batch"]))
    where = None
    if "where" in request:
        where = all_to_sql(request["where"], open_read_snapshot(options).arrow_schema)
        if where is None:
            raise InputError("Lance cannot decide this filter as Spark does")
    at = _at(request)
    writer = TableWriter(
        options, target, overwrite=bool(request["overwrite"]), where=where, read_version=None if at is None else at[1]
    )
    return {"writer": _packed(writer), "arrow": _arrow(target)}


def _begin_edit(request: Request) -> Mapping[str, Any]:
    options, target, at = parse_options(request["options"]), _target(request), _at(request)
    if at is None:
        raise InputError("the version that the statement reads is not known")
    writer = EditWriter(options, target, at=at, statement=str(request["statement"]))
    begun = {"writer": _packed(writer), "arrow": _arrow(target)}
    if writer.carries:
        begun["addressed_arrow"] = _arrow(target.append(ADDRESS_FIELD))
    return begun


def _target(request: Request) -> pa.Schema:
    return _schema_of(request["schema"])


def _schema_of(words: str) -> pa.Schema:
    """Of Spark's JSON of a `StructType`."""
    from pyspark.sql.types import StructType

    from lance_core.spark.types import arrow_schema

    return arrow_schema(StructType.fromJson(json.loads(words)))


def _arrow(schema: pa.Schema) -> str:
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def _write(request: Request, peer: Connection) -> None:
    batches = _received(peer)
    try:
        writer = _writer(request)
        result = writer.write(int(request["partition"]), str(request["task"]), batches)
        for _ in batches:  # work that was done before reads no rows
            pass
    except EOFError:
        raise
    except Exception as error:
        peer.send_error(error)
        raise EOFError("the rest of the rows is not read") from None
    peer.send_json({"result": _packed(result)})


def _received(peer: Connection) -> Iterator[pa.RecordBatch]:
    """The rows of a write; EOFError where they end early, which is not what a value that cannot be written is."""
    try:
        yield from peer.batches()
    except pa.ArrowInvalid as error:
        raise EOFError(f"the rows of a write ended early: {error}") from None


def _commit(request: Request) -> Mapping[str, Any]:
    writer, again = _writer(request), bool(request.get("again"))
    if isinstance(writer, EditWriter):
        writer.commit([_changes(json.loads(words)) for words in request["results"]], again=again)
    else:
        writer.commit([_unpacked_result(words) for words in request["results"]], again=again)
    return {}


def _changes(told: Mapping[str, Any]) -> RowChanges:
    written = {name: _unpacked_result(told[name]) for name in ("moved_rows", "new_rows") if name in told}
    return RowChanges(_addresses(told["deleted"]), _addresses(told["moved"]), **written)


def _addresses(words: str) -> Addresses:
    """As the jar packs them: differences of 8 bytes, deflated."""
    differences = np.frombuffer(zlib.decompress(base64.b64decode(words)), "<i8")
    return np.cumsum(differences).astype(np.uint64)


def _abort(request: Request) -> Mapping[str, Any]:
    _writer(request).abort()
    return {}


def _writer(request: Request) -> TableWriter | EditWriter:
    found = _unpacked(object, request["writer"])
    if not isinstance(found, (TableWriter, EditWriter)):
        raise InputError(f"expected a writer, got a {type(found).__name__}")
    return found


def _statement(request: Request) -> Mapping[str, Any]:
    found = rewrite(str(request["sql"]))
    return {} if found is None else found.to_dict()


def _packed(value: object) -> str:
    return base64.b64encode(pickle.dumps(value)).decode()


def _unpacked(kind: type[_T], words: str) -> _T:
    found = pickle.loads(base64.b64decode(words))  # nosec B301: see the module's head
    if not isinstance(found, kind):
        raise InputError(f"expected a {kind.__name__}, got a {type(found).__name__}")
    return found


def _unpacked_reader(words: str) -> Reader:
    found = _unpacked(object, words)
    if not isinstance(found, (TableReader, TopReader, TotalsReader, SearchReader)):
        raise InputError(f"expected a reader, got a {type(found).__name__}")
    return found


def _unpacked_result(words: str) -> TaskResult | None:
    found = pickle.loads(base64.b64decode(words))  # nosec B301: see the module's head
    if found is not None and not isinstance(found, TaskResult):
        raise InputError(f"expected a TaskResult, got a {type(found).__name__}")
    return found


_REQUESTS: Mapping[str, Callable[[Request, Connection], None]] = {
    "open": _answered(_open),
    "plan": _answered(_plan),
    "count": _answered(_count),
    "begin": _answered(_begin),
    "begin_edit": _answered(_begin_edit),
    "exact": _answered(_exact),
    "delete": _answered(_delete),
    "statement": _answered(_statement),
    "commit": _answered(_commit),
    "abort": _answered(_abort),
    "read": _read,
    "write": _write,
    **{name: _answered(make) for name, make in catalog.REQUESTS.items()},
}
