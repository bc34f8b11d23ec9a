"""A Lance table as a source without Spark, with the option names of Spark's `format("lance")`.

::

    {"format": "lance", "paths": ["/lake/orders.lance"]}                                the newest version
    {"format": "lance", "paths": ["/lake/orders.lance"], "options": {"version": "4"}}   or a tag, or a branch

The version is fixed when the source is opened: however often a query reads the table, it sees the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa

from lance_core.dataset.query.scanner import LanceScanner
from lance_core.dataset.scan.request import ScanRequest
from lance_core.dataset.snapshot.snapshot import Snapshot, open_snapshot
from lance_core.errors import InputError
from lance_core.io.options import KNOWN_OPTIONS

OptionsOf = Callable[[str], Mapping[str, str]]
"""A table's uri -> the storage options that the job has for it."""

_VERSION_OPTIONS = ("version", "tag", "branch")


def no_options(_: str) -> Mapping[str, str]:
    """For a job that has no storage options."""
    return {}


def open_lance(paths: tuple[str, ...], options: Mapping[str, str], options_of: OptionsOf) -> Snapshot:
    """The version that the options name. InputError for options that do not exist or contradict each other."""
    if len(paths) != 1:
        raise InputError(f"a source of format lance needs one path, that of a table; got {len(paths)}")
    given = {name.lower(): value for name, value in options.items()}
    unknown = sorted(name for name in given if name not in _VERSION_OPTIONS and name not in KNOWN_OPTIONS)
    if unknown:
        raise InputError(
            f"source option {', '.join(unknown)} of lance is only supported with Spark",
            cure=f"Omit it, or use {', '.join(_VERSION_OPTIONS)} or a storage option.",
        )
    storage = {name: value for name, value in given.items() if name not in _VERSION_OPTIONS}
    return open_snapshot(paths[0], version=_version(given), storage_options={**options_of(paths[0]), **storage})


def _version(given: Mapping[str, str]) -> int | str | tuple[str | None, int | None] | None:
    version, tag, branch = (given.get(name) for name in _VERSION_OPTIONS)
    if tag is not None:
        if version is not None or branch is not None:
            raise InputError("source options: tag cannot be combined with version or branch")
        return tag
    if version is not None and not version.isdecimal():
        raise InputError(f"source option version of lance must be a number, got {version!r}", cure="Use tag= for a tag.")
    number = None if version is None else int(version)
    return number if branch is None else (branch, number)


def batches_of(snapshot: Snapshot) -> Iterator[pa.RecordBatch]:
    """All rows of a version."""
    return LanceScanner(snapshot, ScanRequest()).to_batches()
