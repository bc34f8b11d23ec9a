"""One call of each verb, for whichever of the two libraries is passed: they share the official names.

Imports neither, so that a process that measures one of them does not hold the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow.ipc as ipc

Call = Callable[[Any, str, str], Any]
"""(library, uri of the table, path of an Arrow file with rows to merge) -> the dataset afterwards."""


def _delete(library: Any, uri: str, upserts: str) -> Any:
    dataset = library.dataset(uri)
    dataset.delete("small < 10")
    return dataset


def _delete_modulo(library: Any, uri: str, upserts: str) -> Any:
    dataset = library.dataset(uri)
    dataset.delete("id % 10 = 3")
    return dataset


def _compact(library: Any, uri: str, upserts: str) -> Any:
    dataset = library.dataset(uri)
    dataset.optimize.compact_files(target_rows_per_fragment=dataset.count_rows() // 5)
    return dataset


def _add_columns(library: Any, uri: str, upserts: str) -> Any:
    dataset = library.dataset(uri)
    dataset.add_columns({"computed": "value * 2 + id"})
    return dataset


def _merge_insert(library: Any, uri: str, upserts: str) -> Any:
    with ipc.open_file(upserts) as reader:
        new = reader.read_all()
    dataset = library.dataset(uri)
    dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(new)
    return dataset


VERBS: Mapping[str, Call] = {
    "delete": _delete,
    "delete_modulo": _delete_modulo,
    "compact": _compact,
    "add_columns": _add_columns,
    "merge_insert": _merge_insert,
}
