"""The kernels of `levels` with numpy alone, for arrays so small that the compiler would cost more (see `plain`)."""

from __future__ import annotations

from typing import Any

import numpy as np


def locate_rows(
    rep: Any, def_: Any, bounds: Any, before: Any, after: Any, counts: Any, begins: Any, ends: Any, facts: Any,
    first: Any, last: Any, first_slot: Any, last_slot: Any,
) -> int:  # fmt: skip
    """`levels.locate_rows`: the entries where a row may begin, and a search in them."""
    of_row, visible = facts.tolist()
    if bounds[-1] > len(rep) or len(def_) != len(rep):
        return -1
    low, high = int(bounds[0]), int(bounds[-1])
    opens, owns = rep[low:high] == of_row, def_[low:high] <= visible
    begun, owned = np.append(0, np.cumsum(opens)), np.append(0, np.cumsum(owns))
    edges = bounds - low
    bad = before + np.diff(begun[edges]) != after
    bad |= np.diff(owned[edges]) != counts
    if bad.any():
        return -1 - int(np.argmax(bad))
    # Candidates: entries that begin a row, and the first of each chunk; numbers ascend unless rows are counted twice.
    is_candidate = opens.copy()
    is_candidate[edges[:-1][np.diff(edges) > 0]] = True
    candidates = np.flatnonzero(is_candidate)
    chunk = np.searchsorted(edges, candidates, "right") - 1
    numbers = np.maximum.accumulate(before[chunk] - 1 + begun[candidates + 1] - begun[edges[chunk]])
    entries, slots = np.append(candidates + low, len(rep)), np.append(owned[candidates], owned[-1])
    for wanted, entry, slot in ((begins, first, first_slot), (ends, last, last_slot)):
        found = np.searchsorted(numbers, wanted, "left")
        entry[:], slot[:] = entries[found], slots[found]
    return int(owned[-1])


def enter_lists(slot: Any, code: Any, rep: Any, offsets: Any, facts: Any, slots: Any, codes: Any, reps: Any) -> int:
    """`levels.enter_lists`: sizes first, then every entry by its place."""
    empty, of_item = facts.tolist()
    owns = code == 0
    bad = owns & ((slot < 0) | (slot >= len(offsets) - 1))
    own = np.where(owns & ~bad, slot, 0)
    begins, sizes = np.zeros(len(slot), np.int64), np.ones(len(slot), np.int64)
    good = owns & ~bad
    begins[good] = offsets[own[good]]
    sizes[good] = offsets[own[good] + 1] - begins[good]
    is_empty = good & (sizes == 0)
    bad |= sizes < 0
    sizes = np.where(is_empty | bad, 1, sizes)
    ends = np.cumsum(sizes)
    bad |= ends > len(slots)
    if bad.any():
        return -1 - int(np.argmax(bad))
    count = int(ends[-1]) if len(ends) else 0
    starts = ends - sizes
    within = np.arange(count, dtype=np.int64) - np.repeat(starts, sizes)
    slots[:count] = np.repeat(np.where(owns, begins, slot), sizes) + within
    codes[:count] = np.repeat(np.where(is_empty, empty, code), sizes)
    reps[:count] = of_item
    reps[starts] = rep
    return count


def mark_nulls(slot: Any, valid: Any, null: Any, code: Any) -> int:
    """`levels.mark_nulls`."""
    owns = code == 0
    bad = owns & ((slot < 0) | (slot >= len(valid)))
    if bad.any():
        return -1 - int(np.argmax(bad))
    chosen = np.flatnonzero(owns)
    code[chosen[valid[slot[chosen]] == 0]] = null
    return len(slot)


def split_lists(rep: Any, def_: Any, facts: Any, offsets: Any, slot_defs: Any, next_rep: Any, next_def: Any) -> int:
    """`levels.split_lists`."""
    of_list, of_item, alive = facts.tolist()
    opens = rep >= of_list
    slots = int(np.count_nonzero(opens))
    if min(len(offsets), len(slot_defs)) < slots + 1 or min(len(next_rep), len(next_def), len(def_) + 1) < len(rep) + 1:
        return -1
    goes_on = def_[: len(rep)] <= alive
    items = np.append(0, np.cumsum(goes_on & (rep >= of_item)))
    places = np.flatnonzero(opens)
    offsets[:slots], offsets[slots] = items[places], items[-1]
    slot_defs[:slots] = def_[places]
    kept = int(np.count_nonzero(goes_on))
    next_rep[:kept], next_def[:kept] = rep[goes_on], def_[: len(rep)][goes_on]
    return kept


def walk_zipped(data: Any, facts: Any, rep: Any, def_: Any, starts: Any, sizes: Any) -> int:
    """`levels.walk_zipped`: entry by entry."""
    word_size, bits_def, max_visible, value_size, length_size = facts.tolist()
    whole, room = data.tobytes(), len(rep)
    at, count, end = 0, 0, len(whole)
    while at < end:
        if count >= room:
            return -2
        if at + word_size > end:
            return -1
        word = int.from_bytes(whole[at : at + word_size], "little")
        at += word_size
        level = word & ((1 << bits_def) - 1)
        size = -1
        if level <= max_visible:
            size = 0
            if value_size >= 0:
                size = value_size
            elif level == 0:
                if at + length_size > end:
                    return -1
                size = int.from_bytes(whole[at : at + length_size], "little")
                at += length_size
            if size > end - at:
                return -1
        rep[count], def_[count] = (word >> bits_def) & 0xFFFF, level & 0xFFFF
        starts[count], sizes[count] = at, size
        at += max(size, 0)
        count += 1
    return count
