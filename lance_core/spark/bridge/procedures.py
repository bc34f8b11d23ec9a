"""CALL of Spark's SQL (from 4.0): jobs on one table, carried out on the driver and committed.

::

    CALL lake.system.compact(table => 'sales.orders', target_rows_per_fragment => 1000000)

    call("compact", uri, storage, {"table": "sales.orders", ...})  ->  [["version", "8"], ["fragments_removed", "40"], ...]

An argument has the name of the job's field; one that is left out has the job's default.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lance_core.errors import InputError
from lance_core.format.schema import PRIMARY_KEY
from lance_core.jobs.kinds import KINDS, carry_out, spec_from_plain
from lance_core.jobs.publish.commit import publish as commit
from lance_core.jobs.runtime.local_runner import LocalRunner
from lance_core.jobs.specs.identity import random_identity
from lance_core.jobs.specs.spec import CommitSpec

if TYPE_CHECKING:
    from lance_core.dataset import LanceDataset

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
    "cleanup": ("cleanup", {
        "older_than_seconds": _DOUBLE, "retain_versions": _LONG, "explain": _FLAG, "before_version": _LONG,
        "delete_unverified": _FLAG, "error_if_tagged_old_versions": _FLAG,
    }),
    "tag": ("tag", {
        "name": _TEXT, "action": _TEXT, "version": _LONG, "tag": _TEXT, "from_branch": _TEXT, "if_absent": _FLAG,
    }),
    "branch": ("branch", {
        "name": _TEXT, "action": _TEXT, "version": _LONG, "tag": _TEXT, "from_branch": _TEXT, "if_absent": _FLAG,
        "if_exists": _FLAG,
    }),
    "publish_branch": ("publish_branch", {"branch": _TEXT, "version": _LONG, "if_moved": _TEXT}),
    "set_primary_key": ("", {"columns": _TEXTS}),
    "restore": ("restore", {"version": _LONG, "tag": _TEXT, "if_moved": _TEXT}),
}  # fmt: skip
"""Name -> (kind of job, its arguments beside `table` with their Spark types). `parameters` of an index are JSON.

What no job does is done before (see `_BEFORE`)."""


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
    before = _BEFORE.get(name)
    if before is not None:
        done = before(uri, storage, given)
        if done is not None:
            return done
    identity = random_identity()
    spec = spec_from_plain({"kind": kind, "uri": uri, "storage_options": dict(storage), "identity": identity, **given})
    runner = LocalRunner(lambda _: dict(storage))
    result: Any = carry_out(spec, runner)
    if KINDS[kind].is_staged:
        result = commit(CommitSpec(uri=uri, storage_options=spec.storage_options, identities=(identity,)), runner)
    return [[fact, value if isinstance(value, str) else json.dumps(value)] for fact, value in result.to_dict().items()]


def _before_cleanup(uri: str, storage: Mapping[str, str], given: dict[str, Any]) -> list[list[str]] | None:
    """`before_version`: versions below it go, whatever their age."""
    if "before_version" in given:
        newest = _opened(uri, storage).latest_version
        given["retain_versions"] = max(1, newest - int(given.pop("before_version")) + 1)
        given.setdefault("older_than_seconds", 0.0)
    return None


def _before_tag(uri: str, storage: Mapping[str, str], given: dict[str, Any]) -> list[list[str]] | None:
    """A tag of another tag's version, or of a branch's."""
    table, if_absent = _opened(uri, storage), given.pop("if_absent", False)
    if if_absent and given["name"] in table.tags.list():
        return [["name", given["name"]]]
    if "tag" not in given and "from_branch" not in given:
        return None
    if "tag" in given and ("from_branch" in given or "version" in given):
        raise InputError("tag cannot be combined with version or from_branch")
    if given.get("action") == "delete":
        raise InputError("a version, tag or branch cannot be combined with action => 'delete'")
    reference: Any = given["tag"] if "tag" in given else (given["from_branch"], given.get("version"))
    is_new = given.get("action") == "create" or given["name"] not in table.tags.list()
    (table.tags.create if is_new else table.tags.update)(given["name"], reference)
    return [["name", given["name"]]]


def _before_branch(uri: str, storage: Mapping[str, str], given: dict[str, Any]) -> list[list[str]] | None:
    """One that is there already, or is not, may be no error."""
    if_absent, if_exists = given.pop("if_absent", False), given.pop("if_exists", False)
    is_there = (if_absent or if_exists) and given["name"] in _opened(uri, storage).branches.list()
    return [["name", given["name"]]] if (if_absent and is_there) or (if_exists and not is_there) else None


def _set_primary_key(uri: str, storage: Mapping[str, str], given: dict[str, Any]) -> list[list[str]]:
    """Which nothing enforces: what a merge without key columns goes by."""
    columns = [str(name) for name in given.get("columns", ())]
    if not columns or len(set(columns)) < len(columns):
        raise InputError(f"set_primary_key: columns: expected names of columns, each once, got {columns}")
    marks = {
        name: {PRIMARY_KEY: "true", f"{PRIMARY_KEY}:position": str(place)} for place, name in enumerate(columns, start=1)
    }
    table = _opened(uri, storage)
    table.update_field_metadata(marks)
    return [["version", str(table.version)], ["columns", json.dumps(columns)]]


def _opened(uri: str, storage: Mapping[str, str]) -> LanceDataset:
    from lance_core.dataset import dataset

    return dataset(uri, storage_options=dict(storage))


_BEFORE: Mapping[str, Callable[[str, Mapping[str, str], dict[str, Any]], list[list[str]] | None]] = {
    "cleanup": _before_cleanup,
    "tag": _before_tag,
    "branch": _before_branch,
    "set_primary_key": _set_primary_key,
}
"""What a procedure takes that its job does not: turned into what the job takes, or done."""


def _parsed(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise InputError(f"parameters: expected JSON, got {text!r}: {error}") from None
    if not isinstance(found, dict):
        raise InputError(f"parameters: expected a JSON object, got {text!r}")
    return found
