"""All keys of a finite state transducer, as the `fst` crate lays it out, with their numbers: the loop behind token maps.

::

    root -a(7)-> . -b-> final -c(2)-> final          out "ababc"  ends 2 5  numbers 7 9

The nodes' bytes are described where maps are written (`lance_core.index.text.fst`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lance_core.kernels.jit import kernel


@kernel("in:u1 in:u1 in:i8 out:i8 out:i8 out:u8 out:u1 out:u1 out:i8 out:u8 -> i8")
def walk_transducer(
    data: Any, common: Any, facts: Any, targets: Any, steps: Any, totals: Any, path: Any, out: Any, ends: Any, numbers: Any
) -> Any:
    """Keys one after the other in `out`, ascending; key k ends at `ends[k]`. Returns how many; -1: damage, -2: more keys
    than `ends` has room for, -3: `out` is too small, -4: the stack (`targets`, `steps`, `totals`) is.

    Damage is, too, a node that leads to no key.

    `facts`: where the root is, and the format's version. `common`: bytes that a node may name by a number from 1. `path` has
    room for the longest key.
    """
    version = facts[1]
    found, used, top = np.int64(0), np.int64(0), np.int64(1)
    targets[0], steps[0], totals[0] = facts[0], 0, 0
    while top > 0:
        top -= 1
        address, depth, total = targets[top], steps[top] >> 8, totals[top]
        if depth > 0:
            path[depth - 1] = np.uint8(steps[top] & 255)
        final, own, many = address == 0, np.uint64(0), np.int64(0)
        far, wide, at, inputs = np.int64(0), np.int64(0), address, np.int64(0)
        state = np.int64(data[address])
        if address == 0:
            pass
        elif state >= 128:
            byte = np.int64(0)
            if state & 63 != 0:
                byte = np.int64(common[(state & 63) - 1])
            else:
                at -= 1
                byte = np.int64(data[at])
            delta, add = np.int64(0), np.uint64(0)
            if state >= 192:
                delta = 1
            else:
                at -= 1
                sizes = np.int64(data[at])
                far, wide = sizes >> 4, sizes & 15
                if far > 8 or wide > 8 or at - far - wide < 16:
                    return -1
                at -= far
                for place in range(far):
                    delta |= np.int64(data[at + place]) << (8 * place)
                at -= wide
                for place in range(wide):
                    add |= np.uint64(data[at + place]) << np.uint64(8 * place)
            target = at - delta if delta != 0 else np.int64(0)
            if delta < 0 or target >= address or (target != 0 and target < 16) or depth + 1 >= len(path):
                return -1
            if top >= len(targets):
                return -4
            targets[top], steps[top], totals[top] = target, (depth + 1) << 8 | byte, total + add
            top += 1
        else:
            final, many = state & 64 != 0, state & 63
            if many == 0:
                at -= 1
                many = np.int64(data[at]) if data[at] != 1 else np.int64(256)
            at -= 1
            # Every way must end in a key, or a few nodes in a row that each lead twice to the next one take for ever. Only
            # the root of a map without keys leads nowhere.
            if at < 16 or (many == 0 and not final and depth > 0):
                return -1
            far, wide = np.int64(data[at]) >> 4, np.int64(data[at]) & 15
            if version >= 2 and many > 32:
                at -= 256
            at -= many
            inputs = at
            if far > 8 or wide > 8 or at - many * (far + wide) - (wide if final else 0) < 16:
                return -1
            if final and wide != 0:
                begin = at - many * (far + wide) - wide
                for place in range(wide):
                    own |= np.uint64(data[begin + place]) << np.uint64(8 * place)
        if final:
            if found >= len(ends):
                return -2
            if used + depth > len(out):
                return -3
            for place in range(depth):
                out[used + place] = path[place]
            used += depth
            ends[found], numbers[found] = used, total + own
            found += 1
        if many > 0 and depth + 1 >= len(path):
            return -1
        if top + many > len(targets):
            return -4
        lowest = inputs - many * (far + wide)
        for number in range(many):
            byte = np.int64(data[inputs + number])
            if number > 0 and byte >= np.int64(data[inputs + number - 1]):
                return -1
            delta, add = np.int64(0), np.uint64(0)
            for place in range(far):
                delta |= np.int64(data[inputs - many * far + number * far + place]) << (8 * place)
            for place in range(wide):
                add |= np.uint64(data[lowest + number * wide + place]) << np.uint64(8 * place)
            # Distances count from the lowest byte of the node, the number of its own included.
            target = lowest - (wide if final else 0) - delta if delta != 0 else np.int64(0)
            if delta < 0 or target >= address or (target != 0 and target < 16):
                return -1
            targets[top], steps[top], totals[top] = target, (depth + 1) << 8 | byte, total + add
            top += 1
    return found
