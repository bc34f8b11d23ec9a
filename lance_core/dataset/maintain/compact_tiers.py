"""Plan a size-tiered compaction without IO: a tier is rewritten when it has enough fragments.

::

    target 1,048,576 rows, fanout 8          tiers, in rows: [131,072, 1,048,576)  [16,384, 131,072)  [2,048, 16,384)  ...
    sixty appends of 2,000 rows              every eight make one fragment of 16,000: 0.93 rows rewritten for each row
    the same, always to the target           30 rows rewritten for each row: every pass takes the last result again

A row is rewritten about once per tier on its way to the target size, so the cost of a table that grows by small appends is
logarithmic in its size, and fewer than `fanout` fragments of each tier remain. Tiers count live rows. Members of a tier
need not be neighbours: a Rewrite gives its fragments new ids, and a manifest lists fragments by id, so a compaction moves
rows behind the fragments that it leaves alone, whichever plan it follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from lance_core.dataset.maintain.compact_options import CompactionOptions
from lance_core.format.fragment import Fragment


def tier_of(num_rows: int, *, target: int, fanout: int) -> int:
    """Return the tier of a fragment: 0 at or above the target, 1 for the largest fragments below it, and so on.

    >>> [tier_of(rows, target=1000, fanout=10) for rows in (2000, 1000, 999, 100, 99, 0)]
    [0, 0, 1, 1, 2, 4]
    """
    tier, bound = 0, float(target)
    while num_rows < bound and bound >= 1:
        tier, bound = tier + 1, bound / fanout
    return tier


def tiered_groups(
    fragments: Sequence[Fragment], options: CompactionOptions, *, must_rewrite: Callable[[Fragment], bool]
) -> Iterator[tuple[Fragment, ...]]:
    """Yield the groups among fragments that may be merged with one another.

    The smallest tiers go first, until `enough_fragments` are left. A tier is merged when `tier_fanout` fragments of it have
    gathered, or when its rows fill a fragment of the target size. A fragment for which `must_rewrite` holds (too many
    deleted rows or data files) goes alone when its tier is not merged.
    """
    tiers: dict[int, list[Fragment]] = {}
    for fragment in fragments:
        tier = tier_of(fragment.num_rows, target=options.target_rows_per_fragment, fanout=options.tier_fanout)
        tiers.setdefault(tier, []).append(fragment)
    left = len(fragments)
    for tier, members in sorted(tiers.items(), reverse=True):
        rows = sum(fragment.num_rows for fragment in members)
        full = len(members) >= options.tier_fanout or rows >= options.target_rows_per_fragment
        if tier > 0 and full and len(members) > 1 and left > options.enough_fragments:
            groups = list(_cut(members, options))
            left -= len(members) - len(groups)
            yield from groups
        else:
            yield from ((fragment,) for fragment in members if must_rewrite(fragment))


def _cut(members: Sequence[Fragment], options: CompactionOptions) -> Iterator[tuple[Fragment, ...]]:
    """Groups of about the target size; a rest that is smaller joins the group before it."""
    groups: list[list[Fragment]] = [[]]
    rows = 0
    for fragment in members:
        if rows >= options.target_rows_per_fragment:
            groups.append([])
            rows = 0
        groups[-1].append(fragment)
        rows += fragment.num_rows
    if len(groups) > 1 and rows < options.target_rows_per_fragment:
        groups[-2].extend(groups.pop())
    return iter([tuple(group) for group in groups])
