"""The same Arrow table kept by all contenders, and the work they all know: scan, write, take, open."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import lance_core
from bench.measure import Case


@dataclass(frozen=True)
class Kept:
    """Where each contender keeps the table."""

    table: pa.Table
    folder: Path

    @property
    def lance(self) -> str:
        """A table that pylance wrote; both Lance readers read this one."""
        return str(self.folder / "official.lance")

    @property
    def parquet(self) -> str:
        """The Parquet file."""
        return str(self.folder / "table.parquet")


def keep(table: pa.Table, folder: Path) -> Kept:
    """Write the table once with pylance (its defaults) and once as Parquet (pyarrow's defaults)."""
    kept = Kept(table, folder)
    lance.write_dataset(table, kept.lance, mode="overwrite")
    pq.write_table(table, kept.parquet)
    return kept


def same_rows(results: Mapping[str, object]) -> None:
    """All contenders must have produced tables of equal content."""
    tables = {name: item for name, item in results.items() if isinstance(item, pa.Table)}
    reference = tables["pylance"]
    for name, table in tables.items():
        if table.num_rows != reference.num_rows:
            raise AssertionError(f"{name} produced {table.num_rows} rows, pylance {reference.num_rows}")
        for column in reference.column_names:
            theirs, ours = reference[column].combine_chunks(), table[column].combine_chunks()
            if not ours.cast(theirs.type).equals(theirs):
                raise AssertionError(f"{name} differs from pylance in column {column}")


def scan_cases(kept: Kept, *, columns: Sequence[str] = ()) -> Iterator[Case]:
    """Scan everything, then each named column alone."""
    yield _scan(kept, "scan all", None)
    for column in columns:
        yield _scan(kept, f"scan {column}", [column])


def _scan(kept: Kept, name: str, columns: list[str] | None) -> Case:
    ours, theirs = lance_core.dataset(kept.lance), lance.dataset(kept.lance)
    part = kept.table if columns is None else kept.table.select(columns)
    contenders: dict[str, Callable[[], object]] = {
        "lance_core": lambda: ours.to_table(columns=columns),
        "pylance": lambda: theirs.to_table(columns=columns),
        "parquet": lambda: pq.read_table(kept.parquet, columns=columns),
        "memcpy": lambda: _copy(part),
    }
    return Case(name, contenders, num_bytes=part.nbytes, rows=part.num_rows, check=same_rows)


def _copy(table: pa.Table) -> list[np.ndarray]:
    buffers = (buffer for column in table.columns for chunk in column.chunks for buffer in chunk.buffers() if buffer)
    return [np.frombuffer(buffer, np.uint8).copy() for buffer in buffers]


def write_case(kept: Kept, *, name: str = "write", repeats: int | None = None) -> Case:
    """Write the whole table; notes give the file sizes against pylance's."""
    places = {name: kept.folder / f"write-{name}" for name in ("lance_core", "pylance", "parquet")}

    def clear(contender: str) -> None:
        if places[contender].is_dir():
            shutil.rmtree(places[contender])

    lance_core.write_dataset(kept.table, str(places["lance_core"]), mode="create")
    ours, theirs = _size(places["lance_core"]), _size(Path(kept.lance))
    clear("lance_core")
    contenders: dict[str, Callable[[], object]] = {
        "lance_core": lambda: lance_core.write_dataset(kept.table, str(places["lance_core"]), mode="create"),
        "pylance": lambda: lance.write_dataset(kept.table, str(places["pylance"]), mode="create"),
        "parquet": lambda: pq.write_table(kept.table, str(places["parquet"])),
    }
    notes = {"size against pylance": ours / theirs, "size against parquet": ours / Path(kept.parquet).stat().st_size}
    return Case(
        name, contenders, num_bytes=kept.table.nbytes, rows=kept.table.num_rows, before=clear, repeats=repeats, notes=notes
    )


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in (folder / "data").iterdir())


def take_cases(kept: Kept, *, columns: list[str] | None = None) -> Iterator[Case]:
    """1,000 random rows, 100 and 10 of them, then one row, all on a warm handle."""
    ours, theirs = lance_core.dataset(kept.lance), lance.dataset(kept.lance)
    many = np.random.default_rng(7).choice(kept.table.num_rows, min(1000, kept.table.num_rows), replace=False)
    for name, rows, rounds in (
        ("take 1000 rows", [int(row) for row in many], 1),
        ("take 100 rows x 10", [int(row) for row in many[:100]], 10),
        ("take 10 rows x 10", [int(row) for row in many[:10]], 10),
        ("take 1 row x 100", [kept.table.num_rows // 2], 100),
    ):
        contenders: dict[str, Callable[[], object]] = {
            "lance_core": _repeat(rounds, lambda rows=rows: ours.take(rows, columns=columns)),
            "pylance": _repeat(rounds, lambda rows=rows: theirs.take(rows, columns=columns)),
        }
        yield Case(name, contenders, rows=len(rows), check=same_rows)


def _repeat(rounds: int, work: Callable[[], object]) -> Callable[[], object]:
    def repeated() -> object:
        produced = None
        for _ in range(rounds):
            produced = work()
        return produced

    return repeated
