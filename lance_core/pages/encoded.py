"""What the page writers give back: a description and buffers. The file aligns the buffers and says where they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lance_core.arrays import Bytes
from lance_core.fetch import Buffer
from lance_core.format.encoding20 import ArrayEncoding
from lance_core.format.layout import PageLayout, SparseLayout


@dataclass(frozen=True, slots=True, eq=False)
class EncodedPage:
    """One page, ready for a file: `buffers` in the order the layout wants them, `num_rows` for `Page.num_rows`.

    `layout` is an array encoding in 2.0 files, a page layout in newer ones.
    """

    layout: PageLayout | SparseLayout | ArrayEncoding
    buffers: tuple[Buffer, ...]
    num_rows: int


def as_buffer(data: Bytes) -> Buffer:
    """An array's bytes without a copy."""
    return np.ascontiguousarray(data).data
