"""Navigable small world graphs (HNSW): build one over rows, and walk it towards a query.

::

    level 2         4                 few nodes, long steps: the walk starts here
    level 1         4 - 9 - 1
    level 0   0 - 1 - 2 - ... - 9     every row, up to 2 m neighbours each

A walk keeps the best `ef` nodes seen in order of distance and always looks next at the neighbours of the best one that
was not visited yet; it ends when there is none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lance_core.kernels.jit import kernel


@kernel("in:f4 i8 i8 in:i8 in:i8 i8 i8 out:i4 out:i4 out:f4 -> i8", reorders=True)
def build_graph(
    rows: Any, dim: Any, is_dot: Any, levels: Any, slots: Any, m: Any, ef: Any, counts: Any, neighbours: Any, apart: Any
) -> Any:
    """Insert the rows one by one; returns the entry node, -1 when the arrays do not fit, -2 for no rows.

    Node i has slots `slots[i]` to `slots[i] + levels[i]`, one for each of its levels; a slot holds `2 * m` neighbours with
    their distances, the first `counts[slot]` of them in use, nearest first.
    """
    num = len(levels)
    cap = 2 * m
    if num == 0:
        return -2
    if len(rows) != num * dim or len(slots) != num or len(neighbours) != len(counts) * cap or len(apart) != len(neighbours):
        return -1
    stamps = np.zeros(num, np.int32)
    stamp = 0
    pool, pool_far = np.empty(ef + 1, np.int32), np.empty(ef + 1, np.float32)
    looked = np.zeros(ef + 1, np.uint8)
    chosen, chosen_far = np.empty(cap + 2, np.int32), np.empty(cap + 2, np.float32)
    few, few_far = np.empty(cap + 2, np.int32), np.empty(cap + 2, np.float32)
    entry = 0
    for node in range(1, num):
        first = node * dim
        top = levels[entry]
        start, start_far = entry, np.float32(0)
        for axis in range(dim):
            if is_dot:
                start_far -= rows[first + axis] * rows[start * dim + axis]
            else:
                step = rows[first + axis] - rows[start * dim + axis]
                start_far += step * step
        filled = 1
        pool[0], pool_far[0] = start, start_far
        for down in range(top + 1):
            level = top - down
            width = ef if level <= levels[node] else 1
            # What the level above found is where this one starts.
            filled = min(filled, width)
            stamp += 1
            for at in range(filled):
                looked[at] = 0
                stamps[pool[at]] = stamp
            at = 0
            while at < filled:
                if looked[at]:
                    at += 1
                    continue
                looked[at] = 1
                slot = slots[pool[at]] + level
                lowest = filled
                for edge in range(counts[slot]):
                    other = neighbours[slot * cap + edge]
                    if stamps[other] == stamp:
                        continue
                    stamps[other] = stamp
                    far = np.float32(0)
                    for axis in range(dim):
                        if is_dot:
                            far -= rows[first + axis] * rows[other * dim + axis]
                        else:
                            step = rows[first + axis] - rows[other * dim + axis]
                            far += step * step
                    if filled == width and far >= pool_far[filled - 1]:
                        continue
                    place = filled if filled < width else width - 1
                    while place > 0 and pool_far[place - 1] > far:
                        pool[place], pool_far[place] = pool[place - 1], pool_far[place - 1]
                        looked[place] = looked[place - 1]
                        place -= 1
                    pool[place], pool_far[place], looked[place] = other, far, 0
                    if filled < width:
                        filled += 1
                    lowest = min(lowest, place)
                at = lowest if lowest <= at else at + 1
            if level > levels[node]:
                continue
            # Neighbours that are nearer to the node than to any neighbour chosen before.
            picked = 0
            for at in range(filled):
                if picked == m:
                    break
                other = pool[at]
                good = True
                for before in range(picked):
                    far = np.float32(0)
                    for axis in range(dim):
                        if is_dot:
                            far -= rows[other * dim + axis] * rows[chosen[before] * dim + axis]
                        else:
                            step = rows[other * dim + axis] - rows[chosen[before] * dim + axis]
                            far += step * step
                    if far < pool_far[at]:
                        good = False
                        break
                if good:
                    chosen[picked], chosen_far[picked] = other, pool_far[at]
                    picked += 1
            for at in range(filled):
                if picked >= m:
                    break
                is_new = True
                for before in range(picked):
                    if chosen[before] == pool[at]:
                        is_new = False
                        break
                if is_new:
                    place = picked
                    while place > 0 and chosen_far[place - 1] > pool_far[at]:
                        chosen[place], chosen_far[place] = chosen[place - 1], chosen_far[place - 1]
                        place -= 1
                    chosen[place], chosen_far[place] = pool[at], pool_far[at]
                    picked += 1
            mine = slots[node] + level
            counts[mine] = picked
            for at in range(picked):
                neighbours[mine * cap + at], apart[mine * cap + at] = chosen[at], chosen_far[at]
            # The way back, cut to what a node may hold.
            most = cap if level == 0 else m
            for at in range(picked):
                slot = slots[chosen[at]] + level
                base = slot * cap
                size = counts[slot]
                for edge in range(size):
                    few[edge], few_far[edge] = neighbours[base + edge], apart[base + edge]
                place = size
                while place > 0 and few_far[place - 1] > chosen_far[at]:
                    few[place], few_far[place] = few[place - 1], few_far[place - 1]
                    place -= 1
                few[place], few_far[place] = node, chosen_far[at]
                size += 1
                if size > most:
                    kept = 0
                    for edge in range(size):
                        good = kept < most
                        if good:
                            for before in range(kept):
                                far = np.float32(0)
                                one = few[edge] * dim
                                two = neighbours[base + before] * dim
                                for axis in range(dim):
                                    if is_dot:
                                        far -= rows[one + axis] * rows[two + axis]
                                    else:
                                        step = rows[one + axis] - rows[two + axis]
                                        far += step * step
                                if far < few_far[edge]:
                                    good = False
                                    break
                        if good:
                            neighbours[base + kept], apart[base + kept] = few[edge], few_far[edge]
                            kept += 1
                    counts[slot] = kept
                else:
                    for edge in range(size):
                        neighbours[base + edge], apart[base + edge] = few[edge], few_far[edge]
                    counts[slot] = size
        if levels[node] > levels[entry]:
            entry = node
    return entry


@kernel("in:f4 i8 i8 in:i8 i8 i8 out:i4 out:i4 out:f4 -> i8", reorders=True)
def connect_graph(
    rows: Any, dim: Any, is_dot: Any, slots: Any, m: Any, entry: Any, counts: Any, neighbours: Any, apart: Any
) -> Any:
    """Give nodes of level 0 that no path from the entry leads to an edge from a near one that has; returns how many stay.

    Cutting edges leaves such nodes, many where products are the distance: everybody's edges go to the few longest rows.
    """
    num = len(slots)
    cap = 2 * m
    seen = np.zeros(num, np.uint8)
    queue = np.empty(num, np.int32)
    seen[entry], queue[0], filled, at = 1, entry, 1, 0
    for node in range(-1, num):
        if node >= 0:
            if seen[node]:
                continue
            mine = slots[node] * cap
            from_node, far = -1, np.float32(0)
            for edge in range(counts[slots[node]]):
                other = neighbours[mine + edge]
                if seen[other] and counts[slots[other]] < cap:
                    from_node, far = other, apart[mine + edge]
                    break
            if from_node < 0:
                # Its neighbours are as lost as it is, or have no room: whoever is nearest and has.
                for other in range(num):
                    if not seen[other] or counts[slots[other]] >= cap:
                        continue
                    step_far = np.float32(0)
                    for axis in range(dim):
                        if is_dot:
                            step_far -= rows[node * dim + axis] * rows[other * dim + axis]
                        else:
                            step = rows[node * dim + axis] - rows[other * dim + axis]
                            step_far += step * step
                    if from_node < 0 or step_far < far:
                        from_node, far = other, step_far
            if from_node < 0:
                return num - filled
            slot = slots[from_node]
            base = slot * cap
            place = counts[slot]
            counts[slot] += 1
            while place > 0 and apart[base + place - 1] > far:
                neighbours[base + place], apart[base + place] = neighbours[base + place - 1], apart[base + place - 1]
                place -= 1
            neighbours[base + place], apart[base + place] = node, far
            seen[node], queue[filled] = 1, node
            filled += 1
        while at < filled:
            slot = slots[queue[at]]
            at += 1
            for edge in range(counts[slot]):
                other = neighbours[slot * cap + edge]
                if not seen[other]:
                    seen[other], queue[filled] = 1, other
                    filled += 1
    return num - filled


@kernel("in:f4 in:f4 in:u1 i8 i8 i8 f4 f4 in:i8 in:u4 in:i4 i8 i8 i8 in:u1 out:i4 out:f4 -> i8", reorders=True)
def search_graph(
    query: Any,
    rows: Any,
    codes: Any,
    num: Any,
    width: Any,
    mode: Any,
    low: Any,
    scale: Any,
    offsets: Any,
    neighbours: Any,
    places: Any,
    num_levels: Any,
    entry: Any,
    ef: Any,
    kept: Any,
    out: Any,
    out_far: Any,
) -> Any:
    """Walk from the entry; returns how many of `out` were filled, nearest first; -1 when the arrays do not fit.

    `mode`: 0 squared distance to `rows`, 1 minus the dot product; 2, 3 the same for bytes that stand for low + scale * byte;
    4, 5 sums of the table `query` for turned product codes of 8, 4 bits. Row r of the graph's table has the neighbours
    `offsets[r]` to `offsets[r + 1]`; level 0 is rows 0 to num, `places[(level - 1) * num + node]` is a node's row above.
    """
    if num <= 0 or ef <= 0 or entry < 0 or entry >= num or len(places) != (num_levels - 1) * num or len(out) < ef:
        return -1
    if mode < 2 and len(rows) != num * width:
        return -1
    if mode >= 2 and len(codes) != num * width:
        return -1
    if len(kept) != 0 and len(kept) != num:
        return -1
    seen = np.zeros(num, np.int32)
    pool, far_of = np.empty(ef + 1, np.int32), np.empty(ef + 1, np.float32)
    looked = np.zeros(ef + 1, np.uint8)
    fresh = np.empty(len(neighbours) + 1 if len(neighbours) < 4096 else 4096, np.int32)
    filled = 0
    for down in range(num_levels):
        level = num_levels - 1 - down
        most = ef if level == 0 else 1
        stamp = down + 1
        filled = min(filled, most)
        for old in range(filled):
            looked[old] = 0
            seen[pool[old]] = stamp
        size = 0
        if down == 0:
            fresh[0] = entry
            seen[entry] = stamp
            size = 1
        while True:
            for number in range(size):
                other = np.int64(fresh[number])
                far = np.float32(0)
                if mode == 0:
                    for axis in range(width):
                        step = query[axis] - rows[other * width + axis]
                        far += step * step
                elif mode == 1:
                    for axis in range(width):
                        far -= query[axis] * rows[other * width + axis]
                elif mode == 2:
                    for axis in range(width):
                        step = query[axis] - (low + scale * codes[other * width + axis])
                        far += step * step
                elif mode == 3:
                    for axis in range(width):
                        far -= query[axis] * (low + scale * codes[other * width + axis])
                elif mode == 4:
                    for part in range(width):
                        far += query[part * 256 + codes[part * num + other]]
                else:
                    for part in range(width):
                        code = codes[part * num + other]
                        far += query[part * 32 + (code & 15)] + query[part * 32 + 16 + (code >> 4)]
                if filled == most and far >= far_of[filled - 1]:
                    continue
                place = filled if filled < most else most - 1
                while place > 0 and far_of[place - 1] > far:
                    pool[place], far_of[place], looked[place] = pool[place - 1], far_of[place - 1], looked[place - 1]
                    place -= 1
                pool[place], far_of[place], looked[place] = other, far, 0
                if filled < most:
                    filled += 1
            at = 0
            while at < filled and looked[at]:
                at += 1
            if at >= filled:
                break
            looked[at] = 1
            row = np.int64(pool[at])
            if level > 0:
                row = np.int64(places[(level - 1) * num + row])
            size = 0
            if row >= 0:
                for edge in range(offsets[row], offsets[row + 1]):
                    other = np.int64(neighbours[edge])
                    if seen[other] != stamp and size < len(fresh):
                        seen[other] = stamp
                        fresh[size] = other
                        size += 1
    count = 0
    for at in range(filled):
        if len(kept) == 0 or kept[pool[at]]:
            out[count], out_far[count] = pool[at], far_of[at]
            count += 1
    return count
