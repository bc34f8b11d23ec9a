"""The facts that `versions()` returns for each version, read from many manifests in sequence.

A version's fragments are those of the version before but for a few, and so are its bytes:

    version 7   0a.. 0a..  18 07 ..  12.. 12.. 12..
    version 8   0a.. 0a..  18 08 ..  12.. 12.. 12.. 12..      an append: one entry is checked
    version 9   0a.. 0a..  18 09 ..  12.. 12'. 12.. 12..      a delete: the second is, the rest is as it was

Only bytes that differ from the version before are walked over; all else is one comparison of memory.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

import numpy as np

from lance_core.errors import CorruptFileError
from lance_core.format.fragment import Fragment
from lance_core.format.manifest import Manifest
from lance_core.wire.fragments import decode_fragment, entry_end, field_end
from lance_core.wire.manifest_file import manifest_start, section_bytes
from lance_core.wire.table import decode_manifest_message

Counts = tuple[int, ...]
_FIELD, _FRAGMENT = 0x0A, 0x12


class VersionReader:
    """Reads manifest files in any order; neighbours in time are the fastest. `count` returns some numbers of one
    fragment."""

    def __init__(self, count: Callable[[Fragment], Counts], *, width: int) -> None:
        self._count = count
        self._nothing = (0,) * width
        self._known: dict[bytes, Counts] = {}
        self._head = b""
        self._region = b""
        self._bounds = [0]
        self._entries: list[Counts] = []
        self._total = self._nothing

    def read(self, data: bytes) -> tuple[Manifest, int, Counts]:
        """(manifest without schema and fragments, number of fragments, their counts summed) of a manifest file's bytes.

        Raises CorruptFileError, UnsupportedVersionError.
        """
        body = section_bytes(data, manifest_start(data, len(data)), what="manifest")
        after_schema = self._skip_schema(body)
        start = _find_fragments(body, after_schema)
        end = self._walk(body, start)
        rest = decode_manifest_message(body[after_schema:start] + body[end:]).manifest
        if len(rest.fragments):
            # A writer that puts other fields among the fragments.
            counts = [self._count(fragment) for fragment in decode_manifest_message(body).manifest.fragments]
            return rest, len(counts), tuple(map(sum, zip(self._nothing, *counts, strict=True)))
        return rest, len(self._entries), self._total

    def _skip_schema(self, body: bytes) -> int:
        """Where the fields of the schema end; they come first."""
        position = len(self._head) if body.startswith(self._head) else 0
        while position < len(body) and body[position] == _FIELD:
            position = entry_end(body, position)
        self._head = body[:position]
        return position

    def _walk(self, body: bytes, start: int) -> int:
        """Bring what is known up to this version's fragments; where they end."""
        if body.startswith(self._region, start):
            position = start + len(self._region)
        else:
            position = self._keep_common(body, start)
        while position < len(body) and body[position] == _FRAGMENT:
            position = self._look(body, position, start)
        self._region = body[start:position]
        return position

    def _look(self, body: bytes, position: int, start: int) -> int:
        end = entry_end(body, position)
        raw = body[position:end]
        if raw not in self._known:
            self._known[raw] = self._count(decode_fragment(_payload(raw)))
        self._add(self._known[raw], end - start)
        return end

    def _add(self, counts: Counts, bound: int) -> None:
        self._entries.append(counts)
        self._bounds.append(bound)
        self._total = tuple(map(int.__add__, self._total, counts))

    def _keep_common(self, body: bytes, start: int) -> int:
        """Forget the entries that are not there any more; the position behind those that are known to be."""
        before, bounds, entries = self._region, self._bounds, self._entries
        same = _common(before, body, start)
        kept = bisect_right(bounds, same) - 1
        self._bounds, self._entries = bounds[: kept + 1], entries[:kept]
        self._total = tuple(map(sum, zip(self._nothing, *self._entries, strict=True)))
        position = start + bounds[kept]
        if kept == len(entries):
            return position
        # One entry exchanged or taken out is the common case: what follows it is as it was.
        tail = before[bounds[kept + 1] :]
        for _ in range(2):
            if tail and body.startswith(tail, position):
                shift = position - start - bounds[kept + 1]
                for counts, bound in zip(entries[kept + 1 :], bounds[kept + 2 :], strict=True):
                    self._add(counts, bound + shift)
                return position + len(tail)
            if position >= len(body) or body[position] != _FRAGMENT:
                break
            position = self._look(body, position, start)
        return position


def _find_fragments(body: bytes, position: int) -> int:
    """Where the first fragment is, behind other fields; the end when there is none."""
    while position < len(body) and body[position] != _FRAGMENT:
        position = field_end(body, position)
    return position


def _payload(raw: bytes) -> bytes:
    """An entry without its tag and its size."""
    position = 1
    while position < len(raw) and raw[position] >= 0x80:
        position += 1
    return raw[position + 1 :]


def _common(before: bytes, body: bytes, start: int) -> int:
    """How many bytes agree."""
    length = min(len(before), len(body) - start)
    if length < 0:
        raise CorruptFileError("a manifest ends before its fragments begin")
    left, right = np.frombuffer(before, np.uint8, length), np.frombuffer(body, np.uint8, length, start)
    differing = left != right
    return int(np.argmax(differing)) if differing.any() else length
