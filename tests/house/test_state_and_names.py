"""Rules for names and state: each class has a name of its own, modules hold no state, nothing is found by attribute name."""

from __future__ import annotations

import ast
import functools
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

SHARED_NAMES = {
    # The array encodings of file version 2.0 and the encodings of 2.1 are two protobuf packages; each class is its message.
    "Constant": {"lance_core/format/encoding.py", "lance_core/format/encoding20.py"},
    "Dictionary": {"lance_core/format/encoding.py", "lance_core/format/encoding20.py"},
    "FixedSizeList": {"lance_core/format/encoding.py", "lance_core/format/encoding20.py"},
    "Flat": {"lance_core/format/encoding.py", "lance_core/format/encoding20.py"},
    "Fsst": {"lance_core/format/encoding.py", "lance_core/format/encoding20.py"},
    "PackedStruct": {"lance_core/format/encoding.py", "lance_core/format/encoding20.py"},
    # What the official library's users write: keyword arguments with its defaults, over the frozen one.
    "Transaction": {"lance_core/table/transaction.py", "lance_core/dataset/handle/operation_aliases.py"},
}

STATE = {
    # Threads, connections and memory that are shared by a process on purpose: made on first use, made anew after a fork.
    ("lance_core/io/pool.py", "_IO"): "the threads that wait for storage",
    ("lance_core/io/pool.py", "_WORK"): "the threads that decode",
    ("lance_core/io/waiting.py", "_IDLE"): "the threads that wait for the main thread, so that signals are seen",
    ("lance_core/io/cache.py", "_SHARED"): "the cache of all tables of a process, with one bound",
    ("lance_core/io/objects/connect.py", "_POOL"): "connections to object stores",
    ("lance_core/io/remote/probes.py", "_PROBES"): "what was found out about buckets, which costs requests",
    ("lance_core/io/memory.py", "_ROOTS"): "memory:// is one store for a process",
    ("lance_core/io/scattered_reads.py", "_LOCAL"): "a thread's buffer for its next read",
    ("lance_core/codecs/general.py", "_LOCAL"): "a thread's decompressor",
    ("lance_core/kernels/jit.py", "_LOCK"): "compiling is not safe in two threads",
    ("lance_core/kernels/jit.py", "_REGISTRY"): "every kernel there is, filled while modules are imported",
    ("lance_core/wire/fragments.py", "_EMPTY"): "one empty mapping for all files without metadata; nobody changes it",
    ("lance_core/computed/models.py", "KEPT"): "the model of a Spark worker, which outlives its tasks as modules do",
    ("lance_core/dataset/versions/cleanup.py", "_SILENT"): "a constant",
}

FOREIGN = {
    # Objects of other libraries, of other releases of them, and of the platform.
    "lance_core/catalog/errors.py", "lance_core/catalog/locate.py",
    "lance_core/cli/catalog.py", "lance_core/computed/endpoints.py", "lance_core/computed/functions.py",
    "lance_core/computed/models.py", "lance_core/computed/policies.py",
    "lance_core/cli/table.py", "lance_core/dataset/columns/evolve.py", "lance_core/dataset/maintain/table_facts.py",
    "lance_core/dataset/query/sql.py", "lance_core/dataset/scan/order_by.py", "lance_core/dataset/scan/sinks.py",
    "lance_core/dataset/write/sources.py", "lance_core/forks.py", "lance_core/expr/dialect.py", "lance_core/expr/parse.py",
    "lance_core/expr/casts.py", "lance_core/expr/lists.py",
    "lance_core/index/over_json.py", "lance_core/index/text/params.py", "lance_core/index/vector/files.py",
    "lance_core/index/text/tokenize.py", "lance_core/index/vector/searcher.py",
    "lance_core/dataset/indexing/vector_build.py", "lance_core/dataset/edit/commit_operation.py",
    "lance_core/dataset/write/base_paths.py", "lance_core/io/cache.py", "lance_core/io/local/store.py",
    "lance_core/io/objects/connect.py", "lance_core/io/pool.py", "lance_core/io/remote/errors.py",
    "lance_core/jobs/sources/duckdb_sql.py", "lance_core/jobs/sources/open_source.py",
    "lance_core/jobs/plans/column_parts.py", "lance_core/kernels/cache.py", "lance_core/kernels/jit.py",
    "lance_core/maintenance/policy_file.py", "lance_core/spark/direct_parquet.py", "lance_core/spark/sources.py",
    "lance_core/spark/places.py", "lance_core/spark/bridge/__init__.py", "lance_core/spark/bridge/worker.py",
    "lance_core/spark/names.py", "lance_core/spark/source.py", "lance_core/spark/submit.py",
    "lance_core/spark/streaming.py", "lance_core/spark/types.py", "lance_core/util.py", "lance_core/wire/index.py",
    # A thread's own attributes, which are not there before it has set them.
    "lance_core/codecs/general.py", "lance_core/io/scattered_reads.py",
}  # fmt: skip
"""Files of `lance_core` that look for attributes by name; `airflow_lance` does so with what Airflow's releases have."""


@functools.cache
def _trees() -> dict[str, ast.Module]:
    paths = [path for package in ("lance_core", "airflow_lance") for path in sorted((ROOT / package).rglob("*.py"))]
    return {
        path.relative_to(ROOT).as_posix(): ast.parse(path.read_text())
        for path in paths
        if "/pb/" not in path.as_posix() and "node_modules" not in path.as_posix()
    }


def _classes() -> Iterator[tuple[str, ast.ClassDef]]:
    for path, tree in _trees().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                yield path, node


def test_each_class_has_a_name_of_its_own() -> None:
    """Two public classes of one name are told apart by the file only, in a traceback not at all."""
    found: dict[str, set[str]] = defaultdict(set)
    for path, node in _classes():
        if not node.name.startswith("_"):
            found[node.name].add(path)
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == SHARED_NAMES


def _is_immutable(node: ast.ClassDef) -> bool:
    bases = {ast.unparse(base).split("[")[0].rpartition(".")[2] for base in node.bases}
    if bases & {"Enum", "IntEnum", "NamedTuple", "Exception"}:
        return True
    marks = [ast.unparse(mark) for mark in node.decorator_list]
    return any(mark.startswith("dataclass") and "frozen=True" in mark for mark in marks)


def _is_state(value: ast.expr, mutable: set[str]) -> bool:
    if isinstance(value, (ast.List, ast.Dict, ast.Set)):
        return not (value.keys if isinstance(value, ast.Dict) else value.elts)
    if not isinstance(value, ast.Call):
        return False
    name = ast.unparse(value.func).rpartition(".")[2].split("[")[0]
    return name in {"list", "dict", "set", "deque", "defaultdict", "OrderedDict", "Lock", "RLock", "local"} | mutable


def test_modules_hold_no_state() -> None:
    """But for the few things of a process that are named here: tables, jobs and tests must not meet through a module."""
    # A slot or a handle that only says what to do is a constant.
    constants = {"CacheSlot", "LazyModule", "Codecs", "IndexKind", "NotImplementedHere"}
    mutable = {node.name for _, node in _classes() if not _is_immutable(node)} - constants
    found = set()
    for path, tree in _trees().items():
        for node in tree.body:
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None and _is_state(node.value, mutable):
                found.add((path, ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)))
    assert found == set(STATE)


def test_only_the_compiler_lock_is_assigned_from_a_function() -> None:
    found = {
        (path, name)
        for path, tree in _trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Global)
        for name in node.names
    }
    assert found == {("lance_core/kernels/jit.py", "_LOCK")}


def _looks_for_attributes(tree: ast.Module) -> bool:
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and (node.func.id == "hasattr" or (node.func.id == "getattr" and isinstance(node.args[1], ast.Constant)))
        for node in ast.walk(tree)
    )


def test_our_own_classes_are_asked_by_type() -> None:
    """What one of our classes can do is said by a protocol or a base class; attribute names are for foreign objects."""
    found = {path for path, tree in _trees().items() if path.startswith("lance_core/") and _looks_for_attributes(tree)}
    assert found == FOREIGN
