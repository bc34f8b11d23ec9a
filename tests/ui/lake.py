"""Tables for the tests of the pages: healthy, sick, searchable, hostile by name, huge by fragments."""

from __future__ import annotations

import datetime as dt
import random
import shutil
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

import lance_core
from lance_core.commit.manifests import load_manifest
from lance_core.commit.naming import new_attempt
from lance_core.io.resolve import resolve_store
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.columns import RefreshColumnsSpec
from lance_core.maintenance.presence import MAX_REQUESTS, OBJECTS_PER_REQUEST
from lance_core.publish.intent import Intent, put_intent
from lance_core.publish.stage import begin_attempt
from tests.protocol.protocol_support import append, rows_at

HOSTILE = "<img src=x onerror=alert(document.domain)>.lance"
SECRET = "pl4nted-s3cret/with+letters"
MANY_FRAGMENTS = 10_000


def rows(start: int, stop: int) -> pa.Table:
    ids = range(start, stop)
    return pa.table({"id": pa.array(ids, pa.int64()), "price": [float(i % 50) for i in ids], "day": [i % 7 for i in ids]})


def products(start: int, stop: int) -> pa.Table:
    random.seed(start)
    words = ("red", "blue", "running", "shoes", "jacket", "light", "warm")
    ids = range(start, stop)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "review": [" ".join(random.choices(words, k=5)) for _ in ids],
            "embedding": pa.array([[float(i % 8), float(i % 3), 1.0, 0.5] for i in ids], pa.list_(pa.float32(), 4)),
            "note": [{"seen": i, "tags": ["a", "b"]} for i in ids],
        }
    )


def make_lake(base: Path) -> None:
    """Write the tables below `base`."""
    healthy = lance_core.write_dataset(rows(0, 1000), str(base / "shop" / "orders.lance"))
    healthy.create_scalar_index("id", "BTREE")
    healthy.tags.create("prod", 1)
    make_sick(base / "shop" / "clicks.lance")
    make_doubtful(base / "shop" / "doubtful.lance")
    make_wide(base / "shop" / "features.lance")
    make_declared(base / "shop" / "reviews.lance")
    make_broken(base / "shop" / "broken.lance")
    make_crowded(base / "shop" / "crowded.lance")
    make_torn(base / "shop" / "torn.lance")
    searchable = lance_core.write_dataset(products(0, 300), str(base / "shop" / "products.lance"))
    searchable.create_scalar_index("review", "INVERTED")
    searchable.add_columns({"cheap": "id < 10"})
    searchable.create_branch("feat/prices")
    hostile = {"<script>alert(1)</script>": ["<img src=x onerror=alert(2)>"] * 3, "id": [1, 2, 3]}
    lance_core.write_dataset(pa.table(hostile), str(base / HOSTILE))
    make_many_fragments(base / "big.lance", MANY_FRAGMENTS)


def make_small_lake(base: Path) -> None:
    """Write the few tables that show that the pages work at all."""
    lance_core.write_dataset(rows(0, 1000), str(base / "shop" / "orders.lance"))
    lance_core.write_dataset(products(0, 30), str(base / "shop" / "products.lance"))


def make_sick(uri: Path) -> None:
    """Small fragments, deleted rows, an index that lags behind, work that waits, work that died."""
    for number in range(50):
        lance_core.write_dataset(rows(number * 20, number * 20 + 20), str(uri), mode="append" if number else "create")
        if number == 5:
            lance_core.dataset(str(uri)).create_scalar_index("day", "BTREE")
    lance_core.dataset(str(uri)).delete("day < 3")
    store = resolve_store(str(uri))
    asked = {"dag_id": "shop", "run_id": "manual__1", "task_id": "load", "map_index": 3, "try_number": 1, "host": "worker-1"}
    begin(store, "waiting", asked, lease_seconds=3600.0)
    begin(store, "died", {**asked, "map_index": 4}, lease_seconds=0.0)


def make_broken(uri: Path) -> None:
    """One of its data files is gone."""
    lance_core.write_dataset(rows(0, 500), str(uri), max_rows_per_file=100)
    next((uri / "data").glob("*.lance")).unlink()


def make_torn(uri: Path) -> None:
    """Its only manifest is damaged."""
    lance_core.write_dataset(rows(0, 10), str(uri))
    (manifest,) = (uri / "_versions").glob("*.manifest")
    manifest.write_bytes(manifest.read_bytes()[:-40] + b"x" * 40)


def make_crowded(uri: Path) -> None:
    """Beside its files are so many others that a page does not list all of them."""
    lance_core.write_dataset(rows(0, 50), str(uri), max_rows_per_file=10)
    for number in range(MAX_REQUESTS * OBJECTS_PER_REQUEST):
        (uri / "data" / f"left-{number:06}.lance").touch()


REFUSED = 3
"""Rows for which the function of a declared column fails, in their fragment."""
PRIVATE = "pr1vate-words"


def make_declared(uri: Path) -> None:
    """Three declared columns: one is fresh, one nobody has refreshed yet, of one a task's function failed for some rows."""
    lance_core.write_dataset(products(0, 60), str(uri))
    for name, sql in (("loud", "upper(review)"), ("shelf", "id % 9")):
        lance_core.declare_column(str(uri), name, sql=sql)
    lance_core.refresh_columns(str(uri), ["loud"])
    function = "tests.ui.lake:refuse_some"
    lance_core.declare_column(
        str(uri), "mood", function=function, inputs=["id"], type=pa.string(), on_error="skip", batch_size=10
    )
    asked = {"dag_id": "shop", "run_id": "manual__1", "task_id": "moods", "try_number": 1}
    run_job(RefreshColumnsSpec(uri=str(uri), columns=("mood",), functions=(function,), asked=asked))


class RefusedError(Exception):
    """What an endpoint answers."""

    status_code = 422


def refuse_some(batch: pa.RecordBatch) -> list[str]:
    """A word for each row; a few are refused, in words that nobody shall read."""
    numbers = batch.column("id").to_pylist()
    if any(number < REFUSED for number in numbers):
        raise RefusedError(PRIVATE)
    return ["fine"] * len(numbers)


def make_wide(uri: Path) -> None:
    """2,000 columns, of which some were added one by one: those of its fragment are in ten files."""
    broad = rows(0, 50)
    for number in range(2_000 - 3 - 8 - 10):
        broad = broad.append_column(f"broad_{number}", broad["id"])
    lance_core.write_dataset(broad, str(uri))
    for number in range(8):
        lance_core.dataset(str(uri)).add_columns({f"feature_{number}": f"id * {number}"})
    lance_core.dataset(str(uri)).add_columns({f"extra_{number}": f"id + {number}" for number in range(10)})


def make_doubtful(uri: Path) -> None:
    """A commit of staged work that was killed, and a history that was pruned: nobody can tell whether the work landed."""
    lance.write_dataset(rows_at([0]), str(uri))
    staged = append(str(uri), [100])
    store = resolve_store(str(uri))
    put_intent(store, Intent(new_attempt(), attempts={staged.identity: staged.attempt}, base=staged.read_version))
    for number in range(2):
        lance.write_dataset(rows_at([number]), str(uri), mode="append")
    lance.dataset(str(uri)).cleanup_old_versions(older_than=dt.timedelta(0))


def begin(store: Any, identity: str, asked: dict[str, Any], *, lease_seconds: float) -> None:
    from lance_core.commit.identities import Asked

    begin_attempt(
        store,
        identity=identity,
        read_version=load_manifest(store).version,
        spec={"kind": "append"},
        lease_seconds=lease_seconds,
        asked=Asked.from_dict(asked),
    )


def make_many_fragments(uri: Path, count: int) -> None:
    """A table of many fragments, which share one small data file."""
    table = lance_core.write_dataset(rows(0, 10), str(uri))
    (fragment,) = table.get_fragments()
    operation = lance_core.LanceOperation.Append([fragment.metadata] * (count - 1))
    lance_core.LanceDataset.commit(str(uri), operation, read_version=table.version)


def make_copies(base: Path, template: Path, count: int) -> None:
    """Many small tables."""
    for number in range(count):
        shutil.copytree(template, base / f"table_{number:03}.lance")
