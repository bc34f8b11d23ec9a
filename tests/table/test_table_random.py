"""Random histories of the official library: our manifest for each of its transactions is the one it wrote."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from lance_core.format.manifest import Manifest
from lance_core.table.build import build
from lance_core.table.draft import TableOptions
from lance_core.table.operations import Rewrite
from lance_core.table.transaction import Transaction
from tests.table.table_histories import read_history, reopen, source_of, transaction_of

VECTOR = pa.list_(pa.float32(), 2)
REUSE = "__lance_frag_reuse"


class Walk:
    """One random walk over a table."""

    def __init__(self, uri: Path, seed: int) -> None:
        self.uri = uri
        self.rng = random.Random(seed)
        self.stable = bool(seed % 2)
        version = self.rng.choice(["2.0", "2.1", "2.2"])
        first = pa.table({"a": range(100), "b": [str(i) for i in range(100)], "v": self.vectors(100)})
        lance.write_dataset(
            first, str(uri), max_rows_per_file=20, enable_stable_row_ids=self.stable, data_storage_version=version
        )

    def vectors(self, count: int) -> pa.Array:
        return pa.array([[float(i), 1.0] for i in range(count)], VECTOR)

    def data(self, names: list[str]) -> pa.Table:
        count, start = self.rng.randrange(5, 60), self.rng.randrange(1000)
        columns: dict[str, pa.Array] = {}
        for name in names:
            kind = reopen(self.uri).schema.field(name).type
            if kind == VECTOR:
                columns[name] = self.vectors(count)
            elif pa.types.is_string(kind):
                columns[name] = pa.array([str(i) for i in range(start, start + count)])
            else:
                columns[name] = pa.array(range(start, start + count), kind)
        return pa.table(columns)

    def extra(self) -> str | None:
        names = [name for name in reopen(self.uri).schema.names if name not in "abv"]
        return self.rng.choice(names) if names else None

    def append(self, table: Any) -> None:
        lance.write_dataset(self.data(table.schema.names), str(self.uri), mode="append", max_rows_per_file=20)

    def append_mixed(self, table: Any) -> None:
        version = self.rng.choice(["2.1", "2.2"])
        lance.write_dataset(self.data(table.schema.names), str(self.uri), mode="append", data_storage_version=version)

    def delete(self, table: Any) -> None:
        table.delete(f"a % 13 = {self.rng.randrange(13)}")

    def delete_range(self, table: Any) -> None:
        start = self.rng.randrange(1000)
        table.delete(f"a >= {start} and a < {start + 150}")

    def update(self, table: Any) -> None:
        table.update({"b": "'u'"}, where=f"a % 17 = {self.rng.randrange(17)}")

    def update_many(self, table: Any) -> None:
        table.update({"a": "a + 1"}, where=f"a < {self.rng.randrange(1000)}")

    def upsert(self, table: Any) -> None:
        builder = table.merge_insert("a").when_matched_update_all().when_not_matched_insert_all()
        builder.execute(self.data(table.schema.names))

    def update_columns(self, table: Any) -> None:
        table.merge_insert("a").when_matched_update_all().execute(self.data(["a", "b"]))

    def add(self, table: Any) -> None:
        table.add_columns({f"c{self.rng.randrange(1000)}": "a + 1"})

    def add_nulls(self, table: Any) -> None:
        table.add_columns(pa.schema([pa.field(f"n{self.rng.randrange(1000)}", pa.int32())]))

    def drop(self, table: Any) -> None:
        if (name := self.extra()) is not None:
            table.drop_columns([name])

    def rename(self, table: Any) -> None:
        if (name := self.extra()) is not None:
            table.alter_columns({"path": name, "name": f"r{self.rng.randrange(1000)}"})

    def cast(self, table: Any) -> None:
        if (name := self.extra()) is not None:
            kind = pa.int32() if table.schema.field(name).type == pa.int64() else pa.int64()
            table.alter_columns({"path": name, "data_type": kind})

    def index(self, table: Any) -> None:
        kind = self.rng.choice(["BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER"])
        table.create_scalar_index(self.rng.choice("ab"), kind, name=self.rng.choice(["i1", "i2", "i3"]))

    def vector_index(self, table: Any) -> None:
        table.create_index("v", "IVF_FLAT", num_partitions=1)

    def drop_index(self, table: Any) -> None:
        names = [item.name for item in table.describe_indices()]
        if names:
            table.drop_index(self.rng.choice(names))

    def optimize(self, table: Any) -> None:
        table.optimize.optimize_indices(num_indices_to_merge=self.rng.choice([0, 1]))

    def compact(self, table: Any) -> None:
        table.optimize.compact_files(target_rows_per_fragment=self.rng.choice([40, 1 << 20]))

    def compact_deferred(self, table: Any) -> None:
        table.optimize.compact_files(defer_index_remap=True)

    def overwrite(self, table: Any) -> None:
        if self.rng.random() < 0.3:
            lance.write_dataset(self.data(table.schema.names), str(self.uri), mode="overwrite", max_rows_per_file=20)

    def restore(self, table: Any) -> None:
        if table.version > 1 and self.rng.random() < 0.5:
            lance.dataset(str(self.uri), version=self.rng.randrange(1, table.version)).restore()

    def configure(self, table: Any) -> None:
        table.update_config({f"k{self.rng.randrange(3)}": str(self.rng.random())})

    def steps(self) -> list[Callable[[Any], None]]:
        names = (
            "append append append_mixed delete delete_range update update_many upsert update_columns add add_nulls drop "
            "rename cast index index vector_index drop_index optimize compact compact compact_deferred overwrite restore "
            "configure"
        )
        return [getattr(self, name) for name in names.split()]

    def run(self, count: int) -> None:
        steps = self.steps()
        for _ in range(count):
            try:
                self.rng.choice(steps)(reopen(self.uri))
            except (OSError, ValueError, RuntimeError, NotImplementedError, KeyError):
                continue  # the official library refuses some combinations; what it does commit is what counts


def with_reuse_index(transaction: Transaction, previous: Manifest | None, real: Manifest) -> Transaction:
    """A deferred compaction leaves its reuse index in the manifest only; the transaction on disk does not have it."""
    found = [item for item in real.indices if item.name == REUSE]
    known = () if previous is None else previous.indices
    operation = transaction.operation
    if not found or found[0].uuid in {item.uuid for item in known} or not isinstance(operation, Rewrite):
        return transaction
    return dataclasses.replace(transaction, operation=dataclasses.replace(operation, frag_reuse_index=found[0]))


def check_history(uri: Path, *, stable: bool) -> int:
    history, previous = read_history(uri), None
    for file in history:
        real = file.manifest
        transaction = with_reuse_index(transaction_of(file), previous, real)
        ours = build(
            previous,
            transaction,
            timestamp_ns=real.timestamp_ns,
            writer_version=real.writer_version,  # type: ignore[arg-type]
            options=TableOptions(data_storage_version=real.data_storage_version, stable_row_ids=stable),
            source=source_of(history, transaction),
        )
        for field in dataclasses.fields(Manifest):
            where = f"version {real.version}, {transaction.operation.name}: {field.name}"
            assert getattr(ours, field.name) == getattr(real, field.name), where
        previous = real
    return len(history)


@pytest.mark.parametrize("seed", range(6))
def test_random_history(tmp_path: Path, seed: int) -> None:
    walk = Walk(tmp_path / "t", seed)
    walk.run(14)
    assert check_history(tmp_path / "t", stable=walk.stable) > 3


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 200))
def test_many_random_histories(tmp_path: Path, seed: int) -> None:
    walk = Walk(tmp_path / "t", seed)
    walk.run(25)
    assert check_history(tmp_path / "t", stable=walk.stable) > 3
