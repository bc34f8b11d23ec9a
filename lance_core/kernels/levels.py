"""Walking entries whose length depends on what they hold: the rows of zipped pages with repetition.

::

    entry   | control word | length word? | value bytes? |      word = rep << bits_def | def

A fixed-width value follows every entry with def <= max_visible; a variable one (length word and bytes) only def == 0.
"""

from __future__ import annotations

from typing import Any

from lance_core.kernels import plain_levels
from lance_core.kernels.jit import kernel


@kernel("in:u1 in:i8 out:u2 out:u2 out:i8 out:i8 -> i8", plain=plain_levels.walk_zipped, weight=4)
def walk_zipped(data: Any, facts: Any, rep: Any, def_: Any, starts: Any, sizes: Any) -> Any:
    """Read entries until the bytes end.

    `facts`: bytes of a control word, bits_def, max_visible, bytes of a fixed value or -1, bytes of a length word. Fills
    rep, def, and where the value's bytes are (size -1: the entry owns no slot; 0: a slot without bytes). Returns the
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


@kernel(
    "in:u2 in:u2 in:i8 in:i8 in:i8 in:i8 in:i8 in:i8 in:i8 out:i8 out:i8 out:i8 out:i8 -> i8",
    plain=plain_levels.locate_rows,
)
def locate_rows(
    rep: Any,
    def_: Any,
    bounds: Any,
    before: Any,
    after: Any,
    counts: Any,
    begins: Any,
    ends: Any,
    facts: Any,
    first: Any,
    last: Any,
    first_slot: Any,
    last_slot: Any,
) -> Any:
    """Entries and slots of rows `begins[i]` to `ends[i]` (ascending) among the entries of some chunks.

    Chunk c has the entries `bounds[c]` to `bounds[c + 1]`, owns `counts[c]` slots, and `before[c]` rows have started before
    it, `after[c]` by its end. `facts`: the repetition level of a row, the largest definition level of an entry that owns a
    slot. Returns the number of slots, -1 - c for a chunk c whose levels say otherwise.
    """
    of_row, visible = facts[0], facts[1]
    low, high, slot = 0, 0, 0
    if bounds[len(bounds) - 1] > len(rep) or len(def_) != len(rep):
        return -1
    for chunk in range(len(counts)):
        entry, stop, number = bounds[chunk], bounds[chunk + 1], before[chunk] - 1
        # Loops without branches first: they run on whole vectors.
        opened, owned = 0, 0
        for index in range(entry, stop):
            opened += rep[index] == of_row
            owned += def_[index] <= visible
        if number + 1 + opened != after[chunk] or owned != counts[chunk]:
            return -1 - chunk
        # Rows that begin here, and those before the first of them: edges up to `number` are at its entry.
        final, here = number + opened, slot
        if stop > entry:
            number += rep[entry] == of_row
        while stop > entry:
            while low < len(begins) and begins[low] <= number:
                first[low], first_slot[low] = entry, here
                low += 1
            while high < len(ends) and ends[high] <= number:
                last[high], last_slot[high] = entry, here
                high += 1
            wanted = final + 1
            if low < len(begins):
                wanted = begins[low]
            if high < len(ends) and ends[high] < wanted:
                wanted = ends[high]
            if wanted > final:
                break
            from_entry = entry
            while number < wanted:
                entry += 1
                number += rep[entry] == of_row
            for index in range(from_entry, entry):
                here += def_[index] <= visible
        slot += owned
    while low < len(begins):
        first[low], first_slot[low] = len(rep), slot
        low += 1
    while high < len(ends):
        last[high], last_slot[high] = len(rep), slot
        high += 1
    return slot


@kernel("in:i8 in:u2 in:u2 in:i8 in:i8 out:i8 out:u2 out:u2 -> i8", plain=plain_levels.enter_lists)
def enter_lists(slot: Any, code: Any, rep: Any, offsets: Any, facts: Any, slots: Any, codes: Any, reps: Any) -> Any:
    """The way back: each entry that owns a list becomes the entries of its items, or one with the code of an empty list.

    `slot`: which list an entry owns; `code`: not 0 for an entry that owns none. `facts`: the code of an empty list, the
    repetition level of an item. Returns the number of entries, -1 - i for an entry i whose list is not in `offsets`.
    """
    empty, of_item = facts[0], facts[1]
    count = 0
    for index in range(len(slot)):
        own, level, size = slot[index], code[index], 1
        if level == 0:
            if own < 0 or own >= len(offsets) - 1:
                return -1 - index
            size = offsets[own + 1] - offsets[own]
            own = offsets[own]
            if size == 0:
                level, size = empty, 1
        if size < 1 or count + size > len(slots):
            return -1 - index
        slots[count], codes[count], reps[count] = own, level, rep[index]
        count += 1
        for item in range(1, size):
            slots[count], codes[count], reps[count] = own + item, level, of_item
            count += 1
    return count


@kernel("in:i8 in:u1 i8 out:u2 -> i8", plain=plain_levels.mark_nulls)
def mark_nulls(slot: Any, valid: Any, null: Any, code: Any) -> Any:
    """Give `null` to the entries of code 0 whose slot is not valid; -1 - i for an entry i whose slot is not in `valid`."""
    for index in range(len(slot)):
        if code[index] == 0:
            own = slot[index]
            if own < 0 or own >= len(valid):
                return -1 - index
            if valid[own] == 0:
                code[index] = null
    return len(slot)


@kernel("in:u2 in:u2 in:i8 out:i8 out:u2 out:u2 out:u2 -> i8", plain=plain_levels.split_lists)
def split_lists(rep: Any, def_: Any, facts: Any, offsets: Any, slot_defs: Any, next_rep: Any, next_def: Any) -> Any:
    """One list layer: where its lists begin among the items, their definition levels, and the entries that go on inwards.

    `facts`: the least repetition level of a list, that of an item, the largest definition level of an entry that goes on.
    `offsets` and `slot_defs` have one place more than there are lists, the last two one place for each entry and one more.
    Returns the number of entries that go on, -1 when there is too little room.
    """
    of_list, of_item, alive = facts[0], facts[1], facts[2]
    slots = 0
    for index in range(len(rep)):
        slots += rep[index] >= of_list
    if min(len(offsets), len(slot_defs)) < slots + 1 or min(len(next_rep), len(next_def), len(def_) + 1) < len(rep) + 1:
        return -1
    slots, items, kept = 0, 0, 0
    # Written always, counted when meant: lengths of lists are too random for branches.
    for index in range(len(rep)):
        level, defined = rep[index], def_[index]
        offsets[slots] = items
        slot_defs[slots] = defined
        slots += level >= of_list
        next_rep[kept] = level
        next_def[kept] = defined
        goes_on = defined <= alive
        kept += goes_on
        items += goes_on & (level >= of_item)
    offsets[slots] = items
    return kept
