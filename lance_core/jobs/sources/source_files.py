"""Which files a source consists of, and a short text that changes when one of them does: its fingerprint.

::

    list_source_files(SourceSpec(format="csv", paths=("/raw/a.csv",)))   -> (SourceFile("/raw/a.csv", 60, 1764000000.123),)
    fingerprint(files)      "1 file, 60 bytes, newest of 2026-11-24T16:00:00.123Z, sha256 9a3f…, each 77ab01ccf2d0"
    differing(text, files)  the files that are new or changed since, newest first

Beside the digest of the work, which says what a task is to read, it says what a try has read. A file counts by its path, its
size and its modification time: to the millisecond on local disks and to the second elsewhere, which every engine can tell.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lance_core.errors import SourceMissingError
from lance_core.jobs.specs.identity import canonical_uri
from lance_core.jobs.specs.spec import SourceSpec

HIDDEN = ("_", ".")
"""Names that begin so are no data below a folder: Arrow and Spark pass over them alike."""
_MOST_MARKS = 16
"""Of so many files each has a mark of its own; more differ by count, bytes, time and digest."""
_MARK = 12
_DIGEST = 32
_PATTERN = "*[{"
_CHOOSING = frozenset({"pathglobfilter", "modifiedbefore", "modifiedafter", "recursivefilelookup"})
"""Options by which Spark reads other files than those below the paths."""


@dataclass(frozen=True, order=True, slots=True)
class SourceFile:
    """A file of a source: its path as `canonical_path` has it, its size in bytes, its modification time in seconds."""

    path: str
    size: int
    modified: float

    @property
    def mark(self) -> str:
        """Differs when path, size or time differ."""
        return hashlib.sha256(f"{self.path}\n{self.size}\n{self.time}".encode()).hexdigest()[:_MARK]

    @property
    def time(self) -> str:
        """The modification time, as precise as every engine can tell it."""
        is_remote = "://" in self.path
        at = datetime.fromtimestamp(int(self.modified) if is_remote else int(self.modified * 1000) / 1000, timezone.utc)
        return at.isoformat(timespec="seconds" if is_remote else "milliseconds").replace("+00:00", "Z")

    def __str__(self) -> str:
        return f"{self.path} ({self.size:,} bytes of {self.time})"


def canonical_path(uri: str) -> str:
    """A file's path, whichever engine spelled it: `s3a://` as `s3://`, hosts of HDFS and Azure left out."""
    if uri.lower().startswith("hdfs://"):
        return f"hdfs://{urlsplit(uri).path.strip('/')}"
    found = canonical_uri(uri)
    if "://" not in found:
        return os.path.abspath(found)  # noqa: PTH100 - Path.resolve would follow links
    scheme, _, rest = found.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.partition('@')[0] if scheme == 'abfss' else host}{slash}{path}"


def fingerprint(files: Iterable[SourceFile]) -> str:
    """What is remembered of a source's files, at most some 400 characters; "" for none."""
    known = sorted(set(files))
    if not known:
        return ""
    marks = [item.mark for item in known]
    digest = hashlib.sha256("".join(marks).encode()).hexdigest()[:_DIGEST]
    count = f"{len(known):,} file{'s' if len(known) > 1 else ''}"
    newest = max(item.time for item in known)
    each = f", each {' '.join(marks)}" if len(known) <= _MOST_MARKS else ""
    return f"{count}, {sum(item.size for item in known):,} bytes, newest of {newest}, sha256 {digest}{each}"


def shown(text: str) -> str:
    """A fingerprint without what only a machine compares.

    >>> shown("1 file, 60 bytes, newest of 2026-11-24T16:00:00.123Z, sha256 9a3f, each 77ab")
    '1 file, 60 bytes, newest of 2026-11-24T16:00:00.123Z'
    """
    return text.partition(", sha256 ")[0]


def differing(text: str, files: Sequence[SourceFile]) -> list[SourceFile]:
    """Those of `files` that a fingerprint shows to be new or changed, newest first; of many only those changed later."""
    _, has_marks, marks = text.partition(", each ")
    newest = re.search(r"newest of (\S+?)(?:,|$)", text)
    if has_marks:
        known = frozenset(marks.split())
        found = [item for item in files if item.mark not in known]
    else:
        found = [item for item in files if newest is not None and item.time > newest[1]]
    return sorted(found, key=lambda item: item.modified, reverse=True)


def list_source_files(spec: SourceSpec) -> tuple[SourceFile, ...] | None:
    """The files of a source, of all views of a query; None where this process cannot tell.

    It is a listing of its own: for work whose source is opened anyway, the engine says it.
    """
    if spec.callable:
        return None
    if spec.sql:
        views = [list_source_files(view) for view in spec.views.values()]
        return None if any(view is None for view in views) else tuple(item for view in views for item in view or ())
    if str(spec.format).lower() == "lance":
        return ()
    if not spec.paths or _CHOOSING.intersection(name.lower() for name in spec.options):
        return None
    try:
        return tuple(item for path in spec.paths for item in _files_at(path))
    except (OSError, ValueError, NotImplementedError):  # Arrow's errors are among them
        return None


def local_files(paths: Iterable[str]) -> tuple[SourceFile, ...]:
    """Files of a local disk by their paths."""
    found = []
    for path in paths:
        facts = os.stat(path)  # noqa: PTH116 - a string, of many
        found.append(SourceFile(canonical_path(path), facts.st_size, facts.st_mtime_ns / 1e9))
    return tuple(found)


def remote_files(uri: str) -> tuple[Any, list[Any], tuple[SourceFile, ...]]:
    """Arrow's file system, what it knows of each file at or below a uri, and the files.

    FileNotFoundError when there is nothing. As many requests as opening a dataset takes, which can be spared then.
    """
    import pyarrow.fs as pafs

    filesystem, path = pafs.FileSystem.from_uri(uri)
    info = filesystem.get_file_info(path)
    if info.type == pafs.FileType.NotFound:
        raise FileNotFoundError(uri)
    infos = [info]
    if info.type == pafs.FileType.Directory:
        found = filesystem.get_file_info(pafs.FileSelector(path, recursive=True))
        infos = [item for item in found if item.type == pafs.FileType.File and not _is_hidden(item.path, folder=path)]
    scheme = "" if isinstance(filesystem, pafs.LocalFileSystem) else uri.partition("://")[0] + "://"
    files = (
        SourceFile(canonical_path(scheme + item.path), int(item.size or 0), (item.mtime_ns or 0) / 1e9) for item in infos
    )
    return filesystem, infos, tuple(files)


def _files_at(path: str) -> tuple[SourceFile, ...]:
    if "://" in path and not path.startswith("file:"):
        if any(mark in path.partition("?")[0] for mark in _PATTERN):
            raise ValueError("only Spark expands patterns there")
        return remote_files(path)[2]
    return local_files(data_files(canonical_uri(path) if path.startswith("file:") else path))


def data_files(path: str) -> list[str]:
    """The files that a local path stands for: itself, those below a folder, or what a glob pattern matches."""
    found = expanded(path)
    files = [file for item in found for file in _below(item)]
    return files if found == [path] else [file for file in files if not Path(file).name.startswith(HIDDEN)]


def expanded(path: str) -> list[str]:
    """A local path, or what its glob pattern matches. SourceMissingError for nothing."""
    if Path(path).exists():
        return [path]
    # Path.glob refuses absolute patterns.
    found = sorted(glob.glob(path)) if any(mark in path for mark in "*?[") else []  # noqa: PTH207
    if not found:
        raise SourceMissingError(
            f"source path {path} does not exist", uri=path, cure="Pass a file, a folder or a glob pattern."
        )
    return found


def _below(path: str) -> list[str]:
    if not Path(path).is_dir():
        return [path]
    files = [str(file) for file in sorted(Path(path).rglob("*")) if file.is_file()]
    return [file for file in files if not _is_hidden(file, folder=path)]


def _is_hidden(path: str, *, folder: str) -> bool:
    return any(part.startswith(HIDDEN) for part in path[len(folder) :].split("/"))
