"""Random rotations by sign flips and Hadamard steps, and codes of one sign and a few more bits for each number.

::

    rotate     4 times: flip signs, (x, y) -> (x + y, x - y) over powers of two, scaled so that lengths stay
    code       0.7 of [0.7, -0.1] with 2 more bits: sign +, level 3   ->   + (3 + 0.5)

Numbers that were rotated are all of about the same size, so that few levels tell most of a direction.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lance_core.kernels import plain_vectors
from lance_core.kernels.jit import kernel

ROUNDS = 4
LANES = 32


@kernel("out:f4 in:u1 i8 -> i8", reorders=True, plain=plain_vectors.rotate_rows, weight=5)
def rotate_rows(rows: Any, signs: Any, dim: Any) -> Any:
    """Rotate rows in place; `signs` holds ROUNDS times a bit for each number. Returns rows, -1: the arrays do not fit."""
    width = (dim + 7) // 8
    if dim <= 0 or len(rows) % dim != 0 or len(signs) != ROUNDS * width:
        return -1
    whole = 1
    while whole * 2 <= dim:
        whole *= 2
    scale = np.float32(1.0 / np.sqrt(np.float64(whole)))
    half_dim = dim // 2
    for row in range(len(rows) // dim):
        base = row * dim
        for turn in range(ROUNDS):
            for at in range(dim):
                if (signs[turn * width + at // 8] >> (at % 8)) & 1:
                    rows[base + at] = -rows[base + at]
            start = base if turn % 2 == 0 or whole == dim else base + dim - whole
            half = 1
            while half < whole:
                for block in range(start, start + whole, 2 * half):
                    for at in range(block, block + half):
                        left, right = rows[at], rows[at + half]
                        rows[at] = left + right
                        rows[at + half] = left - right
                half *= 2
            for at in range(start, start + whole):
                rows[at] *= scale
            if whole != dim:
                for at in range(base, base + half_dim):
                    left, right = rows[at], rows[at + half_dim]
                    rows[at] = left + right
                    rows[at + half_dim] = left - right
        if whole != dim:
            for at in range(base, base + dim):
                rows[at] *= np.float32(0.25)
    return len(rows) // dim


@kernel("out:f4 in:u1 i8 -> i8", reorders=True)
def rotate_many(rows: Any, signs: Any, dim: Any) -> Any:
    """`rotate_rows` for a multiple of LANES rows: the same numbers, several times as fast."""
    width = (dim + 7) // 8
    if dim <= 0 or len(rows) % (dim * LANES) != 0 or len(signs) != ROUNDS * width:
        return -1
    whole = 1
    while whole * 2 <= dim:
        whole *= 2
    scale = np.float32(1.0 / np.sqrt(np.float64(whole)))
    last = np.float32(1) if whole == dim else np.float32(0.25)
    work = np.empty(dim * LANES, np.float32)
    for group in range(len(rows) // (dim * LANES)):
        # Number by number, rows side by side: then even the shortest steps are those of whole registers.
        mine = rows[group * dim * LANES : (group + 1) * dim * LANES]
        for lane in range(LANES):
            for at in range(dim):
                work[at * LANES + lane] = mine[lane * dim + at]
        for turn in range(ROUNDS):
            for at in range(dim):
                if (signs[turn * width + at // 8] >> (at % 8)) & 1:
                    cells = work[at * LANES : (at + 1) * LANES]
                    for lane in range(LANES):
                        cells[lane] = -cells[lane]
            start = 0 if turn % 2 == 0 or whole == dim else (dim - whole) * LANES
            away = LANES
            while away < whole * LANES:
                for low in range(start, start + whole * LANES, 2 * away):
                    lower, upper = work[low : low + away], work[low + away : low + 2 * away]
                    for cell in range(away):
                        left, right = lower[cell], upper[cell]
                        lower[cell] = left + right
                        upper[cell] = left - right
                away *= 2
            cells = work[start : start + whole * LANES]
            for cell in range(whole * LANES):
                cells[cell] *= scale
            if whole != dim:
                away = dim // 2 * LANES
                lower, upper = work[:away], work[away : 2 * away]
                for cell in range(away):
                    left, right = lower[cell], upper[cell]
                    lower[cell] = left + right
                    upper[cell] = left - right
        for lane in range(LANES):
            for at in range(dim):
                mine[lane * dim + at] = work[at * LANES + lane] * last
    return len(rows) // dim


@kernel("in:f4 in:f4 in:u4 i8 i8 i8 out:u1 out:f4 -> i8", reorders=True)
def rabit_levels(
    residuals: Any, centroids: Any, owners: Any, dim: Any, bits: Any, is_dot: Any, levels: Any, factors: Any
) -> Any:
    """Levels of `bits` bits for rotated residuals, and five factors a row; returns rows, -1: the arrays do not fit.

    Factors: add, scale, error of the signs alone, add, scale of signs and levels. A distance is add + scale * (the rotated
    query times the code) + what the query and the centroid say.
    """
    count = len(owners)
    if len(residuals) != count * dim or len(levels) != count * dim or len(factors) != count * 5 or dim <= 0:
        return -1
    most = (1 << bits) - 1
    tries = 48
    for row in range(count):
        first = row * dim
        center = np.int64(owners[row]) * dim
        if center + dim > len(centroids):
            return -1
        square = np.float32(0)
        largest = np.float32(0)
        for at in range(dim):
            value = residuals[first + at]
            square += value * value
            largest = max(largest, abs(value))
        best = np.float32(0)
        if largest > 0 and bits > 0:
            best_fit = np.float32(-1)
            for attempt in range(1, tries + 1):
                step = (np.float32(most + 10) / largest) * np.float32(attempt) / np.float32(tries)
                told, norm = np.float32(0), np.float32(0)
                for at in range(dim):
                    size = abs(residuals[first + at])
                    level = min(np.float32(most), np.float32(np.int32(step * size + np.float32(1e-5)))) + np.float32(0.5)
                    told += level * size
                    norm += level * level
                fit = told * told / norm
                if fit > best_fit:
                    best_fit, best = fit, step
        sign_dot, sign_center, code_dot, code_center, cross = (
            np.float32(0), np.float32(0), np.float32(0), np.float32(0), np.float32(0),
        )  # fmt: skip
        for at in range(dim):
            value, mid = residuals[first + at], centroids[center + at]
            level = min(np.int32(most), np.int32(best * abs(value) + np.float32(1e-5)))
            levels[first + at] = level
            sign = np.float32(-0.5) if value < 0 else np.float32(0.5)
            code = sign * np.float32(2 * level + 1)
            sign_dot += value * sign
            sign_center += mid * sign
            code_dot += value * code
            code_center += mid * code
            cross += value * mid
        twice = np.float32(1) if is_dot else np.float32(2)
        base = np.float32(1) - cross if is_dot else square
        out = row * 5
        sign_ratio = square / sign_dot if sign_dot != 0 else np.float32(0)
        code_ratio = square / code_dot if code_dot != 0 else np.float32(0)
        factors[out] = base + twice * sign_ratio * sign_center
        factors[out + 1] = -twice * sign_ratio
        error = np.float32(0)
        if sign_dot != 0 and dim > 1:
            alignment = square * np.float32(dim) * np.float32(0.25) / (sign_dot * sign_dot)
            error = np.float32(1.9) * np.sqrt(square * max(alignment - 1, np.float32(0)) / np.float32(dim - 1))
        factors[out + 2] = twice * error
        factors[out + 3] = base + twice * code_ratio * code_center
        factors[out + 4] = -twice * code_ratio
    return count


@kernel("in:f4 in:T i8 out:f4 -> i8", reorders=True, plain=plain_vectors.signed_dots, weight=0.05, T=("i1", "i2"))
def signed_dots(query: Any, codes: Any, dim: Any, out: Any) -> Any:
    """Dot products of a query with rows of small signed numbers; returns rows, -1: the arrays do not fit."""
    count = len(out)
    if dim <= 0 or len(query) != dim or len(codes) != count * dim:
        return -1
    for row in range(count):
        first = row * dim
        total = np.float32(0)
        for at in range(dim):
            total += query[at] * np.float32(codes[first + at])
        out[row] = total
    return count


@kernel("in:f4 in:f4 in:f4 in:u4 in:u1 in:u1 in:f4 in:f4 f4 i8 i8 i8 out:f4 -> i8", reorders=True)
def rabit_apart(
    residuals: Any, squares: Any, centroids: Any, owners: Any, signs: Any, levels: Any, factors: Any, noise: Any, share: Any,
    dim: Any, bits: Any, is_dot: Any, out: Any,
) -> Any:  # fmt: skip
    """How far stored codes are from what rotated residuals make them, in units of what is allowed: up to 1 is good.

    `squares` [n] are lengths of residuals, squared; `signs` [n, dim / 8] are bits, `levels` [n, dim] (empty without bits)
    sizes, `factors` [n, 5] as `rabit_levels` tells them. `noise` [n] is how unsure each number of a residual is, `share`
    how unsure a factor, of itself. A sign must be right where the number is more than noise; all levels must come from one
    scale; factors must be what signs and levels make them. Returns rows, -1: the arrays do not fit.
    """
    count, width = len(owners), (dim + 7) // 8
    if dim <= 0 or len(residuals) != count * dim or len(signs) != count * width or len(factors) != count * 5:
        return -1
    if len(noise) != count or len(squares) != count or len(out) != count or (bits > 0 and len(levels) != count * dim):
        return -1
    most = np.float32((1 << bits) - 1)
    slack, least, half = np.float32(1e-3), np.float32(1e-30), np.float32(0.5)
    for row in range(count):
        first, center = row * dim, np.int64(owners[row]) * dim
        if center + dim > len(centroids):
            return -1
        unsure = max(noise[row], least)
        square, away, cross = squares[row], np.float32(0), np.float32(0)
        sign_dot, sign_center, code_dot, code_center, code_square = (
            np.float32(0), np.float32(0), np.float32(0), np.float32(0), np.float32(0),
        )  # fmt: skip
        wrong, low, high = np.float32(0), np.float32(0), np.float32(np.inf)
        for at in range(dim):
            value, mid = residuals[first + at], centroids[center + at]
            sign = half if (signs[row * width + at // 8] >> (at % 8)) & 1 else -half
            size = abs(value)
            if value * sign < 0:
                wrong = max(wrong, size)
            away += mid * mid
            cross += value * mid
            sign_dot += value * sign
            sign_center += mid * sign
            if bits > 0:
                level = np.float32(levels[first + at])
                code = sign * (2 * level + 1)
                code_dot += value * code
                code_center += mid * code
                code_square += code * code
                if level > 0:
                    low = max(low, (level - slack) / (size + unsure))
                if level < most and size > unsure:
                    high = min(high, (level + 1 + slack) / (size - unsure))
        twice = np.float32(1) if is_dot else np.float32(2)
        base = np.float32(1) - cross if is_dot else square
        length, far = np.sqrt(square), np.sqrt(away)
        vague = unsure * np.sqrt(np.float32(dim))
        part = share + 4 * vague / max(length, least)
        known = share * (square + abs(base)) + 8 * vague * (length + far) + least
        worst = wrong / unsure
        for kind in range(2 if bits > 0 else 1):
            dot = code_dot if kind else sign_dot
            middle = code_center if kind else sign_center
            norm = np.sqrt(code_square) if kind else np.sqrt(np.float32(dim)) * half
            add, scale = factors[row * 5 + 3 * kind], factors[row * 5 + 1 + 3 * kind]
            if not (np.isfinite(add) and np.isfinite(scale)):
                worst = np.float32(np.inf)
            elif kind and scale == 0 and square <= np.float32(1.3e-7):
                # The official library gives so short a rest no levels: only its length is stored.
                worst = max(worst, abs(add - base) / known)
            else:
                if kind and low > high:
                    worst = np.float32(np.inf)
                ratio = square / dot if dot != 0 else np.float32(0)
                allowed = twice * (part * abs(ratio) + 8 * vague / norm) + least
                worst = max(worst, abs(scale + twice * ratio) / allowed)
                allowed = known + twice * abs(ratio) * (part * abs(middle) + share * far * norm)
                worst = max(worst, abs(add - (base + twice * ratio * middle)) / allowed)
        error = factors[row * 5 + 2]
        if not error >= 0:
            worst = np.float32(np.inf)
        elif sign_dot != 0 and dim > 1:
            alignment = square / sign_dot * (np.float32(dim) * np.float32(0.25)) / sign_dot
            unit = twice * twice * np.float32(3.61) * square / np.float32(dim - 1)
            allowed = unit * (2 * part * alignment + np.float32(1e-5)) + least
            worst = max(worst, abs(error * error - unit * max(alignment - 1, np.float32(0))) / allowed)
        out[row] = worst if worst >= 0 else np.float32(np.inf)
    return count
