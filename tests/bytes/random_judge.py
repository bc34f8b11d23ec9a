"""A random case, judged: what the official library writes and reads we read equal, and it reads what we write.

    case = random_case(4711)                  version, rows and columns follow from the number alone
    judge(case, root)                         [] or what does not agree, one line each

A table that the official library cannot keep itself (it refuses, panics, or reads back something else) asks nothing of our
reader; of our writer it asks that it refuses with an error of its own, or writes what both can read.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa

import lance_core
from lance_core.arrow import schema_to_arrow
from lance_core.errors import InputError, UnsupportedEncodingError, UnsupportedVersionError
from tests.bytes import byte_files as files
from tests.bytes import random_shapes as shapes
from tests.bytes.random_shapes import Shape

VERSIONS = ("0.1", "2.0", "2.1", "2.2", "2.2", "2.3")
CANNOT_READ = "written, not read: "
ROWS = (0, 1, 2, 7, 100, 130, 500, 1023, 1025, 2100, 5000)
MOST_VALUES = 2_000_000


@dataclass(frozen=True)
class Case:
    """A table of one file. `batch_rows` is how our writer is given it; `sliced`: in slices of larger arrays."""

    seed: int
    version: str
    num_rows: int
    columns: tuple[Shape, ...]
    batch_rows: int = 1 << 20
    sliced: bool = False

    def table(self) -> pa.Table:
        """The rows."""
        fields = [column.field(f"c{number}") for number, column in enumerate(self.columns)]
        arrays = [column.array(self.num_rows) for column in self.columns]
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields))

    def describe(self) -> str:
        """Everything that matters, on a few lines."""
        how = f"{self.version}, {self.num_rows} rows, batches of {self.batch_rows}" + (", sliced" if self.sliced else "")
        return "\n".join([f"case {self.seed}: {how}", *(f"  {column.describe()}" for column in self.columns)])


def random_case(seed: int, version: str | None = None) -> Case:
    """The case of a number; `version` narrows it to one version of the format."""
    rng = np.random.default_rng(seed)
    version = version or str(rng.choice(VERSIONS))
    rows = int(rng.choice(ROWS))
    columns = tuple(shapes.draw(rng, version) for _ in range(int(rng.choice([1, 1, 1, 2, 3]))))
    # Lists of lists of lists multiply: such cases have fewer rows, so that none takes a machine's memory.
    heaviest = max(column.values_per_row for column in columns)
    rows = max(count for count in ROWS if count <= min(rows, max(1.0, MOST_VALUES / heaviest)))
    batch_rows = int(rng.choice([1 << 20, 1 << 20, max(1, rows // 3), 700]))
    return Case(seed, version, rows, columns, batch_rows, bool(rng.random() < 0.3))


def smaller(case: Case) -> Iterator[Case]:
    """Cases that are a step simpler."""
    for number in range(len(case.columns)):
        if len(case.columns) > 1:
            yield replace(case, columns=case.columns[:number] + case.columns[number + 1 :])
    for rows in (1, 2, 5, case.num_rows // 8, case.num_rows // 2):
        if 0 < rows < case.num_rows:
            yield replace(case, num_rows=rows)
    if case.sliced:
        yield replace(case, sliced=False)
    if case.batch_rows < case.num_rows:
        yield replace(case, batch_rows=1 << 20)
    for number, column in enumerate(case.columns):
        for made in shapes.smaller(column):
            yield replace(case, columns=(*case.columns[:number], made, *case.columns[number + 1 :]))


def shrink(case: Case, root: Path, *, tries: int = 150) -> Case:
    """The smallest case found that still does not agree, in the same words up to the first colon."""
    kind = _kind(judge(case, root))
    changed = True
    while changed and tries > 0:
        changed = False
        for candidate in smaller(case):
            tries -= 1
            if tries < 0:
                break
            try:
                found = judge(candidate, root)
            except Exception:
                continue
            if found and _kind(found) == kind:
                case, changed = candidate, True
                break
    return case


def _kind(problems: list[str]) -> str:
    return problems[0].split(":")[0] if problems else ""


def judge(case: Case, root: Path) -> list[str]:
    """What does not agree; empty when all does."""
    table = case.table()
    # What is known of a file is cached by its place, so each case has one of its own.
    own = root / uuid.uuid4().hex
    (own / "ours").mkdir(parents=True)
    try:
        theirs, refusal = _write_official(own / "theirs", table, case.version)
        problems = []
        if theirs is not None:
            problems += [f"we read theirs: {line}" for line in _read_by_us(own / "theirs", table, theirs)]
        return problems + _judge_ours(case, own / "ours", table, theirs, refusal)
    finally:
        shutil.rmtree(own)


def _write_official(root: Path, table: pa.Table, version: str) -> tuple[pa.Table | None, str]:
    """What the official library reads of what it wrote, when that is what it was given; else why not.

    Tables of no rows have no files, so those are written by its file writer.
    """
    written = False
    try:
        if table.num_rows:
            (root / "data").mkdir(parents=True)
            lance.write_dataset(table, str(root), data_storage_version="legacy" if version == "0.1" else version)
            written = True
            # What is on disk counts: the handle that wrote still knows what was lost.
            dataset = lance.dataset(root)
            shutil.copy(next((root / "data").glob("*.lance")), root / files.PATH)
            found, lost = _read_official(dataset, table)
        else:
            files.write_official(root, table, version)
            found = files.read_official(root)
            lost = list(files.differences(found, table))
    except BaseException as error:  # panics are no Exceptions
        if isinstance(error, KeyboardInterrupt):
            raise
        return None, f"{CANNOT_READ if written else ''}{type(error).__name__}: {error}"
    if lost and version != "0.1":
        return None, f"{CANNOT_READ}loses {lost[0]}"
    return found, ""


def _read_official(dataset: lance.LanceDataset, table: pa.Table) -> tuple[pa.Table, list[str]]:
    """The rows, and how they differ; column by column, since some the official library does not read beside others."""
    parts = [dataset.to_table(columns=[name], blob_handling="all_binary") for name in table.column_names]
    schema = pa.schema([part.schema.field(0) for part in parts])
    found = pa.Table.from_arrays([part.column(0) for part in parts], schema=schema)
    return found, [*files.differences(found, table), *_lost_by_take(dataset, table)]


def _lost_by_take(dataset: lance.LanceDataset, table: pa.Table) -> list[str]:
    picks = np.unique(np.random.default_rng(3).integers(0, table.num_rows, 9))
    try:
        expected = files.take(table, picks)
    except (pa.ArrowException, NotImplementedError):
        return []  # Arrow takes no rows of this type
    blobs = any("lance-encoding:blob" in str(field.metadata) for field in table.schema)
    if blobs:
        return []
    return [
        line
        for name in table.column_names
        for line in files.differences(dataset.take(picks.tolist(), columns=[name]), expected.select([name]), what="take")
    ]


def _read_by_us(root: Path, table: pa.Table, theirs: pa.Table) -> list[str]:
    if not (root / files.PATH).exists():
        return []
    try:
        problems = files.read_by_us(root, theirs)
        opened = files.open_at(root)
        schema = schema_to_arrow(opened.schema)
    except Exception as error:
        return [f"{type(error).__name__}: {error}"]
    if not table.num_rows and "json" in str(table.schema):
        return problems  # its file reader shows what is stored
    return problems + [f"schema: {line}" for line in schema_differences(schema, theirs.schema)]


def schema_differences(got: pa.Schema, expected: pa.Schema) -> Iterator[str]:
    """Fields whose type, nullability or metadata differ."""
    for left, right in zip(got, expected, strict=True):
        if not left.equals(right, check_metadata=False):
            yield f"{left.name}: {left} {left.nullable}, expected {right} {right.nullable}"


def _judge_ours(case: Case, root: Path, table: pa.Table, theirs: pa.Table | None, refusal: str) -> list[str]:
    keeps = theirs is not None
    given = _sliced(table) if case.sliced else table
    try:
        if case.version == "0.1" and table.num_rows:
            written = _write_legacy_table(root, given, case.batch_rows)
        else:
            written = files.write_ours(root, given, case.version, batch_rows=case.batch_rows)
    except (InputError, UnsupportedEncodingError, UnsupportedVersionError) as error:
        if case.version == "0.1" and "is not nullable but holds a null" in str(error):
            return []  # the official library stores such nulls as empty values without a word
        return [f"we refuse: {error}"] if keeps else []
    except Exception as error:
        return [f"we fail: {type(error).__name__}: {error}"]
    expected = table
    problems = []
    if table.num_rows:
        note = "" if keeps else f" (their own: {refusal:.100})"
        try:
            dataset = lance.dataset(root) if written is None else files.official_table(root, table, written, case.version)
            dataset.validate()
            found, lost = _read_official(dataset, table)
            if case.version == "0.1":
                # What legacy files keep of nulls is what the official library reads of a file of its own; but for values
                # and keys under nulls, which it gives away there.
                text = case.describe()
                compared = theirs is not None and "dirty" not in text and "dictionary<" not in text
                expected, lost = found, [*files.differences(found, theirs)] if compared else []
            if case.version == "2.3" and lost and refusal == f"{CANNOT_READ}loses {lost[0]}" and _is_packed_nothing(case):
                lost = []  # it takes rows of such structs without a null among them for nulls, whoever wrote them
            problems = [f"they read ours: {line}{note}" for line in lost]
        except BaseException as error:
            if refusal.startswith(CANNOT_READ):
                # It would have written the same. What legacy files keep of nulls, only the official library could say.
                found_here = _try_ours(root, expected)
                unread = [line for line in found_here if "CorruptFileError" in line]
                return [f"we read ours: {line}" for line in (unread if case.version == "0.1" else found_here)]
            problems = [f"they cannot read ours: {type(error).__name__}: {error!s:.300}{note}".replace("\n", " ")]
    return problems + [f"we read ours: {line}" for line in _try_ours(root, expected)]


def _is_packed_nothing(case: Case) -> bool:
    return any("struct<>" in (text := column.describe()) and "packed=true" in text for column in case.columns)


def _write_legacy_table(root: Path, table: pa.Table, batch_rows: int) -> None:
    """A table of one legacy file by us: what its dictionaries hold stands in the manifest."""
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=batch_rows))
    lance_core.write_dataset(reader, root, data_storage_version="legacy")
    shutil.copy(next((root / "data").glob("*.lance")), root / files.PATH)


def _try_ours(root: Path, table: pa.Table) -> list[str]:
    try:
        return files.read_by_us(root, table)
    except Exception as error:
        return [f"{type(error).__name__}: {error}"]


def _sliced(table: pa.Table) -> pa.Table:
    """The same rows as a slice of something larger."""
    if table.num_rows < 2:
        return table
    try:
        around = pa.concat_tables([table.slice(table.num_rows - 1), table, table.slice(0, 1)]).combine_chunks()
    except pa.ArrowException:
        return table  # Arrow joins no dictionaries that do not fit their keys together
    return around.slice(1, table.num_rows)
