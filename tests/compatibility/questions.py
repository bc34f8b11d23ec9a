"""The same questions to both libraries about one table, and where their answers differ.

    differences(path)        ["version 3: rows: row 7 ...", "filter number < 9: 8 rows, expected 9"]; empty: they agree

A question that the official library refuses is one that we refuse too, or answer (`may_answer`).
"""

from __future__ import annotations

import contextlib
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import lance
import lance.query
import numpy as np
import pyarrow as pa

import lance_core
from tests.compatibility.more_questions import asked

sys.path.insert(0, str(Path(__file__).parents[1] / "bytes"))
import byte_files as files

FILTERS = (
    "id < 9",
    "number = 37",
    "number > 90",
    "number IN (1, 2, 3) OR few = 'v3'",
    "few = 'v1'",
    "zone >= 100 AND zone < 110",
    "bloom = 27",
    "contains(gram, 'number 1')",
    "array_has_any(labels, ['l1'])",
    "array_has_all(labels, ['l1', 'm3'])",
    "word IS NULL",
    "word = 'word1' AND flag",
    "text LIKE 'alpha%'",
    "kind = 'k1'",
    "price > 0.2",
    "point.x > 5",
    "point.name = 'p3'",
)
WORDS = ("fox", "alpha", "jumps beta", "nowhere")


def versions_of(path: Path) -> list[int]:
    """The versions there are."""
    return [item["version"] for item in lance.dataset(path).versions()]


def differences(path: Path, *, every_version: bool = True) -> Iterator[str]:
    """Where the two libraries differ about a table."""
    try:
        newest = lance.dataset(path)
    except Exception as error:
        yield from _refused(lambda: lance_core.dataset(str(path)), f"open: {error}")
        return
    numbers = versions_of(path) if every_version else [newest.version]
    for number in numbers:
        theirs, ours = lance.dataset(path, version=number), lance_core.dataset(str(path), version=number)
        for problem in _version(theirs, ours, searches=number == newest.version):
            yield f"version {number}: {problem}"


def _version(theirs: Any, ours: Any, *, searches: bool) -> Iterator[str]:
    if not _same_schema(ours.schema, theirs.schema):
        yield f"schema: {ours.schema}, expected {theirs.schema}"
    yield from _both("count_rows", theirs.count_rows, ours.count_rows)
    yield from _both("rows", theirs.to_table, ours.to_table)
    ids = {"columns": [], "with_row_id": True}
    yield from _both("row ids", lambda: theirs.to_table(**ids), lambda: ours.to_table(**ids))
    count = theirs.count_rows()
    picks = [0, count - 1, count // 2, count // 3] if count else []
    yield from _both("take", lambda: theirs.take(picks), lambda: ours.take(picks))
    if not searches:
        return
    names = set(theirs.schema.names)
    for text in FILTERS:
        if _column_of(text) in names:
            yield from _both(f"filter {text}", lambda text=text: _found(theirs, text), lambda text=text: _found(ours, text))
    yield from _indices(theirs, ours)
    indices = sorted({item["name"] for item in ours.list_indices()})
    with contextlib.suppress(RuntimeError):
        # It leaves out graphs of 0.20 to 0.24, which it does not search.
        indices = sorted({item["name"] for item in theirs.list_indices()})
    mine = dict(asked(ours, lance_core.query, indices))
    for what, ask in asked(theirs, lance.query, indices):
        yield from _both(what, ask, mine[what])


def _column_of(text: str) -> str:
    return re.findall(r"[a-z]+", re.sub(r"contains|array_has_a..", "", text))[0]


def _found(dataset: Any, text: str) -> pa.Table:
    return _sorted(dataset.to_table(columns=["id"], filter=text, with_row_id=True))


def _indices(theirs: Any, ours: Any) -> Iterator[str]:
    said: dict[str, str] = {}
    with contextlib.suppress(RuntimeError):
        said = {item.name: item.index_type for item in theirs.describe_indices()}
    say = {item.name: item.index_type for item in ours.describe_indices()}
    # The official library calls a few old graphs Unknown, or by the name of another kind.
    unsure = {name for name in said if "Unknown" in (said[name], say.get(name))}
    if said and any(said[name] != say.get(name) for name in said if name not in unsure):
        yield f"indices: {say}, expected {said}"
    if "vector" in theirs.schema.names and pa.types.is_fixed_size_list(theirs.schema.field("vector").type):
        width = theirs.schema.field("vector").type.list_size
        q = np.linspace(-1, 1, width).astype(np.float32)
        nearest = {"column": "vector", "q": q, "k": 8, "nprobes": 64, "refine_factor": 20}
        yield from _both(
            "nearest",
            lambda: theirs.to_table(columns=["id"], nearest=nearest).select(["id"]),
            lambda: ours.to_table(columns=["id"], nearest=nearest).select(["id"]),
        )
    if any(kind == "Inverted" for kind in said.values()):
        for words in WORDS:
            yield from _both(
                f"text {words}",
                lambda words=words: _sorted(theirs.to_table(columns=["id"], full_text_query=words).select(["id"])),
                lambda words=words: _sorted(ours.to_table(columns=["id"], full_text_query=words).select(["id"])),
            )


def _same_schema(left: pa.Schema, right: pa.Schema) -> bool:
    return bool(left.equals(right))


def _sorted(table: pa.Table) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in table.column_names])


def _both(what: str, theirs: Callable[[], Any], ours: Callable[[], Any]) -> Iterator[str]:
    try:
        expected = theirs()
    except BaseException as error:
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        return
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            got = ours()
        except Exception as error:
            yield f"{what}: {type(error).__name__}: {str(error)[:300]}"
            return
    for warning in told:
        if issubclass(warning.category, RuntimeWarning):
            yield f"{what}: warns {str(warning.message)[:300]}"
    if isinstance(expected, pa.Table):
        yield from files.differences(got, expected, what=what)
    elif got != expected:
        yield f"{what}: {got}, expected {expected}"


def _refused(ours: Callable[[], Any], what: str) -> Iterator[str]:
    try:
        ours()
    except lance_core.errors.LanceError:
        return
    yield f"accepted, the official library refuses: {what}"


def main(paths: Sequence[str]) -> None:
    """For people: the differences of tables."""
    for path in paths:
        for problem in differences(Path(path)):
            print(path, problem)


if __name__ == "__main__":
    main(sys.argv[1:])
