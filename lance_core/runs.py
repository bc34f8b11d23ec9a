"""Neighbours that are taken together: cut where they would have more than a bound.

::

    runs_within(([10, 10, 90, 200, 10], 100))      (0, 2) (2, 3) (3, 4) (4, 5)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def runs_within(*bounded: tuple[Sequence[int], int]) -> Iterator[tuple[int, int]]:
    """Runs [start, end) of neighbours that together have no more of anything than its bound, or of one that alone has more.

    Args:
        bounded: what each has, in any unit, and the bound of it; all of one length.
    """
    start, totals = 0, [0] * len(bounded)
    for place, parts in enumerate(zip(*(sizes for sizes, _ in bounded), strict=True)):
        grown = [total + part for total, part in zip(totals, parts, strict=True)]
        if place > start and any(total > most for total, (_, most) in zip(grown, bounded, strict=True)):
            yield start, place
            start, grown = place, list(parts)
        totals = grown
    if bounded and start < len(bounded[0][0]):
        yield start, len(bounded[0][0])
