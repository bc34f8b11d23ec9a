"""Pages that the official library wrote, taken apart with plain Python so that the codecs are judged alone."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa

from lance_core.codecs.blocks import Block, DictionaryBlock, FixedBlock, Pieces, VariableBlock
from lance_core.codecs.registry import CODECS
from lance_core.format.layout import FullZipLayout, MiniBlockLayout, Page
from lance_core.wire.columns import decode_column


@dataclass
class OfficialPage:
    layout: object
    buffers: list[bytes]
    num_rows: int


def write_official(path: Path, array: pa.Array, *, version: str = "2.2", metadata: dict | None = None) -> list[OfficialPage]:
    """Write one column and return the pages of its file columns, in order."""
    field = pa.field("c", array.type, metadata=metadata)
    table = pa.table([array], schema=pa.schema([field]))
    lance.write_dataset(table, path, data_storage_version=version)
    (file,) = (path / "data").glob("*.lance")
    return read_pages(file.read_bytes())


def read_pages(data: bytes) -> list[OfficialPage]:
    """All pages of all columns."""
    _, cmo, _, _, num_columns, _, _ = struct.unpack("<QQQIIHH", data[-40:-4])
    pages = []
    for column in range(num_columns):
        position, size = struct.unpack_from("<QQ", data, cmo + 16 * column)
        for page in decode_column(data[position : position + size]).pages:
            pages.append(_page(data, page))
    return pages


def _page(data: bytes, page: Page) -> OfficialPage:
    return OfficialPage(page.layout, [data[r.start : r.end] for r in page.buffers], page.num_rows)


@dataclass
class Chunks:
    counts: np.ndarray
    num_levels: np.ndarray
    rep: Pieces | None
    def_: Pieces | None
    values: tuple[Pieces, ...]


def cut_mini_block(page: OfficialPage) -> Chunks:
    """Chunk table and headers, one chunk at a time."""
    layout = page.layout
    assert isinstance(layout, MiniBlockLayout)
    large = layout.has_large_chunk
    words = np.frombuffer(page.buffers[0], "<u4" if large else "<u2").tolist()
    data = np.frombuffer(page.buffers[1], np.uint8)
    raw, at, counts, num_levels = page.buffers[1], 0, [], []
    spans: list[list[tuple[int, int]]] = []
    for number, word in enumerate(words):
        count = layout.num_items - sum(counts) if number == len(words) - 1 else 1 << (word & 15)
        head = at
        fields = [struct.unpack_from("<H", raw, head)[0]]
        head += 2
        for present in (layout.rep_compression, layout.def_compression):
            if present is not None:
                fields.append(struct.unpack_from("<H", raw, head)[0])
                head += 2
        for _ in range(layout.num_buffers):
            fields.append(struct.unpack_from("<I" if large else "<H", raw, head)[0])
            head += 4 if large else 2
        head = (head + 7) & ~7
        chunk = []
        for size in fields[1:]:
            chunk.append((head, size))
            head = (head + size + 7) & ~7
        spans.append(chunk)
        counts.append(count)
        num_levels.append(fields[0])
        at += ((word >> 4) + 1) * 8
        assert head == at
    columns = [Pieces(data, *(np.array(part, np.int64) for part in zip(*column))) for column in zip(*spans)]
    rep = columns.pop(0) if layout.rep_compression is not None else None
    def_ = columns.pop(0) if layout.def_compression is not None else None
    return Chunks(np.array(counts, np.int64), np.array(num_levels, np.int64), rep, def_, tuple(columns))


def decode_mini_block(page: OfficialPage) -> tuple[Block, np.ndarray | None, np.ndarray | None]:
    """(values, repetition levels, definition levels) of a mini-block page."""
    layout = page.layout
    chunks = cut_mini_block(page)
    values = CODECS.decode(layout.value_compression, chunks.values, chunks.counts)
    levels = []
    for encoding, pieces in ((layout.rep_compression, chunks.rep), (layout.def_compression, chunks.def_)):
        levels.append(
            None if encoding is None else CODECS.decode_block(encoding, pieces, chunks.num_levels).data.view(np.uint16)
        )
    if layout.dictionary is not None:
        piece = Pieces.whole(np.frombuffer(page.buffers[2], np.uint8))
        items = CODECS.decode_block(layout.dictionary, piece, np.array([layout.num_dictionary_items]))
        values = DictionaryBlock(values, items)
    return values, levels[0], levels[1]


def decode_full_zip(page: OfficialPage) -> tuple[Block, np.ndarray]:
    """(values of visible entries, definition levels) of a full-zip page without repetition."""
    layout = page.layout
    assert isinstance(layout, FullZipLayout) and layout.bits_rep == 0
    data, at, levels, payloads = page.buffers[0], 0, [], []
    width = 0 if layout.bits_def == 0 else 1 if layout.bits_def <= 8 else 2
    for _ in range(layout.num_items):
        level = int.from_bytes(data[at : at + width], "little")
        at += width
        levels.append(level)
        if layout.bits_per_value is not None:
            size = layout.bits_per_value // 8
        elif level == 0:
            size = int.from_bytes(data[at : at + layout.bits_per_offset // 8], "little")
            at += layout.bits_per_offset // 8
        else:
            size = 0
        payloads.append(data[at : at + size])
        at += size
    assert at == len(data)
    joined = np.frombuffer(b"".join(payloads), np.uint8)
    if layout.bits_per_value is not None:
        payload: FixedBlock | VariableBlock = FixedBlock(layout.bits_per_value, joined, len(payloads))
    else:
        offsets = np.cumsum([0, *map(len, payloads)]).astype(np.int32 if layout.bits_per_offset == 32 else np.int64)
        payload = VariableBlock(offsets, joined)
    return CODECS.decode_values(layout.value_compression, payload), np.array(levels)
