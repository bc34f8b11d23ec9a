"""The named conflict rules; `lance_core.table.conflicts` assigns one to each pair of operations.

Each takes my operation, theirs, and what is known beyond the two:

    overlap(Delete(f0), Rewrite(f0 f1 -> f7))    ->    RETRY "fragment(s) [0] were changed"

(Spec: transactions, conflict resolution; FORMAT D.3.)

Verdicts on a pair of transactions: mine, not yet committed, and theirs, which was committed after the version I read.

OK        mine applies to the newer version as it is
REBASE    mine applies after its deletion vectors or bitmaps were brought up to date
RETRY     mine has to be planned again
NEVER     planning again cannot help
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from lance_core.format.fragment import Fragment
from lance_core.format.index import IndexMetadata
from lance_core.table.coverage import MEM_WAL, depends_on
from lance_core.table.operations import (
    CompactedSsTable,
    CreateIndex,
    DataReplacement,
    Delete,
    Merge,
    Project,
    Rewrite,
    Update,
    UpdateMode,
)


class VerdictKind(enum.IntEnum):
    """From harmless to hopeless; the verdict on several transactions is the largest of theirs."""

    OK = 0
    REBASE = 1
    RETRY = 2
    NEVER = 3


@dataclass(frozen=True, slots=True)
class Verdict:
    """An outcome, and for all but OK why."""

    kind: VerdictKind
    reason: str = ""


OK = Verdict(VerdictKind.OK)


def rebase(reason: str) -> Verdict:
    """Mine must be brought up to date."""
    return Verdict(VerdictKind.REBASE, reason)


def retry(reason: str) -> Verdict:
    """Mine must be planned again."""
    return Verdict(VerdictKind.RETRY, reason)


def never(reason: str) -> Verdict:
    """Mine makes no sense any more."""
    return Verdict(VerdictKind.NEVER, reason)


@dataclass(frozen=True, slots=True)
class Known:
    """What a judge may know beyond the two transactions.

    `affected_rows`: my deletions are known row by row, so deletion vectors can be merged. `originals`: the fragments as I
    read them, by id (those I remove are not in my transaction).
    """

    affected_rows: bool = False
    originals: Mapping[int, Fragment] = field(default_factory=dict)


_Kind = TypeVar("_Kind")
Rule = Callable[[Any, Any, Known], Verdict]


def _told_apart(mine: Any, theirs: Any, kind: type[_Kind]) -> tuple[_Kind, Any]:
    """Return the side of a kind, and the other one."""
    return (mine, theirs) if isinstance(mine, kind) else (theirs, mine)


def fine(mine: Any, theirs: Any, known: Known) -> Verdict:
    """The two do not meet."""
    return OK


def gone(mine: Any, theirs: Any, known: Known) -> Verdict:
    """Theirs replaced the table (or mine would replace what theirs needs)."""
    return never(f"a concurrent {theirs.name} invalidates this {mine.name}")


def replan(mine: Any, theirs: Any, known: Known) -> Verdict:
    """Both decide about all fragments or about the schema."""
    return retry(f"a concurrent {theirs.name} changed what this {mine.name} was planned on")


def nullability(mine: Any, theirs: Any, known: Known) -> Verdict:
    """One side may have made values invalid that the other side brings."""
    changes = [side for side in (mine, theirs) if isinstance(side, (Merge, Project)) and not side.preserves_nullability]
    return retry(f"a {changes[0].name} that may tighten nullability met new values") if changes else OK


def overlap(mine: Any, theirs: Any, known: Known) -> Verdict:
    """Both touch the same fragment."""
    both = sorted(mine.touches().fragments & theirs.touches().fragments)
    return retry(f"fragment(s) {both} were changed by a concurrent {theirs.name}") if both else OK


def rewrites(mine: Any, theirs: Any, known: Known) -> Verdict:
    """Rewrite against Rewrite: as for overlap; and two that defer the translation of indices would lose one reuse index.

    The log does not say whether theirs deferred, only that it translated something; if it did not, it may have deferred.
    """
    if mine.frag_reuse_index is not None and not theirs.rewritten_indices:
        return retry("a concurrent Rewrite may have changed the fragment reuse index")
    return overlap(mine, theirs, known)


def deletions(mine: Any, theirs: Any, known: Known) -> Verdict:
    """Both delete rows of the same fragment: their deletion vectors can be merged while the files stay the same."""
    both = mine.touches().fragments & theirs.touches().fragments
    if not both:
        return OK
    if not known.affected_rows or not mine.updated_fragments:
        return retry(f"fragment(s) {sorted(both)} were changed by a concurrent {theirs.name}")
    vanished = sorted(both & theirs.touches().removed)
    if vanished:
        return retry(f"fragment(s) {vanished} were removed by a concurrent {theirs.name}")
    read = {**known.originals, **{item.id: item for item in mine.updated_fragments if item.id not in known.originals}}
    changed = sorted(item.id for item in theirs.updated_fragments if item.id in both and _files_differ(read, item))
    if changed:
        return retry(f"files of fragment(s) {changed} were changed by a concurrent {theirs.name}")
    return rebase(f"deletion vectors of fragment(s) {sorted(both)} must be merged")


def _files_differ(read: Mapping[int, Fragment], theirs: Fragment) -> bool:
    # A fragment that mine removes whole and nobody looked up: the rebase looks at its files before it merges.
    return theirs.id in read and read[theirs.id].files != theirs.files


def inserted_keys(mine: Any, theirs: Any, known: Known) -> Verdict:
    """Update against Update: inserted keys must not meet; then as for deletions, and sorted runs must be newer."""
    verdict = generations(mine, theirs, known)
    if verdict is not OK:
        return verdict
    ours, other = mine.inserted_rows, theirs.inserted_rows
    if ours is not None:
        if other is None:
            return retry("rows were inserted by a concurrent Update that does not record its keys")
        if ours.field_ids != other.field_ids or (ours.key_hashes is None) != (other.key_hashes is None):
            return retry("concurrent Updates describe their inserted keys differently")
        if ours.key_hashes is not None and not set(ours.key_hashes).isdisjoint(other.key_hashes):
            return retry("concurrent Updates inserted the same keys")
        if ours.bloom is not None and _blooms_meet(ours.bloom, other.bloom):
            return retry("concurrent Updates may have inserted the same keys")
    return deletions(mine, theirs, known)


def _blooms_meet(ours: Any, other: Any) -> bool:
    if other is None or ours.num_bits != other.num_bits or len(ours.bitmap) != len(other.bitmap):
        return True
    return any(left & right for left, right in zip(ours.bitmap, other.bitmap, strict=True))


def appended_keys(mine: Any, theirs: Any, known: Known) -> Verdict:
    """Update against Append: appended rows may hold a key that mine inserted."""
    return retry("a concurrent Append may hold keys this Update inserts") if mine.inserted_rows is not None else OK


def generations(mine: Any, theirs: Any, known: Known) -> Verdict:
    """Sorted runs of a shard are committed in order: an older one of theirs is taken over, a newer one makes mine stale."""
    committed = _by_shard(theirs.compacted_sstables)
    for run in mine.compacted_sstables:
        if run.shard_id not in committed:
            continue
        if committed[run.shard_id] >= run.generation:
            return never(f"generation {run.generation} of shard {run.shard_id} is already in the table")
        return retry(f"an older generation of shard {run.shard_id} was committed in the meantime")
    return OK


def _by_shard(runs: Iterable[CompactedSsTable]) -> dict[str, int]:
    newest: dict[str, int] = {}
    for run in runs:
        newest[run.shard_id] = max(run.generation, newest.get(run.shard_id, 0))
    return newest


def index_names(mine: Any, theirs: Any, known: Known) -> Verdict:
    """CreateIndex against CreateIndex: one name, one author."""
    new, new_theirs = _names(mine.new_indices), _names(theirs.new_indices)
    dropped, dropped_theirs = _names(mine.removed_indices) - new, _names(theirs.removed_indices) - new_theirs
    same = (new & new_theirs) | (new & dropped_theirs) | (dropped & new_theirs)
    if same:
        return retry(f"index {sorted(same)} was changed by a concurrent CreateIndex")
    removed = {item.uuid for item in mine.removed_indices} & {item.uuid for item in theirs.removed_indices}
    if removed and (new or new_theirs):
        return retry(f"index segment(s) {sorted(removed)} were already replaced")
    return OK


def _names(indices: Iterable[IndexMetadata]) -> set[str]:
    return {index.name for index in indices}


def rewritten_coverage(mine: Any, theirs: Any, known: Known) -> Verdict:
    """CreateIndex and Rewrite, whichever is mine: the new index must not point into fragments that went away."""
    rewrite, create = _told_apart(mine, theirs, Rewrite)
    reuse = rewrite.frag_reuse_index is not None
    for index in create.new_indices:
        for group in rewrite.groups:
            old = frozenset(item.id for item in group.old_fragments)
            if _points_into(index, old, has_reuse_index=reuse, rewrite_is_mine=rewrite is mine):
                return retry(f"index {index.name!r} covers fragments that a Rewrite replaces")
    return OK


def _points_into(index: IndexMetadata, old: frozenset[int], *, has_reuse_index: bool, rewrite_is_mine: bool) -> bool:
    if index.fragment_bitmap is None:
        return True
    covered = index.fragment_bitmap & old
    if not covered or not has_reuse_index:
        return bool(covered)
    if rewrite_is_mine:
        return covered != old
    return index.details is not None and index.details.kind == "NGramIndexDetails"


def indexed_fields(mine: Any, theirs: Any, known: Known) -> Verdict:
    """CreateIndex and DataReplacement, whichever is mine: an index must not be built on values that are being replaced."""
    replacement, create = _told_apart(mine, theirs, DataReplacement)
    fields = replacement.touches().fields
    names = sorted(index.name for index in create.new_indices if depends_on(index, fields))
    return retry(f"index {names} was built on columns that a DataReplacement changes") if names else OK


def updated_coverage(mine: Any, theirs: Any, known: Known) -> Verdict:
    """My CreateIndex, their Update of an indexed field: the updated fragments leave my bitmaps."""
    fields, fragments = theirs.touches().fields, theirs.touches().modified
    hit = [
        index.name
        for index in mine.new_indices
        if depends_on(index, fields) and fragments & (index.fragment_bitmap or set())
    ]
    return rebase(f"fragments that were updated in the meantime must be removed from the bitmaps of {hit}") if hit else OK


def mem_wal_index(mine: Any, theirs: Any, known: Known) -> Verdict:
    """Only the index of the write-ahead log itself cares about Merge and about the log's state."""
    create, other = _told_apart(mine, theirs, CreateIndex)
    return (
        retry(f"a concurrent {other.name} conflicts with a change of the write-ahead log's index")
        if MEM_WAL in _names(create.new_indices)
        else OK
    )


def log_state(mine: Any, theirs: Any, known: Known) -> Verdict:
    """My CreateIndex, their UpdateMemWalState: only the index of the log may go along."""
    return OK if MEM_WAL in _names(mine.new_indices) else gone(mine, theirs, known)


def replaced_rows(mine: Any, theirs: Any, known: Known) -> Verdict:
    """My DataReplacement, their Delete or Update of my fragments: rows must still be where they were."""
    touched, target = theirs.touches(), mine.touches()
    removed = sorted(target.modified & touched.removed)
    if removed:
        return never(f"fragment(s) {removed}, whose files are to be replaced, were removed by a concurrent {theirs.name}")
    both = sorted(target.modified & touched.modified)
    if not both or not isinstance(theirs, Update):
        return OK
    if theirs.update_mode is UpdateMode.REWRITE_ROWS or touched.fields & target.fields:
        return retry(f"rows or columns of fragment(s) {both} were changed by a concurrent Update")
    return OK


def same_cells(mine: Any, theirs: Any, known: Known) -> Verdict:
    """DataReplacement against DataReplacement: same fragment and same field."""
    taken = {(item.fragment_id, field) for item in theirs.replacements for field in item.new_file.fields}
    wanted = {(item.fragment_id, field) for item in mine.replacements for field in item.new_file.fields}
    return retry("the same columns of the same fragments were replaced in the meantime") if taken & wanted else OK


def kept_fields(mine: Any, theirs: Any, known: Known) -> Verdict:
    """My DataReplacement, their Project: the fields must still be there."""
    verdict = nullability(mine, theirs, known)
    if verdict is not OK:
        return verdict
    lost = sorted(mine.touches().fields - theirs.schema.by_id.keys())
    return never(f"field(s) {lost} were dropped by a concurrent Project") if lost else OK


def overlaid(mine: Any, theirs: Any, known: Known) -> Verdict:
    """DataOverlay against whoever moves or removes rows: judged by whole fragments."""
    verdict = overlap(mine, theirs, known)
    others = [side for side in (mine, theirs) if isinstance(side, (Delete, Update))]
    if verdict is OK or not others:
        return verdict
    other = others[0]
    overlay = theirs if other is mine else mine
    if overlay.touches().fragments & other.touches().removed:
        return verdict
    moves = other.update_mode if isinstance(other, Update) else None
    return OK if moves is None or (moves is UpdateMode.REWRITE_COLUMNS and other is theirs) else verdict


def same_keys(mine: Any, theirs: Any, known: Known) -> Verdict:
    """Both change the same key of the same map."""
    ours, other = mine.touches().keys, theirs.touches().keys
    for name in ours.keys() & other.keys():
        left, right = ours[name], other[name]
        if left is None or right is None or left & right:
            return never(f"the same {name} keys were changed by a concurrent {theirs.name}")
    return OK


def schema_metadata(mine: Any, theirs: Any, known: Known) -> Verdict:
    """One side changes metadata of schema or fields while the other brings a new schema."""
    update = mine if mine.name == "UpdateConfig" else theirs
    return replan(mine, theirs, known) if _changes_schema(update) else OK


def replaced_metadata(mine: Any, theirs: Any, known: Known) -> Verdict:
    """The same, where the other side replaces the table: planning again does not help."""
    update = mine if mine.name == "UpdateConfig" else theirs
    return gone(mine, theirs, known) if _changes_schema(update) else same_keys(mine, theirs, known)


def _changes_schema(update: Any) -> bool:
    return any(name == "schema" or name.startswith("field:") for name in update.touches().keys)


def overwritten(mine: Any, theirs: Any, known: Known) -> Verdict:
    """Overwrite against Overwrite: the same configuration key is hopeless, else plan again."""
    verdict = same_keys(mine, theirs, known)
    return verdict if verdict is not OK else replan(mine, theirs, known)


def bases(mine: Any, theirs: Any, known: Known) -> Verdict:
    """Both register the same place."""
    clash = any(ours.clashes_with(other) for ours in mine.new_bases for other in theirs.new_bases)
    return never("the same base path was registered in the meantime") if clash else OK
