"""Statements of Spark's SQL as the jar asks for them, without a JVM: what is asked, and what must be there in the end.

::

    Conversation(server, uri)      the JVM: asks a worker, gives a task that died to another one, asks for a commit again
"""

from __future__ import annotations

import base64
import json
import uuid
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from kill_plan import KillPlan
from kill_server import Worker, WorkerServer

SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("day", pa.int32())])
SPARK_SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": "id", "type": "long", "nullable": True, "metadata": {}},
            {"name": "day", "type": "integer", "nullable": True, "metadata": {}},
        ],
    }
)
BASE = [*range(30)]
"""In three fragments, a version each."""


def rows(ids: Sequence[int]) -> pa.Table:
    return pa.table({"id": list(ids), "day": [number // 10 for number in ids]}, schema=SCHEMA)


@dataclass
class Conversation:
    """One application and its workers; the first worker has a plan to die. `lives`: when it does, Spark goes on with another
    one; else the application is gone with it, and EOFError says so."""

    server: WorkerServer
    uri: str
    plan: KillPlan | None = None
    lives: bool = False
    tasks: int = 0
    options: Mapping[str, str] = field(default_factory=dict)
    """Of the table, beside its place."""
    _worker: Worker | None = field(default=None, repr=False)

    def ask(self, what: str, **request: Any) -> dict[str, Any]:
        """A question of the driver. A planner that died is asked again, as the jar does."""
        if "options" in request:
            request["options"] = {**request["options"], **self.options}
        return self._ask({"do": what, **request})

    def write(self, writer: str, partition: int, ids: Sequence[int], addresses: Sequence[int] | None = None) -> str:
        """One task, and after its worker died the next try of it. `addresses`: those that the rows had."""
        self.tasks += 1
        request = {"do": "write", "writer": writer, "partition": partition, "task": str(self.tasks)}
        sent = self.rows(ids)
        if addresses is not None:
            sent = sent.append_column(pa.field("_rowaddr", pa.int64(), nullable=False), pa.array(addresses, pa.int64()))
        try:
            return str(self._sent(request, sent)["result"])
        except EOFError:
            self._gone()
            self.tasks += 1
            return str(self._sent({**request, "task": str(self.tasks)}, sent)["result"])

    @property
    def schema(self) -> str:
        """The columns of what is written, as Spark says them."""
        return SPARK_SCHEMA

    def rows(self, ids: Sequence[int]) -> pa.Table:
        """Rows of a task."""
        return rows(ids)

    def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return self._sent(request)
        except EOFError:
            self._gone()
            return self._sent({**request, "again": True})

    def _sent(self, request: Mapping[str, Any], table: pa.Table | None = None) -> dict[str, Any]:
        if self._worker is None:
            self._worker = self.server.start(self.plan)
        return self._worker.ask(request, table)

    def _gone(self) -> None:
        self.close()
        self.plan = None
        if not self.lives:
            raise EOFError("the application is gone")

    def close(self) -> None:
        """End the application."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None


@dataclass(frozen=True)
class Statement:
    """`run` carries it out; `rows`: the ids behind it. `creates`: there is no table before."""

    run: Callable[[Conversation], None]
    rows: Sequence[int]
    creates: bool = False

    @property
    def before(self) -> list[int]:
        """The ids before it."""
        return [] if self.creates else BASE


def _write(spark: Conversation, parts: Sequence[Sequence[int]], **begin: Any) -> None:
    options = {"path": spark.uri, "allowEmpty": "true", "maxRowsPerFile": "4"}
    begun = spark.ask("begin", options=options, schema=spark.schema, **{"overwrite": False, **begin})
    results = [spark.write(begun["writer"], number, ids) for number, ids in enumerate(parts)]
    spark.ask("commit", writer=begun["writer"], results=results)


def _edit(
    spark: Conversation,
    statement: str,
    *,
    deleted: Sequence[int] = (),
    moved: Mapping[int, int] | None = None,
    new: Sequence[int] = (),
) -> None:
    """Of rows by their ids, which in this table tell the addresses; `moved`: id before -> id behind."""
    opened = spark.ask("open", options={"path": spark.uri})
    options = {"path": spark.uri}
    begun = spark.ask("begin_edit", options=options, at=opened["at"], schema=spark.schema, statement=statement)
    moved = moved or {}
    told = {"deleted": _packed(deleted), "moved": _packed([*moved])}
    if moved:
        addresses = _addresses([*moved]) if "addressed_arrow" in begun else None
        told["moved_rows"] = spark.write(begun["writer"], 0, [*moved.values()], addresses)
    if new:
        told["new_rows"] = spark.write(begun["writer"], 1_000_000, new)
    spark.ask("commit", writer=begun["writer"], results=[json.dumps(told)])


def _addresses(ids: Sequence[int]) -> list[int]:
    return [(number // 10 << 32) + number % 10 for number in ids]


def _packed(ids: Sequence[int]) -> str:
    addresses = np.array(_addresses(ids), "<i8")
    return base64.b64encode(zlib.compress(np.diff(addresses, prepend=0).astype("<i8").tobytes())).decode()


def _below(number: int) -> list[dict[str, Any]]:
    return [{"op": "<", "column": ["id"], "values": [{"type": "integer", "value": number}]}]


def _delete(spark: Conversation) -> None:
    at = spark.ask("open", options={"path": spark.uri})["at"]
    spark.ask("delete", options={"path": spark.uri}, at=at, filters=_below(12), identity=str(uuid.uuid4()))


STATEMENTS: Mapping[str, Statement] = {
    "insert": Statement(lambda spark: _write(spark, [range(100, 105), range(105, 110)]), [*BASE, *range(100, 110)]),
    "create as": Statement(
        lambda spark: _write(spark, [range(100, 105), range(105, 110)], overwrite=True), [*range(100, 110)], creates=True
    ),
    "overwrite": Statement(
        lambda spark: _write(spark, [range(100, 105), range(105, 110)], overwrite=True), [*range(100, 110)]
    ),
    "replace where": Statement(
        lambda spark: _write(spark, [range(2, 4), range(4, 5)], where=_below(12)), [2, 3, 4, *range(12, 30)]
    ),
    "delete by lance": Statement(_delete, [*range(12, 30)]),
    "delete": Statement(lambda spark: _edit(spark, "delete", deleted=range(0, 30, 3)), [i for i in BASE if i % 3]),
    "update": Statement(
        lambda spark: _edit(spark, "update", moved={i: i + 100 for i in range(8, 23)}),
        [*range(8), *range(23, 30), *range(108, 123)],
    ),
    "update in place": Statement(lambda spark: _edit(spark, "update", moved={i: i for i in (22, 8, 15, 9)}), BASE),
    "merge": Statement(
        lambda spark: _edit(spark, "merge", deleted=[3, 13], moved={7: 107, 17: 117}, new=range(200, 209)),
        [*(i for i in BASE if i not in (3, 7, 13, 17)), 107, 117, *range(200, 209)],
    ),
}  # fmt: skip
