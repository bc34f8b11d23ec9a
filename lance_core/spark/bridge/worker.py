"""The Python process beside a JVM that reads and writes tables for it, and plans on the driver.

::

    python -m lance_core.spark.bridge.worker
    -> {"protocol": 1, "version": "0.1.0", "socket": "/tmp/lance-4k2j/s"}          one line on standard output, when ready
    then for each connection: request, answer, request, answer (see `frames`), until the other side closes it

One connection at a time: the JVM has a process for each task that is at work. The socket lies in a folder that only this
user may enter, and a peer of another user is refused. The process ends when its standard input does, which the JVM holds
open, however that ends. A request that fails is an answer; nothing that a table says ends the loop.

What a JVM may ask: a literal table from the request's name to a function of it and its connection.

::

    driver      open -> schema, at      plan -> reader, groups, rows, bytes      count -> rows
                begin -> writer, arrow  commit | abort
    task        read -> Arrow's stream  write <- Arrow's stream -> result

`reader`, `group`, `writer` and `result` are opaque to the JVM, which carries them from the driver to tasks and back as Spark
carries a Python function: pickled, in the tasks of one application. No table, file or option ever supplies such words.

Spark's predicates, as the jar describes them, -> SQL for a Lance scan; None for one that is left to Spark alone.

::

    {"op": "=", "column": ["s", "k"], "values": [{"type": "integer", "value": 3}]}    ->  "`s`.`k` = 3"
    {"op": "OR", "of": [...]}                                                         ->  "(..) OR (..)"

The rules of `filters` decide what surely means the same. Spark applies all of them again, so a scan may read more rows,
never less.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import logging
import os
import pickle  # nosec B403: only what this application's own driver made and Spark carried, as any function of PySpark
import shutil
import socket
import struct
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import pyarrow as pa

from lance_core import __version__
from lance_core.errors import InputError
from lance_core.jobs.runtime.protocols import TaskResult
from lance_core.spark import filters
from lance_core.spark.bridge.frames import Connection
from lance_core.spark.options import SourceOptions, parse_options
from lance_core.spark.table_reader import FragmentGroup, TableReader, open_read_snapshot, read_schema
from lance_core.spark.table_writer import TableWriter

PROTOCOL = 1
"""Changes with what is sent; the jar refuses a process of another one."""

log = logging.getLogger(__name__)


def main() -> None:
    """Listen, say where, and serve until standard input ends."""
    folder = tempfile.mkdtemp(prefix="lance-")  # of mode 0700
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
            place = str(Path(folder, "s"))
            listening.bind(place)
            listening.listen(1)
            threading.Thread(target=_end_with_input, args=(folder,), daemon=True).start()
            ready = {"protocol": PROTOCOL, "version": __version__, "socket": place}
            os.write(sys.stdout.fileno(), json.dumps(ready).encode() + b"\n")
            while True:
                connection, _ = listening.accept()
                with connection:
                    _serve(connection)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _end_with_input(folder: str) -> None:
    while os.read(sys.stdin.fileno(), 1 << 10):
        pass
    shutil.rmtree(folder, ignore_errors=True)
    # The JVM is gone, and with it whoever wants what is under way; files of a dead task are collected by its attempt's name.
    os._exit(0)


def _serve(connection: socket.socket) -> None:
    if not _is_own(connection):
        return
    peer = Connection(connection)
    try:
        while (request := peer.request()) is not None:
            answer(request, peer)
    except (OSError, EOFError) as error:  # the JVM closed early, as it does for a limit: the next connection is a new start
        log.debug("the connection ended in the middle of a request: %s", error)
    finally:
        peer.close()


def _is_own(connection: socket.socket) -> bool:
    """Whether the peer is a process of this user; where the system does not say, the folder's mode has to do."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return bool(struct.unpack("3i", raw)[1] == os.getuid())


if __name__ == "__main__":
    main()


Request = Mapping[str, Any]
_T = TypeVar("_T")


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
    from pyspark.sql.types import StructType

    from lance_core.spark.types import arrow_schema

    options = parse_options(request["options"])
    schema = StructType.fromJson(json.loads(request["schema"]))
    target = arrow_schema(schema)
    reader = TableReader(options, target.names, target, at=_at(request))
    known = [to_sql(described, reader.arrow_schema) for described in request["filters"]]
    reader.filter_also(" AND ".join(text for text in known if text is not None) or None)
    groups = reader.groups(parallelism=max(1, int(request["parallelism"])))
    size, rows = reader.size_of(groups), reader.rows_of(groups)
    limit = int(request["limit"])
    if limit >= 0 and not reader.is_filtered:
        groups = reader.first_groups(groups, rows=limit)
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
        reader, group = _unpacked(TableReader, request["reader"]), _unpacked(FragmentGroup, request["group"])
        limit = int(request["limit"])
        batches = reader.read(group)
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


def _begin(request: Request) -> Mapping[str, Any]:
    from pyspark.sql.types import StructType

    from lance_core.spark.types import arrow_schema

    options: SourceOptions = parse_options(request["options"])
    target = arrow_schema(StructType.fromJson(json.loads(request["schema"])))
    writer = TableWriter(options, target, overwrite=bool(request["overwrite"]))
    arrow = base64.b64encode(target.serialize().to_pybytes()).decode()
    return {"writer": _packed(writer), "arrow": arrow}


def _write(request: Request, peer: Connection) -> None:
    batches = peer.batches()
    try:
        writer = _unpacked(TableWriter, request["writer"])
        result = writer.write(int(request["partition"]), str(request["task"]), batches)
        for _ in batches:  # work that was done before reads no rows
            pass
    except (EOFError, pa.ArrowInvalid):
        raise EOFError("the rows of a write ended early") from None
    except Exception as error:
        peer.send_error(error)
        raise EOFError("the rest of the rows is not read") from None
    peer.send_json({"result": _packed(result)})


def _commit(request: Request) -> Mapping[str, Any]:
    writer = _unpacked(TableWriter, request["writer"])
    writer.commit([_unpacked_result(words) for words in request["results"]])
    return {}


def _abort(request: Request) -> Mapping[str, Any]:
    _unpacked(TableWriter, request["writer"]).abort()
    return {}


def _packed(value: object) -> str:
    return base64.b64encode(pickle.dumps(value)).decode()


def _unpacked(kind: type[_T], words: str) -> _T:
    found = pickle.loads(base64.b64decode(words))  # nosec B301: see the module's head
    if not isinstance(found, kind):
        raise InputError(f"expected a {kind.__name__}, got a {type(found).__name__}")
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
    "commit": _answered(_commit),
    "abort": _answered(_abort),
    "read": _read,
    "write": _write,
}


_EPOCH = dt.date(1970, 1, 1)
_NAMES = {
    "=": "EqualTo",
    ">": "GreaterThan",
    ">=": "GreaterThanOrEqual",
    "<": "LessThan",
    "<=": "LessThanOrEqual",
    "IN": "In",
    "IS_NULL": "IsNull",
    "IS_NOT_NULL": "IsNotNull",
}


def to_sql(described: Mapping[str, Any], schema: pa.Schema) -> str | None:
    """One predicate over a table's Arrow schema."""
    op = described["op"]
    if op in ("AND", "OR"):
        parts = [to_sql(part, schema) for part in described["of"]]
        known = [f"({part})" for part in parts if part is not None]
        return f" {op} ".join(known) if len(known) == len(parts) else None
    if op == "NOT":
        inner = to_sql(described["of"][0], schema)
        return None if inner is None else f"NOT ({inner})"
    if op == "<>":
        inner = to_sql({**described, "op": "="}, schema)
        return None if inner is None else f"NOT ({inner})"
    name = _NAMES.get(op)
    if name is None:
        return None
    values = tuple(_value(item) for item in described["values"])
    item: Any = SimpleNamespace(
        attribute=tuple(described["column"]), value=values if name == "In" else next(iter(values), None)
    )
    return filters.sql_of(name, item, schema)


def _value(item: Mapping[str, Any]) -> Any:
    value = item["value"]
    if item["type"] != "date":
        return value
    try:
        return _EPOCH + dt.timedelta(days=value)
    except OverflowError:  # Spark's days go further than Python's
        return None
