"""The files of a source as Spark has listed them, without a further request.

::

    spark.read.csv("s3a://raw/day=1").where(...)   its plan's leaves have a file index, which Spark filled when it analysed
    -> (SourceFile("s3://raw/day=1/a.csv", 60, 1764000000.0), ...)

One call into the JVM for each leaf, however many files there are. Spark Connect shows no plan: there a source has no files.
"""

from __future__ import annotations

import re
from typing import Any

from lance_core.jobs.sources.source_files import SourceFile, canonical_path
from lance_core.jobs.specs.spec import SourceSpec

_BETWEEN = "\x00"
_STATUS = re.compile(r"path=(?P<path>.*?); isDirectory=false; length=(?P<size>\d+);.*?modification_time=(?P<time>\d+)", re.S)


def source_files(frame: Any, spec: SourceSpec) -> tuple[SourceFile, ...]:
    """The files that the frame of a source reads; of a query those of all its views. () where Spark does not say."""
    if spec.callable:
        return ()
    frames = [frame] if not spec.sql else [frame.sparkSession.table(name) for name in spec.views]
    try:
        return tuple(dict.fromkeys(file for item in frames for file in _of_plan(item)))
    except (ValueError, OSError):
        return ()


def _of_plan(frame: Any) -> list[SourceFile]:
    try:
        leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
    except Exception:  # Spark Connect's frames have no plan here
        return []
    return [file for number in range(leaves.size()) for file in _of_leaf(leaves.apply(number))]


def _of_leaf(leaf: Any) -> list[SourceFile]:
    try:
        files = leaf.relation().location().allFiles()
        num_files, texts = files.size(), str(files.mkString(_BETWEEN)).split(_BETWEEN)
    except Exception:  # Py4J's: no files behind it, or a catalog's, which are listed when they are read
        return []
    if not num_files:
        return []
    found = [match for text in texts if (match := _STATUS.search(text)) is not None]
    if len(found) != num_files:
        raise ValueError(f"{len(found)} of {num_files} files were understood")
    return [SourceFile(canonical_path(item["path"]), int(item["size"]), int(item["time"]) / 1000) for item in found]
