"""Every verb on a sound table under a limit of address space, one verb a process; what it ended with, in one line.

::

    python memory_verbs.py make TABLE ROWS            a table with keys, texts that compress well, texts that do not, vectors
    python memory_verbs.py under TABLE MEGABYTES      some verbs in one warm process that may have so much more than it has
    python memory_verbs.py run TABLE VERB MEGABYTES   {"ended": "ok" | "MemoryShortageError: ...", "typed": true}

The limit is that of `ulimit -v`, set before anything heavy is imported. Verbs that change tables
change this one: hand over a copy.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

REPEATED = 4000
RANDOM = 500
DIMENSION = 32


def make(uri: str, rows: int) -> None:
    """A table of `rows` rows in two fragments, indexed by key; each row has about 4.6 KB once it is read."""
    import numpy as np
    import pyarrow as pa

    import lance_core

    made = np.random.default_rng(1)

    def batches(start: int, stop: int) -> Any:
        for first in range(start, stop, 2000):
            count = min(2000, stop - first)
            letters = made.integers(32, 127, (count, RANDOM), dtype=np.uint8)
            values = made.random((count, DIMENSION), dtype=np.float32)
            yield pa.record_batch({
                "id": pa.array(range(first, first + count), pa.int64()),
                "same": pa.array([f"word{first % 7} " * (REPEATED // 6)] * count),
                "text": pa.array([bytes(row).decode() for row in letters]),
                "vector": pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), DIMENSION),
                "group": pa.array([row % 10 for row in range(first, first + count)], pa.int32()),
            })  # fmt: skip

    schema = next(iter(batches(0, 1))).schema
    for start, mode in ((0, "create"), (rows // 2, "append")):
        reader = pa.RecordBatchReader.from_batches(schema, batches(start, start + rows // 2))
        lance_core.write_dataset(reader, uri, mode=mode)
    lance_core.dataset(uri).create_scalar_index("id", "BTREE")


def _write(uri: str, mode: str) -> None:
    import pyarrow as pa

    import lance_core

    held = lance_core.dataset(uri)
    reader = pa.RecordBatchReader.from_batches(held.schema, held.to_batches())
    lance_core.write_dataset(reader, uri, mode=mode)


def _merge_insert(held: Any) -> None:
    source = held.to_table(columns=["id", "same", "text", "vector", "group"])
    held.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(source)


def _search(held: Any) -> None:
    held.to_table(nearest={"column": "vector", "q": [0.5] * DIMENSION, "k": 10})


def _validate(uri: str) -> None:
    from lance_core.jobs.run import run_job
    from lance_core.jobs.specs.maintenance import ValidateSpec

    run_job(ValidateSpec(uri=uri, deep=True))


def _cleanup(held: Any) -> None:
    from datetime import timedelta

    held.delete("id < 10")
    held.cleanup_old_versions(older_than=timedelta(0))


def _verbs() -> dict[str, Callable[[str], object]]:
    import lance_core

    opened = lance_core.dataset
    return {
        "open": opened,
        "count": lambda uri: opened(uri).count_rows(),
        "filtered count": lambda uri: opened(uri).count_rows("text > 'm' AND same LIKE '%1 word1%'"),
        "to_table": lambda uri: opened(uri).to_table(),
        "to_batches": lambda uri: sum(batch.num_rows for batch in opened(uri).to_batches()),
        "filtered scan": lambda uri: opened(uri).to_table(filter="id % 2 = 0 AND same LIKE '%word%'"),
        "order by": lambda uri: opened(uri).scanner(order_by=["text"]).to_table(),
        "take": lambda uri: opened(uri).take(range(0, opened(uri).count_rows(), 2)),
        "append": lambda uri: _write(uri, "append"),
        "overwrite": lambda uri: _write(uri, "overwrite"),
        "delete": lambda uri: opened(uri).delete("same LIKE '%word1%'"),
        "update": lambda uri: opened(uri).update({"text": "concat(same, text)"}),
        "merge_insert": lambda uri: _merge_insert(opened(uri)),
        "add_columns": lambda uri: opened(uri).add_columns({"twice": "concat(same, same)"}),
        "compact": lambda uri: opened(uri).optimize.compact_files(),
        **{
            f"index {kind}": lambda uri, kind=kind: opened(uri).create_scalar_index(  # type: ignore[misc]
                "group" if kind == "BITMAP" else "text", kind, name="made"
            )
            for kind in ("BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER", "NGRAM", "INVERTED")
        },
        "index IVF_PQ": lambda uri: opened(uri).create_index("vector", "IVF_PQ", num_partitions=4, num_sub_vectors=4),
        "index IVF_HNSW_SQ": lambda uri: opened(uri).create_index("vector", "IVF_HNSW_SQ", num_partitions=4),
        "search": lambda uri: _search(opened(uri)),
        "look-up": lambda uri: opened(uri).to_table(filter="id IN (3, 99)"),
        "validate": _validate,
        "cleanup": lambda uri: _cleanup(opened(uri)),
    }


def run(uri: str, verb: str, megabytes: int) -> dict[str, object]:
    """What a verb ended with under a limit of address space."""
    if megabytes:
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        from lance_core.errors import LanceError
    except MemoryError:
        return {"ended": "no memory to import", "typed": True}
    try:
        _verbs()[verb](uri)
    except LanceError as error:
        return {"ended": f"{type(error).__name__}: {error}", "typed": True}
    except BaseException as error:
        import traceback

        return {"ended": f"{type(error).__name__}: {error}", "typed": False, "trace": traceback.format_exc()[-3000:]}
    return {"ended": "ok", "typed": True}


def under(uri: str, megabytes: int) -> dict[str, str]:
    """What some verbs ended with in a process that is warm and may then have so much more address space."""
    import shutil

    import lance_core
    from lance_core.errors import LanceError

    verbs = {name: _verbs()[name] for name in ("to_table", "filtered scan", "delete", "take")}
    small, work = f"{uri}-warm", f"{uri}-work"
    make(small, 400)
    ended = {}
    for name, verb in verbs.items():
        for table in (small, uri):
            shutil.copytree(table, work)
            if table == uri:
                held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
                resource.setrlimit(resource.RLIMIT_AS, (held + (megabytes << 20), resource.RLIM_INFINITY))
            try:
                verb(work)
                ended[name] = "ok"
            except LanceError as error:
                ended[name] = f"{type(error).__name__}: {error}"
            except BaseException as error:
                ended[name] = f"untyped {type(error).__name__}: {error}"
            finally:
                resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            if name != "cleanup":
                lance_core.dataset(work, version=3).validate()
            shutil.rmtree(work)
    return ended


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[1] == "under":
        print(json.dumps(under(sys.argv[2], int(sys.argv[3]))))
    elif sys.argv[1] == "verbs":
        print(json.dumps([*_verbs()]))
    else:
        print(json.dumps(run(sys.argv[2], sys.argv[3], int(sys.argv[4]))), flush=True)
