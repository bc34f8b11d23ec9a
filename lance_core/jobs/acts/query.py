"""Query: write rows of a version to a file or a table, or return them as the job's result.

A file appears whole or not at all: it is written beside its place and then put there. A second run replaces it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc_csv
import pyarrow.parquet as pq

from lance_core.dataset import dataset, write_dataset
from lance_core.errors import InputError
from lance_core.io.resolve import resolve_store
from lance_core.jobs.runtime.protocols import Report, Runner
from lance_core.jobs.specs.definition import QuerySpec
from lance_core.scratch import scratch_folder

log = logging.getLogger(__name__)


def query(spec: QuerySpec, runner: Runner | None = None) -> Report:
    """Report {"version", "num_rows", "target"} or {"version", "num_rows", "rows"}, with "left_out" where not all fit."""
    options = spec.resolved_options()
    table = dataset(spec.uri, version=spec.version, storage_options=options)
    names, vectors = [*spec.columns], [] if spec.columns or spec.target else _vectors(table.schema)
    if vectors:
        names = [name for name in table.schema.names if name not in vectors] or table.schema.names
    scanner = table.scanner(
        columns=names or None,
        filter=spec.filter,
        limit=spec.limit,
        nearest=dict(spec.nearest) or None,
        full_text_query=spec.full_text,
    )
    facts: dict[str, Any] = {"version": table.version}
    if spec.target is None:
        vectors = [name for name in vectors if name not in names]
        facts |= bounded_result(scanner.to_batches(), spec.max_rows, max_bytes=spec.max_bytes, columns=vectors)
    elif spec.format == "lance":
        written = write_dataset(scanner.to_reader(), spec.target, mode="overwrite", storage_options=options)
        facts |= {"num_rows": written.count_rows(), "target": spec.target, "target_version": written.version}
    else:
        facts |= {
            "num_rows": export(scanner.to_reader(), spec.target, format=spec.format, options=options),
            "target": spec.target,
        }
    log.info("query of %s at version %d: %d rows", spec.uri, table.version, facts["num_rows"])
    return Report(spec.kind, facts)


def _vectors(schema: pa.Schema) -> list[str]:
    """Columns whose values are many numbers each: no reader of a result wants them unless they were named."""
    return [
        item.name
        for item in schema
        if pa.types.is_fixed_size_list(item.type) and pa.types.is_primitive(item.type.value_type)
    ]


def bounded_result(
    batches: Iterator[pa.RecordBatch], max_rows: int, *, max_bytes: int, columns: Sequence[str] = ()
) -> dict[str, Any]:
    """{"num_rows", "rows"} as JSON data; "left_out" says which rows did not fit into `max_bytes`, and which `columns` were
    not read. InputError when there are more than `max_rows`."""
    rows: list[dict[str, Any]] = []
    count = size = 0
    is_full = False
    for batch in batches:
        count += batch.num_rows
        # Row by row: a batch may be much larger than what is kept of it.
        for number in range(0 if not is_full else batch.num_rows, batch.num_rows):
            text = json.dumps(batch.slice(number, 1).to_pylist()[0], default=str)
            size += len(text.encode()) + 2
            if size > max_bytes:
                is_full = True
                break
            rows.append(json.loads(text))
        if count > max_rows:
            raise InputError(
                f"the query returns more than {max_rows:,} rows, which is too many for a task result",
                cure="Pass a target, a limit or a larger max_rows.",
            )
    facts: dict[str, Any] = {"num_rows": count, "rows": rows}
    left_out = {"rows": count - len(rows), "columns": [*columns]}
    if left_out["rows"] or columns:
        bound = f"the rows of a result take at most {max_bytes:,} bytes (max_bytes)" if left_out["rows"] else ""
        vectors = "vectors are left out unless columns names them" if columns else ""
        why = "; ".join(part for part in (bound, vectors) if part)
        facts["left_out"] = {**left_out, "why": f"{why}. A target takes all rows, as a file or a table."}
        log.warning("the result leaves out %d of %d rows and the columns %s: %s", left_out["rows"], count, columns, why)
    return facts


def export(reader: pa.RecordBatchReader, target: str, *, format: str, options: Mapping[str, str]) -> int:
    """Write a file of some format; the number of rows. The file replaces one that is there. InputError for a bad target."""
    folder, _, name = target.rpartition("/")
    if not folder or not name:
        raise InputError(f"query: target {target!r} is neither a uri nor an absolute path of a file")
    _check_suffix(name, format)
    with scratch_folder("the result of a query") as place:
        path = place / "rows"
        count = _WRITERS[format](reader, path)
        resolve_store(folder, dict(options)).put(name, path.read_bytes())
    return count


def _check_suffix(name: str, format: str) -> None:
    """A file that is called .csv and is Parquet would be found out by whoever reads it."""
    named = _SUFFIXES.get(Path(name).suffix.lower(), format)
    if named != format:
        known = (
            f'Pass format="{named}", or another name.' if named in _WRITERS else f"Formats: {', '.join(_WRITERS)}, lance."
        )
        raise InputError(f"query: the name of the target {name!r} says {named}, but its format is {format}", cure=known)


def _parquet(reader: pa.RecordBatchReader, path: Path) -> int:
    return _write(reader, pq.ParquetWriter(path, reader.schema))


def _arrow(reader: pa.RecordBatchReader, path: Path) -> int:
    return _write(reader, pa.ipc.new_file(str(path), reader.schema))


def _csv(reader: pa.RecordBatchReader, path: Path) -> int:
    return _write(reader, pc_csv.CSVWriter(path, reader.schema))


def _json(reader: pa.RecordBatchReader, path: Path) -> int:
    count = 0
    with path.open("w", encoding="utf-8") as file:
        for batch in reader:
            file.writelines(json.dumps(row, default=str) + "\n" for row in batch.to_pylist())
            count += batch.num_rows
    return count


def _write(reader: pa.RecordBatchReader, writer: Any) -> int:
    count = 0
    with writer:
        for batch in reader:
            writer.write_batch(batch)
            count += batch.num_rows
    return count


_WRITERS: Mapping[str, Callable[[pa.RecordBatchReader, Path], int]] = {
    "parquet": _parquet,
    "arrow": _arrow,
    "csv": _csv,
    "json": _json,
}
_SUFFIXES: Mapping[str, str] = {
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".lance": "lance",
    ".orc": "orc",
    ".xls": "Excel",
    ".xlsx": "Excel",
}
"""What the name of a file says; a suffix that is not here may hold anything."""
