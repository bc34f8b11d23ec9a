"""From a task instance to tables: its XCom says which identities it staged or published, and the tables' own
records say what became of them.

::

    {"uri": "/lake/orders.lance", "identity": "5d2c…", "attempt": "00ff…"}      XCom of a staging task
    {"uri": "...", "version": 7, "identities": {"5d2c…": "committed"}}          XCom of a task that published
    {"uri": "...", "operation": "tag", "name": "prod", "version": 7}        XCom of a task that took effect at once

A branch has a uri below its table's. A table that is below a known base uri and is not found there any more was dropped.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from airflow_lance.ui.catalog import Source, TableRef
from airflow_lance.ui.errors import page_error
from airflow_lance.ui.service import Pages

Json = dict[str, object]
MAX_XCOMS = 500
MAX_IDENTITIES = 500
_BRANCHES = "/tree/"
_READS = frozenset({"query", "sql", "check", "validate"})
MAX_DEPTH = 8
"""A list of references, in a tuple, of mappings; deeper values are none of ours."""


@dataclass(frozen=True)
class _Mention:
    """An identity that an XCom names, and the task instance whose XCom it is."""

    uri: str
    identity: str
    publishes: bool
    task: Json
    told: Json
    gates: tuple[Json, ...] | None = None
    is_immediate: bool = False


async def find_work(
    pages: Pages, *, dag_id: str, run_id: str | None, task_id: str | None, map_index: int | None
) -> dict[str, object]:
    """Return what the task instances staged, newest XCom first."""
    mentions = await pages.run("airflow", lambda: _mentions(dag_id, run_id, task_id, map_index))
    by_uri: dict[str, list[_Mention]] = {}
    for item in mentions[:MAX_IDENTITIES]:
        by_uri.setdefault(item.uri, []).append(item)
    sources = await pages.sources()
    known = {
        ref.uri.rstrip("/"): (ref, found.source) for found in sources for ref in found.tables if found.source is not None
    }
    bases = [found.source.base_uri for found in sources if found.source is not None and found.error is None]
    places = await pages.run("airflow", lambda: {uri: _place(uri, bases) for uri in by_uri})
    parts = await asyncio.gather(
        *(_of_table(pages, places[uri], items, known.get(_table_of(uri))) for uri, items in by_uri.items())
    )
    order = {(item.uri, item.identity): number for number, item in reversed([*enumerate(mentions)])}
    entries = [entry for part in parts for entry in part]
    return {"work": sorted(entries, key=lambda entry: order[str(entry["uri"]), str(entry["identity"])])}


@dataclass(frozen=True)
class _Place:
    """The uri of a table or of one of its branches ("" for the main line); `is_looked_at`: a table there would be known."""

    uri: str
    branch: str
    is_looked_at: bool


def _table_of(uri: str) -> str:
    return uri.partition(_BRANCHES)[0].rstrip("/")


def _place(uri: str, bases: Iterable[str]) -> _Place:
    from lance_core.jobs.api import is_below

    branch = uri.partition(_BRANCHES)[2].strip("/")
    return _Place(uri, branch, any(base and is_below(uri, base) for base in bases))


async def _of_table(
    pages: Pages, place: _Place, mentions: list[_Mention], known: tuple[TableRef, Source] | None
) -> list[dict[str, object]]:
    """Entries of one table. What the XComs say stands where the table is none that the pages may open."""
    commits = {item.identity: item.task for item in mentions if item.publishes}
    gates = {item.identity: item.gates for item in mentions if item.gates is not None}
    wanted = list(dict.fromkeys(item.identity for item in mentions))
    recorded = list(dict.fromkeys(item.identity for item in mentions if not item.is_immediate))
    uri, is_gone = place.uri, known is None and place.is_looked_at
    found: dict[str, Json] = {}
    error: object = None
    if known is not None and place.is_looked_at:
        ref, source = known

        def load() -> tuple[bool, list[dict[str, object]]]:
            from lance_core.jobs.api import open_store
            from lance_core.maintenance.facts.work import is_there, work_page

            store = open_store(uri, source.options)
            return is_there(store), work_page(store, recorded)

        try:
            exists, entries = await pages.run(ref.conn_id, load)
            found, is_gone = {str(entry["identity"]): entry for entry in entries}, not exists
        except Exception as failed:
            error = page_error(failed).to_dict()
    told = {item.identity: item for item in reversed(mentions)}
    name = (
        {"table": None, "name": _table_of(uri).rpartition("/")[2]}
        if known is None
        else {"table": known[0].id, "name": known[0].name}
    )
    return [
        {
            **told[identity].told,
            **{
                key: value
                for key, value in found.get(identity, {}).items()
                if value is not None or key not in told[identity].told
            },
            **name,
            "uri": uri,
            "branch": place.branch or None,
            "gone": is_gone,
            "error": error,
            "commit": commits.get(identity),
            "gates": gates.get(identity),
            "writer": _writer(found.get(identity), told[identity]),
            "run": {**told[identity].task, "task_id": None, "map_index": -1},
        }
        for identity in wanted
    ]


def _writer(found: Json | None, mention: _Mention) -> object:
    writer = None if found is None else found["writer"]
    return (
        writer if isinstance(writer, Mapping) and writer.get("task_id") else {**mention.task, "identity": mention.identity}
    )


def _mentions(dag_id: str, run_id: str | None, task_id: str | None, map_index: int | None) -> list[_Mention]:
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    query = select(XComModel).where(XComModel.dag_id == dag_id, XComModel.key == "return_value")
    for column, value in ((XComModel.run_id, run_id), (XComModel.task_id, task_id), (XComModel.map_index, map_index)):
        if value is not None:
            query = query.where(column == value)
    with create_session() as session:
        found = list(session.scalars(query.order_by(XComModel.timestamp.desc()).limit(MAX_XCOMS)))
        return [mention for row in found for mention in _of_xcom(plain_value(row.value), _task_of(row))]


def plain_value(value: object) -> object:
    """What a row of XCom holds, as plain JSON: no object is made of it, whatever class it names.

    Airflow makes objects of such values, of classes that tasks name; the server that shows pages must not. A tuple is the
    one exception, and becomes a list.
    """
    if isinstance(value, (str, bytes)):  # Airflow's own encoder stored JSON as a text
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return _without_tuples(value, MAX_DEPTH)


def _without_tuples(value: object, depth: int) -> object:
    if depth == 0:
        return None
    if isinstance(value, Mapping):
        if value.get("__classname__") == "builtins.tuple":
            return _without_tuples(value.get("__data__"), depth - 1)
        return {str(name): _without_tuples(item, depth - 1) for name, item in value.items()}
    return [_without_tuples(item, depth - 1) for item in value] if isinstance(value, list) else value


def _task_of(row: object) -> Json:
    names = ("dag_id", "run_id", "task_id", "map_index")
    return {name: getattr(row, name) for name in names}


def _of_xcom(value: object, task: Json) -> Iterator[_Mention]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from _of_xcom(item, task)
    if not isinstance(value, Mapping) or not isinstance(value.get("uri"), str):
        return
    uri, identities = str(value["uri"]), value.get("identities")
    if isinstance(identities, Mapping):
        for identity, outcome in identities.items():
            state = "committed" if outcome in ("committed", "already_committed") else str(outcome)
            told = {**_BLANK, "identity": str(identity), "state": state, **_version(value)}
            yield _Mention(uri, str(identity), True, task, told, _gates(value) if outcome == "committed" else None)
    elif isinstance(value.get("identity"), str):
        names = ("read_version", "num_rows", "num_bytes")
        told = {name.removeprefix("num_"): value[name] for name in names if isinstance(value.get(name), int)}
        kind = value.get("operation")
        told |= {"identity": str(value["identity"]), "kind": kind if isinstance(kind, str) else None}
        yield _Mention(uri, str(value["identity"]), False, task, {**_BLANK, **told})
    elif isinstance(value.get("operation"), str):
        # It is in no record of the table; the task instance is its identity.
        identity = "/".join(str(task[name]) for name in ("dag_id", "run_id", "task_id", "map_index"))
        told = {
            "identity": identity,
            "state": "read" if value["operation"] in _READS else "done",
            "kind": str(value["operation"]),
            **_version(value),
        }
        yield _Mention(uri, identity, False, task, {**_BLANK, **told}, is_immediate=True)


_BLANK: Json = {
    "state": "unknown", "kind": None, "rows": None, "bytes": None, "fragments": None, "read_version": None,
    "started": None, "version": None, "committed_at": None, "attempts": [],
}  # fmt: skip


def _gates(value: Mapping[str, object]) -> tuple[Json, ...] | None:
    """The gates that the rows passed; one that they did not pass has published nothing and left no XCom."""
    names = value.get("gates")
    if not isinstance(names, list | tuple):
        return None
    return tuple({"name": str(name), "passed": True, "message": None} for name in names)


def _version(value: Mapping[str, object]) -> Json:
    version = value.get("version")
    return {"version": version} if isinstance(version, int) else {}
