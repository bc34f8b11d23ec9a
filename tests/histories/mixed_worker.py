"""One process among many: mixed operations on one table, each on rows and names of its own, so that the end is known."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pyarrow as pa

import lance_core
from lance_core.errors import RetryableConflictError

KINDS = ("append",) * 4 + ("delete",) * 2 + ("update",) * 2 + ("compact", "config", "tag")


@dataclass
class Landed:
    """What a process did: rows that must be there (id -> x), config, tags (name -> version), and how often it lost."""

    rows: dict[int, int] = field(default_factory=dict)
    config: dict[str, str] = field(default_factory=dict)
    tags: dict[str, int] = field(default_factory=dict)
    given_up: int = 0


def work(arguments: tuple[str, int, int], storage_options: dict[str, str] | None = None) -> Landed:
    """`count` operations of process (or thread) `number` on the table at `uri`."""
    uri, number, count = arguments
    rng, landed = random.Random(number), Landed()
    for turn in range(count):
        kind = rng.choice(KINDS)
        for _ in range(60):
            try:
                _do(uri, storage_options, kind, number * 100_000 + turn * 10, rng, landed)
                break
            except RetryableConflictError:
                continue
        else:
            landed.given_up += 1
    return landed


def _do(uri: str, options: dict[str, str] | None, kind: str, key: int, rng: random.Random, landed: Landed) -> None:
    ds = lance_core.dataset(uri, storage_options=options)
    if kind == "append" or (kind in ("delete", "update") and not landed.rows):
        rows = {key + offset: rng.randrange(100) for offset in range(rng.choice((1, 3)))}
        table = pa.table({"id": [*rows], "x": [*rows.values()]})
        lance_core.write_dataset(table, uri, mode="append", storage_options=options)
        landed.rows.update(rows)
    elif kind == "delete":
        gone = rng.choice([*landed.rows])
        ds.delete(f"id = {gone}")
        del landed.rows[gone]
    elif kind == "update":
        changed = rng.choice([*landed.rows])
        ds.update({"x": "x + 1000"}, where=f"id = {changed}")
        landed.rows[changed] += 1000
    elif kind == "compact":
        ds.optimize.compact_files(target_rows_per_fragment=200)
    elif kind == "config":
        ds.update_config({f"k{key}": str(key)})
        landed.config[f"k{key}"] = str(key)
    else:
        ds.tags.create(f"t{key}", ds.version)
        landed.tags[f"t{key}"] = ds.version
