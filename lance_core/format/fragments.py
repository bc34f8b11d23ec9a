"""The fragments of a manifest as a sequence that decodes entries lazily.

A table may have 100,000 fragments while a commit touches two of them. Entries that came from bytes stay bytes; editing makes
a new list that shares everything it does not change, and writing hands untouched entries on as they were read.

    FragmentList  raw      [b"\\x12..", b"\\x08\\x01..", None    ]
                  decoded  [None,      Fragment(id=1),  Fragment(id=2)]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Protocol, TypeVar, overload

from lance_core.format.fragment import Fragment
from lance_core.format.version import FileVersion, version_of_numbers

T = TypeVar("T")


_FEW = 4
"""So many fragments are sooner searched one by one than by a walk over all ids."""


class FragmentDecoder(Protocol):
    """What a list needs to know about bytes; lives in `lance_core.wire`."""

    def decode(self, raw: bytes) -> Fragment:
        """The fragment that `raw` describes."""

    def peek_ids(self, raws: Sequence[bytes]) -> Sequence[int]:
        """The ids of many, without decoding the rest."""

    def peek_num_rows(self, raws: Sequence[bytes]) -> Sequence[int]:
        """The visible rows of each of many, without decoding the rest."""

    def peek_row_ids(self, raws: Sequence[bytes]) -> bool:
        """Whether all of many have stable row ids, without decoding the rest."""

    def peek_versions(self, raws: Sequence[bytes]) -> frozenset[tuple[int, int]]:
        """The (major, minor) version numbers of all data files of many, without decoding the rest."""

    def peek_paths(self, raws: Sequence[bytes]) -> Sequence[str] | None:
        """The path of the data file of each of many new ones, without decoding the rest; None where one is not so plain."""

    def number(self, raws: Sequence[bytes], first: int) -> tuple[Sequence[bytes], Sequence[int]] | None:
        """Many new ones with ids from `first` on, and one place for each way to name columns; None unless all are plain."""

    def peek_any(self, raws: Sequence[bytes], name: str) -> bool:
        """Whether one of many has a `"deletion_file"` or `"overlays"`, without decoding the rest."""


class FragmentList(Sequence[Fragment]):
    """An immutable sequence of fragments, each decoded on first use."""

    __slots__ = ("_decoded", "_decoder", "_file_versions", "_ids", "_raw", "_row_counts")

    def __init__(
        self,
        decoded: list[Fragment | None],
        raw: list[bytes | None],
        decoder: FragmentDecoder | None = None,
        ids: Sequence[int] | None = None,
    ) -> None:
        self._decoded = decoded
        self._raw = raw
        self._decoder = decoder
        self._ids = ids
        self._row_counts: Sequence[int] | None = None
        self._file_versions: frozenset[FileVersion] | None = None

    @classmethod
    def of(cls, fragments: Iterable[Fragment]) -> FragmentList:
        """`fragments` itself when it is a list of this kind, else a list around them."""
        if isinstance(fragments, FragmentList):
            return fragments
        decoded: list[Fragment | None] = list(fragments)
        return cls(decoded, [None] * len(decoded))

    @classmethod
    def of_bytes(cls, raw: Sequence[bytes], decoder: FragmentDecoder) -> FragmentList:
        """A list of serialized fragments."""
        return cls([None] * len(raw), list(raw), decoder)

    def __len__(self) -> int:
        return len(self._decoded)

    @overload
    def __getitem__(self, index: int) -> Fragment: ...
    @overload
    def __getitem__(self, index: slice) -> FragmentList: ...
    def __getitem__(self, index: int | slice) -> Fragment | FragmentList:
        if isinstance(index, slice):
            return FragmentList(self._decoded[index], self._raw[index], self._decoder)
        found = self._decoded[index]
        if found is None:
            found = self._decode(self._raw[index])
            self._decoded[index] = found
        return found

    def __iter__(self) -> Iterator[Fragment]:
        for index in range(len(self._decoded)):
            yield self[index]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str | bytes):
            return NotImplemented
        return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"FragmentList({len(self)} fragments)"

    def _decode(self, raw: bytes | None) -> Fragment:
        assert raw is not None
        assert self._decoder is not None
        return self._decoder.decode(raw)

    @property
    def ids(self) -> Sequence[int]:
        """Fragment ids in the order of the list."""
        if self._ids is None:
            raws = self._undecoded()
            peeked = self._decoder.peek_ids(raws) if raws and self._decoder is not None else ()
            rest = iter(peeked)
            is_all = len(raws) == len(self._decoded)
            self._ids = peeked if is_all else [next(rest) if found is None else found.id for found in self._decoded]
        return self._ids

    @property
    def num_rows(self) -> int:
        """Visible rows of all fragments."""
        return sum(self.row_counts)

    @property
    def row_counts(self) -> Sequence[int]:
        """Visible rows of each fragment, in the order of the list."""
        if self._row_counts is None:
            raws = self._undecoded()
            peeked = self._decoder.peek_num_rows(raws) if raws and self._decoder is not None else ()
            rest = iter(peeked)
            is_all = len(raws) == len(self._decoded)
            self._row_counts = peeked if is_all else [next(rest) if it is None else it.num_rows for it in self._decoded]
        return self._row_counts

    @property
    def all_have_row_ids(self) -> bool:
        """Whether every fragment has stable row ids."""
        if not all(item.row_ids is not None for item in self._decoded if item is not None):
            return False
        raws = self._undecoded()
        return not raws or self._decoder is None or self._decoder.peek_row_ids(raws)

    @property
    def file_versions(self) -> frozenset[FileVersion]:
        """The versions of all data files."""
        if self._file_versions is None:
            found = {file.version for item in self._decoded if item is not None for file in item.files}
            raws = self._undecoded()
            peeked = self._decoder.peek_versions(raws) if raws and self._decoder is not None else ()
            self._file_versions = frozenset(found | {version_of_numbers(*numbers) for numbers in peeked})
        return self._file_versions

    @property
    def rows_by_id(self) -> dict[int, int]:
        """Visible rows of each fragment, by its id."""
        return dict(zip(self.ids, self.row_counts, strict=True))

    def each(self, look: Callable[[Fragment], T], known: dict[bytes, T]) -> Iterator[T]:
        """`look(fragment)` of every fragment; equal bytes are checked once.

        `known` remembers the results by bytes: the lists of many versions share most fragments, and so their results.
        """
        for found, raw in zip(self._decoded, self._raw, strict=True):
            if raw is None:
                assert found is not None
                yield look(found)
                continue
            if raw not in known:
                known[raw] = look(self._decode(raw) if found is None else found)
            yield known[raw]

    def any_with(self, name: str) -> bool:
        """Whether any fragment has a `"deletion_file"` or `"overlays"`."""
        if any(found is not None and getattr(found, name) for found in self._decoded):
            return True
        raws = self._undecoded()
        return bool(raws) and self._decoder is not None and self._decoder.peek_any(raws, name)

    def numbered(self, first: int) -> tuple[FragmentList, Sequence[Fragment]] | None:
        """New fragments with ids from `first` on, and one of each kind of them to check; None unless all are plain bytes."""
        raws = self._all_bytes()
        made = self._decoder.number(raws, first) if self._decoder is not None and raws else None
        if made is None:
            return None
        ids = range(first, first + len(raws))
        found = FragmentList([None] * len(raws), list(made[0]), self._decoder, ids)
        return found, [found._decode(made[0][place]) for place in made[1]]

    @property
    def plain_paths(self) -> Sequence[str] | None:
        """The path of the one data file of each new fragment, below its folder; None unless all are plain bytes."""
        raws = self._all_bytes()
        return self._decoder.peek_paths(raws) if self._decoder is not None and raws else None

    def _all_bytes(self) -> list[bytes]:
        """All entries as they were read; [] when some were not."""
        raws = [raw for raw in self._raw if raw is not None]
        return raws if len(raws) == len(self) else []

    def _undecoded(self) -> list[bytes]:
        if self._decoded.count(None) == len(self._decoded):
            return [raw for raw in self._raw if raw is not None]
        return [raw for found, raw in zip(self._decoded, self._raw, strict=True) if found is None and raw is not None]

    def to_bytes(self, encode: Callable[[Fragment], bytes]) -> list[bytes]:
        """Each entry as the bytes it came from, else encoded: what a writer needs."""
        entries = zip(self._decoded, self._raw, strict=True)
        return [encode(found) if raw is None and found is not None else raw or b"" for found, raw in entries]

    def get(self, fragment_id: int) -> Fragment | None:
        """The fragment with that id, or None."""
        found = self._searched(fragment_id) if self._ids is None else None
        if found is not None:
            return found
        try:
            place = self.ids.index(fragment_id)
        except ValueError:
            return None
        return self[place]

    def _searched(self, fragment_id: int) -> Fragment | None:
        """A look among few fragments, as if ids ascended: they nearly always do, though nothing says that they must."""
        low, high = 0, min(len(self), fragment_id + 1)
        while low < high:
            middle = (low + high) // 2
            found = self[middle]
            if found.id == fragment_id:
                return found
            low, high = (middle + 1, high) if found.id < fragment_id else (low, middle)
        return None

    def pick(self, fragment_ids: Set[int]) -> dict[int, Fragment]:
        """The fragments with those ids, keyed by id; ids that are not here are left out."""
        if len(fragment_ids) <= _FEW:
            few = ((number, self.get(number)) for number in sorted(fragment_ids))
            return {number: found for number, found in few if found is not None}
        return {found: self[index] for index, found in enumerate(self.ids) if found in fragment_ids}

    def edited(
        self,
        *,
        replaced: Mapping[int, Fragment] | None = None,
        removed: Set[int] = frozenset(),
        appended: Sequence[Fragment] = (),
    ) -> FragmentList:
        """A list with some fragments exchanged (by id), some taken out, some added, in ascending order of id."""
        changes = replaced or {}
        decoded, raw, ids = list(self._decoded), list(self._raw), list(self.ids)
        if changes:
            for index, fragment_id in enumerate(ids):
                if fragment_id in changes:
                    decoded[index], raw[index] = changes[fragment_id], None
        if removed:
            keep = [index for index, fragment_id in enumerate(ids) if fragment_id not in removed]
            decoded, raw, ids = [decoded[i] for i in keep], [raw[i] for i in keep], [ids[i] for i in keep]
        more = FragmentList.of(appended)
        decoded += more._decoded
        raw += more._raw
        ids += more.ids
        if ids != sorted(ids):
            order = sorted(range(len(ids)), key=ids.__getitem__)
            decoded, raw, ids = [decoded[i] for i in order], [raw[i] for i in order], [ids[i] for i in order]
        return FragmentList(decoded, raw, self._decoder or more._decoder, ids)
