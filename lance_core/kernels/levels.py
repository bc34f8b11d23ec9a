"""Walking entries whose length depends on what they hold: the rows of zipped pages with repetition.

::

    entry   | control word | length word? | value bytes? |      word = rep << bits_def | def

A fixed-width value follows every entry with def <= max_visible; a variable one (length word and bytes) only def == 0.
"""

from __future__ import annotations

from typing import Any

from lance_core.kernels.jit import kernel


@kernel("in:u1 in:i8 out:u2 out:u2 out:i8 out:i8 -> i8")
def walk_zipped(data: Any, facts: Any, rep: Any, def_: Any, starts: Any, sizes: Any) -> Any:
    """Read entries until the bytes end.

    `facts`: bytes of a control word, bits_def, max_visible, bytes of a fixed value or -1, bytes of a length word. Fills
    rep, def, and where the value's bytes lie (size -1: the entry owns no slot; 0: a slot without bytes). Returns the
    number of entries, -1 when an entry leaves the bytes, -2 when there are more entries than room.
    """
    word_size, bits_def, max_visible, value_size, length_size = facts[0], facts[1], facts[2], facts[3], facts[4]
    at, count, end = 0, 0, len(data)
    while at < end:
        if count >= len(rep):
            return -2
        if at + word_size > end:
            return -1
        word = 0
        for index in range(word_size):
            word |= int(data[at + index]) << (8 * index)
        at += word_size
        level = word & ((1 << bits_def) - 1)
        rep[count], def_[count] = (word >> bits_def) & 0xFFFF, level & 0xFFFF
        size = -1
        if level <= max_visible:
            size = 0
            if value_size >= 0:
                size = value_size
            elif level == 0:
                if at + length_size > end:
                    return -1
                for index in range(length_size):
                    size |= int(data[at + index]) << (8 * index)
                at += length_size
            if size < 0 or size > end - at:
                return -1
        starts[count], sizes[count] = at, size
        at += max(size, 0)
        count += 1
    return count
