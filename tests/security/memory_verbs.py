"""Every verb on a sound table under a limit of address space, one verb a process; what it ended with, in one line.

::

    python memory_verbs.py make TABLE ROWS            a table with keys, texts that compress well, texts that do not, vectors
    python memory_verbs.py under TABLE MEGABYTES      some verbs in one warm process that may have so much more than it has
    python memory_verbs.py run TABLE VERB MEGABYTES   {"ended": "ok" | "MemoryShortageError: ...", "typed": true}
    python memory_verbs.py sweep PLACE ROWS 1000,2000,4000      every verb under every limit; goes on where it was

The limit is that of `ulimit -v`, set before anything heavy is imported. Verbs that change tables
change this one: hand over a copy.
"""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

REPEATED = 4000
RANDOM = 500
DIMENSION = 32


def make(uri: str, rows: int, *, is_searched: bool = False) -> None:
    """A table of `rows` rows in two fragments, indexed by key; each row has about 4.6 KB once it is read.

    `is_searched` adds indices of the texts that repeat and of the vectors, and rows behind both.
    """
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
    if is_searched:
        lance_core.dataset(uri).create_scalar_index("text", "INVERTED", name="words", with_position=True)
        lance_core.dataset(uri).create_index("vector", "IVF_HNSW_SQ", num_partitions=4, name="graph")
        reader = pa.RecordBatchReader.from_batches(schema, batches(rows, rows + rows // 20))
        lance_core.write_dataset(reader, uri, mode="append")


def _write(uri: str, mode: str) -> None:
    import pyarrow as pa

    import lance_core

    held = lance_core.dataset(uri)
    reader = pa.RecordBatchReader.from_batches(held.schema, held.to_batches())
    lance_core.write_dataset(reader, uri, mode=mode)


def _merge_insert(held: Any) -> None:
    source = held.to_table(columns=["id", "same", "text", "vector", "group"])
    held.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(source)


def _search(held: Any, **options: object) -> None:
    held.to_table(nearest={"column": "vector", "q": [0.5] * DIMENSION, "k": 10, **options})


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
        "search": lambda uri: _search(opened(uri), use_index=False),
        "search HNSW": lambda uri: _search(opened(uri), nprobes=4, ef=50),
        "search INVERTED": lambda uri: opened(uri).to_table(full_text_query="a e i o u", columns=["id", "same"], limit=5000),
        "optimize": lambda uri: opened(uri).optimize.optimize_indices(),
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


def sweep(place: Path, rows: int, limits: list[int], verbs: list[str] | None = None) -> list[dict[str, Any]]:
    """What each verb ended with under each limit, and what was wrong with it: also in `ended.jsonl` of the place.

    Wrong is an end that has no type, damage that is told of a sound table, rows that are lost, and files that stay behind
    a collection and a cleanup. A process that a native library ended has a cause, and is not wrong by that alone.
    """
    sound, work, told = place / "sound", place / "work", place / "ended.jsonl"
    if not sound.exists():
        make(str(place / "making"), rows, is_searched=True)
        (place / "making").rename(sound)
    found = [json.loads(line) for line in told.read_text().splitlines()] if told.exists() else []
    known = {(item["verb"], item["megabytes"]) for item in found}
    for megabytes in limits:
        for verb in verbs or _verbs():
            if (verb, megabytes) not in known:
                found.append(_tried(sound, work, verb, megabytes))
                with told.open("a") as file:
                    file.write(json.dumps(found[-1]) + "\n")
    return found


def _tried(sound: Path, work: Path, verb: str, megabytes: int) -> dict[str, Any]:
    """One verb in a process of its own on a copy of the table."""
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(sound, work)
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", __file__, "run", str(work), verb, str(megabytes)],
        capture_output=True, text=True, timeout=1200, check=False,
    )  # fmt: skip
    if done.returncode == 0:
        ended = json.loads(done.stdout.splitlines()[-1])
        wrong = [] if ended["typed"] and "Corrupt" not in ended["ended"] else [ended["ended"]]
    else:
        ended = {"ended": f"status {done.returncode}: {done.stderr.strip()[:700]}"}
        wrong = [] if done.returncode < 0 else ["ended without a word"]
    wrong += _harm(sound, work, is_done=ended["ended"] == "ok")
    return {"verb": verb, "megabytes": megabytes, "ended": ended["ended"][:700], "wrong": wrong}


def _harm(sound: Path, work: Path, *, is_done: bool) -> list[str]:
    """What a verb did to the table that it should not have done."""
    from datetime import timedelta

    import lance_core
    from lance_core.io.resolve import resolve_store
    from lance_core.publish.collect import collect_garbage

    was, now = lance_core.dataset(str(sound)), lance_core.dataset(str(work))
    if is_done:
        return []
    if now.count_rows() != was.count_rows():
        return [f"version {now.version} of {now.count_rows()} rows, was {was.version} of {was.count_rows()}"]
    if now.version != was.version:  # of a compaction, which reserves the numbers of its fragments: the same rows
        now.validate()
        return []
    collect_garbage(resolve_store(str(work)), now=4e9)
    now.cleanup_old_versions(older_than=timedelta(days=1), delete_unverified=True)
    files = {str(path.relative_to(work)) for path in work.rglob("*") if path.is_file()}
    left = files - {str(path.relative_to(sound)) for path in sound.rglob("*") if path.is_file()}
    return [f"left: {name}" for name in sorted(left) if not name.startswith(("_lance_core/", "_versions/latest"))]


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[1] == "under":
        print(json.dumps(under(sys.argv[2], int(sys.argv[3]))))
    elif sys.argv[1] == "sweep":
        items = sweep(Path(sys.argv[2]), int(sys.argv[3]), [int(number) for number in sys.argv[4].split(",")], sys.argv[5:])
        print(json.dumps([item for item in items if item["wrong"]], indent=1))
    else:
        print(json.dumps(run(sys.argv[2], sys.argv[3], int(sys.argv[4]))), flush=True)
