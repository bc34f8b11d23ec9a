"""Plan a compaction without IO: which neighbouring fragments become one, and why the others stay.

::

    target 12, live rows 4 3 5 | 5 5 5 1        -> two groups; the small rest joins the last one
    deleted share above 10 %                      -> rewritten even when alone
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from lance_core.dataset.maintain.compact_options import TARGET_ROWS, CompactionOptions
from lance_core.dataset.maintain.compact_tiers import tiered_groups
from lance_core.format.fragment import Fragment

__all__ = ["TARGET_ROWS", "CompactionGroups", "CompactionOptions", "bytes_of", "plan_compaction"]


@dataclass(frozen=True)
class CompactionGroups:
    """Groups of neighbouring fragments to rewrite on `read_version`, and why the other fragments are left alone."""

    read_version: int
    groups: tuple[tuple[Fragment, ...], ...]
    skipped: tuple[tuple[int, str], ...]
    options: CompactionOptions = field(default_factory=CompactionOptions)

    @property
    def num_rows(self) -> int:
        """Living rows that will be rewritten."""
        return sum(fragment.num_rows for group in self.groups for fragment in group)

    @property
    def num_bytes(self) -> int:
        """Bytes of the files that will be read, as far as they are recorded."""
        return sum(bytes_of(fragment) for group in self.groups for fragment in group)


def bytes_of(fragment: Fragment) -> int:
    """Recorded bytes of a fragment's data files."""
    return sum(file.file_size_bytes or 0 for file in fragment.files)


def plan_compaction(
    fragments: Sequence[Fragment],
    options: CompactionOptions,
    *,
    read_version: int,
    pinned: Collection[int] = (),
    coverage: Callable[[Fragment], object] = lambda _: None,
) -> CompactionGroups:
    """Group what is too small or too deleted.

    `pinned` fragments cannot move (an index holds addresses into them); fragments of one group have equal `coverage`.
    """
    runs: list[list[Fragment]] = [[]]
    skipped: list[tuple[int, str]] = []
    for fragment in fragments:
        reason = _why_left_alone(fragment, options, pinned)
        if reason is None:
            if runs[-1] and coverage(runs[-1][-1]) != coverage(fragment):
                runs.append([])
            runs[-1].append(fragment)
        else:
            skipped.append((fragment.id, reason))
            runs.append([])
    groups: list[tuple[Fragment, ...]] = []
    for run in runs if options.strategy == "adjacent" else ():
        for group in _split(run, options.target_rows_per_fragment):
            if len(group) > 1 or must_rewrite(group[0], options):
                groups.append(group)
            else:
                skipped.append((group[0].id, "it has no neighbour to be merged with"))
    if options.strategy == "tiered":
        groups = _tiered([fragment for run in runs for fragment in run], options, coverage)
        grouped = {fragment.id for group in groups for fragment in group}
        waiting = [fragment.id for run in runs for fragment in run if fragment.id not in grouped]
        skipped += [(number, "its size tier is not full") for number in waiting]
    chosen, postponed = _within_bounds(groups, options)
    skipped += [(fragment.id, "it exceeds the limits of this run") for group in postponed for fragment in group]
    return CompactionGroups(read_version, tuple(chosen), tuple(sorted(skipped)), options)


def _tiered(
    eligible: Sequence[Fragment], options: CompactionOptions, coverage: Callable[[Fragment], object]
) -> list[tuple[Fragment, ...]]:
    alike: dict[object, list[Fragment]] = {}
    for fragment in eligible:
        alike.setdefault(coverage(fragment), []).append(fragment)
    return [
        group
        for fragments in alike.values()
        for group in tiered_groups(fragments, options, must_rewrite=lambda item: must_rewrite(item, options))
    ]


def _why_left_alone(fragment: Fragment, options: CompactionOptions, pinned: Collection[int]) -> str | None:
    if fragment.id in options.excluded_fragment_ids:
        return "excluded"
    if fragment.physical_rows >= options.target_rows_per_fragment and not must_rewrite(fragment, options):
        return "large enough"
    return "an index refers to its rows by address" if fragment.id in pinned else None


def must_rewrite(fragment: Fragment, options: CompactionOptions) -> bool:
    """Whether a fragment is rewritten whatever its size: too many deleted rows, or too many data files."""
    most = options.max_files_per_fragment
    if most is not None and len(fragment.files) > most:
        return True
    share = fragment.num_deleted_rows / fragment.physical_rows if fragment.physical_rows else 0.0
    return options.materialize_deletions and share > options.materialize_deletions_threshold


def _split(run: Sequence[Fragment], target: int) -> list[tuple[Fragment, ...]]:
    """A run in groups of at least the target; what is left at the end joins the last group."""
    groups: list[list[Fragment]] = []
    current: list[Fragment] = []
    rows = 0
    for fragment in run:
        current.append(fragment)
        rows += fragment.num_rows
        if rows >= target:
            groups.append(current)
            current, rows = [], 0
    if current and groups:
        groups[-1].extend(current)
    elif current:
        groups.append(current)
    return [tuple(group) for group in groups]


def _within_bounds(
    groups: Sequence[tuple[Fragment, ...]], options: CompactionOptions
) -> tuple[list[tuple[Fragment, ...]], list[tuple[Fragment, ...]]]:
    """Whole groups as long as the bounds last; the first always goes, else nothing ever would."""
    bounds = (options.max_source_fragments, options.max_source_rows, options.max_source_bytes)
    chosen: list[tuple[Fragment, ...]] = []
    used = (0, 0, 0)
    for at, group in enumerate(groups):
        sizes = (len(group), sum(item.num_rows for item in group), sum(bytes_of(item) for item in group))
        total = tuple(a + b for a, b in zip(used, sizes, strict=True))
        if chosen and any(bound is not None and value > bound for value, bound in zip(total, bounds, strict=True)):
            return chosen, [*groups[at:]]
        chosen.append(group)
        used = (total[0], total[1], total[2])
    return chosen, []
