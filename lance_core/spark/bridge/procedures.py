"""CALL of Spark's SQL (from 4.0): jobs on one table, carried out on the driver and committed.

::

    CALL lake.system.compact(table => 'sales.orders', target_rows_per_fragment => 1000000)

    call("compact", uri, storage, {"table": "sales.orders", ...})  ->  [["version", "8"], ["fragments_removed", "40"], ...]

An argument has the name of the job's field; one that is left out has the job's default.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lance_core.errors import InputError
from lance_core.jobs.kinds import KINDS, carry_out, spec_from_plain
from lance_core.jobs.publish.commit import publish as commit
from lance_core.jobs.runtime.local_runner import LocalRunner
from lance_core.jobs.specs.identity import random_identity
from lance_core.jobs.specs.spec import CommitSpec

_LONG, _TEXT, _FLAG, _DOUBLE, _TEXTS = "bigint", "string", "boolean", "double", "array<string>"

PROCEDURES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "compact": ("compact", {
        "target_rows_per_fragment": _LONG, "max_bytes_per_file": _LONG, "materialize_deletions_threshold": _DOUBLE,
        "strategy": _TEXT, "max_source_fragments": _LONG,
    }),
    "optimize_indices": ("optimize_indices", {"index_names": _TEXTS, "num_indices_to_merge": _LONG, "retrain": _FLAG}),
    "build_index": ("build_index", {
        "column": _TEXT, "index_type": _TEXT, "name": _TEXT, "replace": _FLAG, "parameters": _TEXT,
    }),
    "drop_index": ("drop_index", {"name": _TEXT}),
    "cleanup": ("cleanup", {"older_than_seconds": _DOUBLE, "retain_versions": _LONG, "explain": _FLAG}),
    "tag": ("tag", {"name": _TEXT, "action": _TEXT, "version": _LONG}),
    "branch": ("branch", {"name": _TEXT, "action": _TEXT, "version": _LONG, "tag": _TEXT, "from_branch": _TEXT}),
    "publish_branch": ("publish_branch", {"branch": _TEXT, "version": _LONG, "if_moved": _TEXT}),
    "restore": ("restore", {"version": _LONG, "tag": _TEXT, "if_moved": _TEXT}),
}  # fmt: skip
"""Name -> (kind of job, its arguments beside `table` with their Spark types). `parameters` of an index are JSON."""


def described() -> list[dict[str, Any]]:
    """For the JVM: each with its arguments."""
    return [
        {"name": name, "arguments": [{"name": field, "type": kind} for field, kind in fields.items()]}
        for name, (_, fields) in PROCEDURES.items()
    ]


def call(name: str, uri: str, storage: Mapping[str, str], arguments: Mapping[str, Any]) -> list[list[str]]:
    """Carry it out; what the job reports, as names and values. InputError for an argument that the job refuses."""
    kind, fields = PROCEDURES[name]
    given = {field: arguments[field] for field in fields if arguments.get(field) is not None}
    if "parameters" in given:
        given["parameters"] = _parsed(str(given["parameters"]))
    identity = random_identity()
    spec = spec_from_plain({"kind": kind, "uri": uri, "storage_options": dict(storage), "identity": identity, **given})
    runner = LocalRunner(lambda _: dict(storage))
    result: Any = carry_out(spec, runner)
    if KINDS[kind].is_staged:
        result = commit(CommitSpec(uri=uri, storage_options=spec.storage_options, identities=(identity,)), runner)
    return [[fact, value if isinstance(value, str) else json.dumps(value)] for fact, value in result.to_dict().items()]


def _parsed(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise InputError(f"parameters: expected JSON, got {text!r}: {error}") from None
    if not isinstance(found, dict):
        raise InputError(f"parameters: expected a JSON object, got {text!r}")
    return found
