"""The doctor's checks in two groups: those that need only a manifest and listings, and those that read every file.

Each check yields findings above a bound that healthy tables keep. A new check is one function and one entry below.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from shlex import quote

from lance_core.commit import naming
from lance_core.commit.identities import Asked
from lance_core.commit.naming import INDEX_CHECKSUMS_HINT, NamingScheme
from lance_core.computed.unseen import unseen_rows
from lance_core.dataset.maintain.column_merge import plan_snapshot_merges
from lance_core.dataset.maintain.column_merge_plan import ColumnMergeOptions
from lance_core.dataset.maintain.validate import find_damages
from lance_core.dataset.versions.cleanup import plan_cleanup
from lance_core.dataset.versions.transaction_log import LogEntry
from lance_core.durations import parse_duration
from lance_core.errors import LanceError
from lance_core.maintenance.findings import Check, Finding, Patient
from lance_core.maintenance.freshness import is_late, lateness
from lance_core.publish.verify import BadRecord
from lance_core.publish.verify import damaged_records as find_damaged
from lance_core.publish.verify import void_records as find_void
from lance_core.table.coverage import SYSTEM_INDICES

SMALL_BYTES = 1 << 20
COLUMN_MERGE = ColumnMergeOptions(max_files_per_fragment=7, enough_files=4)
"""From eight data files in a fragment on; the button that mends it merges by this, too."""
MANY_STAGED_SECONDS = 86400.0
MANIFEST_BYTES = 16 << 20
CONFLICT_SHARE = 0.3
MOST_PAIRS = 10
MIN_VERSIONS_FOR_CONFLICTS = 10
STRANDED_BYTES = 1 << 10
MOST_DAMAGES = 50


def many_versions(patient: Patient) -> Iterator[Finding]:
    """Versions beyond the bound, most of them old enough to go."""
    seen = patient.observation
    if seen.num_versions > patient.levels.max_versions:
        yield Finding(
            code="many-versions", severity="warning", title="The table keeps many versions",
            size=seen.num_versions, unit="versions",
            cost="Listings of versions grow, and old versions keep the bytes of deleted and rewritten files.",
            cure=f"lance cleanup {patient.uri} --older-than 7d --retain {patient.levels.keep_versions}",
            details={"expired": seen.expired_versions},
        )  # fmt: skip


def late_rows(patient: Patient) -> Iterator[Finding]:
    """Rows that should have changed by now, by the table's own rule."""
    found = patient.observation.freshness
    if is_late(found):
        yield Finding(
            code="late-rows", severity="warning", title="The table is late",
            size=round(found.within / 3600, 1) if found else 0, unit="hours allowed",
            cost=f"Who reads it takes old rows for new ones: {lateness(found, patient.now)}.",
            cure=f"See which task did not run: lance log {patient.uri}",
        )  # fmt: skip


def small_fragments(patient: Patient) -> Iterator[Finding]:
    """A size tier that is full and was not merged."""
    seen = patient.observation
    full = [tier for tier in seen.tiers if tier.tier > 0 and tier.fragments >= 4 * patient.levels.tier_fanout]
    if full:
        count = sum(tier.fragments for tier in full)
        yield Finding(
            code="small-fragments", severity="warning", title="The table has many small fragments",
            size=count, unit="fragments",
            cost="Each fragment costs an open file and a request in every scan and look-up.",
            cure=f"lance compact {patient.uri} --strategy tiered",
            details={"tiers": {tier.tier: tier.fragments for tier in full}},
        )  # fmt: skip


def deleted_rows(patient: Patient) -> Iterator[Finding]:
    """Deleted rows that scans still read around."""
    seen = patient.observation
    if seen.deleted_share > 2 * patient.levels.max_deleted_share:
        yield Finding(
            code="deleted-rows", severity="warning", title="Many rows are deleted but not removed",
            size=round(100 * seen.deleted_share, 1), unit="percent of all rows",
            cost="Scans read the deleted rows and drop them; their bytes stay in the store.",
            cure=f"lance compact {patient.uri} --deleted-share {patient.levels.max_deleted_share}",
        )  # fmt: skip


def stale_indices(patient: Patient) -> Iterator[Finding]:
    """Rows that an index does not cover, so that searches scan them."""
    seen = patient.observation
    for name, rows in seen.unindexed_rows.items():
        share = rows / seen.num_rows if seen.num_rows else 0.0
        if share > 2 * patient.levels.max_unindexed_share:
            yield Finding(
                code="stale-index", severity="warning", title=f"Index {name} does not cover {share:.0%} of the rows",
                size=rows, unit="rows", cost="Each search scans these rows.",
                cure=f"lance index optimize {patient.uri} {quote(name)}", details={"index": name},
            )  # fmt: skip


def stale_columns(patient: Patient) -> Iterator[Finding]:
    """Rows of declared columns that no refresh has seen as they are now."""
    total = patient.snapshot.manifest.num_rows
    for name, rows in unseen_rows(patient.snapshot).items():
        share = rows / total if total else 0.0
        if share > 2 * patient.levels.max_unindexed_share:
            yield Finding(
                code="stale-column", severity="warning",
                title=f"Column {name} was not refreshed for {share:.0%} of the rows", size=rows, unit="rows",
                cost="Its values there may be missing, or of inputs that are others now.",
                cure=f"lance refresh {patient.uri} --column {name}", details={"column": name},
            )  # fmt: skip


def many_segments(patient: Patient) -> Iterator[Finding]:
    """Index segments that were added and never merged."""
    for name, count in patient.observation.index_segments.items():
        if count >= 2 * patient.levels.tier_fanout:
            yield Finding(
                code="many-index-segments", severity="warning", title=f"Index {name} has {count} segments",
                size=count, unit="segments", cost="Each search opens every segment.",
                cure=f"lance index optimize {patient.uri} {quote(name)}",
                details={"index": name},
            )  # fmt: skip


def unsealed_indices(patient: Patient) -> Iterator[Finding]:
    """Index segments without checksums, in which damage is not detected."""
    unsealed = sorted(
        index.name
        for index in patient.snapshot.manifest.indices
        if index.name not in SYSTEM_INDICES and INDEX_CHECKSUMS_HINT not in index.metadata
    )
    if unsealed:
        yield Finding(
            code="unsealed-index", severity="note", title="Indices without checksums",
            size=len(unsealed), unit="segments",
            cost="Damage to these files goes unnoticed: a search may miss rows.",
            cure=f"lance seal-indices {patient.uri}", details={"indices": sorted(set(unsealed))},
        )  # fmt: skip


def dead_attempts(patient: Patient) -> Iterator[Finding]:
    """Dead attempts that left files, and staged work that is never committed."""
    dead = [entry for entry in patient.staged if entry.state == "expired"]
    if dead:
        yield Finding(
            code="dead-attempts", severity="warning", title="Dead attempts left files",
            size=len(dead), unit="attempts", cost="Their files take up space.",
            cure=f"lance staged gc {patient.uri}", details={"identities": [entry.identity for entry in dead[:20]]},
        )  # fmt: skip
    old = [
        entry for entry in patient.staged if entry.state == "finished" and patient.now - entry.started > MANY_STAGED_SECONDS
    ]
    if old:
        yield Finding(
            code="forgotten-staged-work", severity="warning", title="Staged work was never committed",
            size=len(old), unit="transactions",
            cost="Readers do not see these rows, and as long as they wait cleanup keeps version "
            f"{min(entry.read_version for entry in old)} and every later one.",
            cure=f"lance staged list {patient.uri}, then commit or abort each; "
            f"lance staged gc {patient.uri} --abandon-after 7d (LanceGarbageOperator(abandon_after=)) aborts all that old",
            details={
                "identities": [entry.identity for entry in old[:20]],
                "oldest_read_version": min(entry.read_version for entry in old),
                "waiting_seconds": round(patient.now - min(entry.started for entry in old)),
            },
        )  # fmt: skip


def damaged_records(patient: Patient) -> Iterator[Finding]:
    """Records of staged work, fences and claims that nobody can read."""
    yield from _bad_records(patient, find_damaged(patient.snapshot.store), "lance staged repair", "damaged-records")


def void_ledger_records(patient: Patient) -> Iterator[Finding]:
    """Decisions of a table that was here before, and damage in what was folded: what stands alone is among the damaged."""
    store = patient.snapshot.store
    damaged = {item.path for item in find_damaged(store)}
    found = [item for item in find_void(store) if item.path not in damaged]
    yield from _bad_records(patient, found, "lance ledger repair", "void-ledger-records")


def _bad_records(patient: Patient, found: Sequence[BadRecord], cure: str, code: str) -> Iterator[Finding]:
    if found:
        yield Finding(
            code=code, severity="warning", title="Records that do not count", size=len(found), unit="records",
            cost=f"They are ignored, and so is what they were to show; the first is {found[0].path}: {found[0].reason}.",
            cure=f"{cure} {patient.uri}", details={"records": [item.path for item in found[:20]]},
        )  # fmt: skip


def many_column_files(patient: Patient) -> Iterator[Finding]:
    """Fragments whose columns are spread over many small files, as repeated add-columns leave them."""
    wide = plan_snapshot_merges(patient.snapshot, COLUMN_MERGE).merges
    if wide:
        most = max(len(merge.fragment.files) for merge in wide)
        yield Finding(
            code="many-column-files", severity="warning", title="Columns are spread over many files",
            size=most, unit="files in one fragment",
            cost="A scan of all columns opens every file of a fragment.",
            cure=f"lance merge-column-files {patient.uri} --max-files {COLUMN_MERGE.files_left}",
            details={"fragments": len(wide)},
        )  # fmt: skip


def short_retention(patient: Patient) -> Iterator[Finding]:
    """Auto cleanup that removes versions on which waiting work was planned."""
    text = patient.snapshot.manifest.config.get("lance.auto_cleanup.older_than")
    waiting = [entry for entry in patient.staged if entry.state != "expired"]
    if text is None or not waiting:
        return
    try:
        keep = parse_duration(text).total_seconds()
    except LanceError:
        return
    oldest = max(patient.now - entry.started for entry in waiting)
    if keep < max(3600.0, oldest):
        yield Finding(
            code="short-retention", severity="error", title="Automatic cleanup is faster than staged work",
            size=round(keep), unit="seconds of retention",
            cost="Other libraries remove versions that staged work needs, so it must be staged again.",
            cure=f'lance_core.dataset("{patient.uri}").optimize.disable_auto_cleanup(), and use LanceCleanupOperator',
            details={"oldest_staged_seconds": round(oldest)},
        )  # fmt: skip


def old_layout(patient: Patient) -> Iterator[Finding]:
    """Names of manifests, and a file version, that make opens and scans slower."""
    names = [entry.path.rsplit("/", 1)[-1] for entry in patient.versions]
    old = sum((parsed := naming.parse_manifest_name(name)) is not None and parsed[1] is NamingScheme.V1 for name in names)
    if old and len(names) >= 10:
        yield Finding(
            code="old-manifest-names", severity="note", title="Manifests use the V1 naming scheme",
            size=old, unit="manifests", cost="Finding the newest version lists all of them.",
            cure=f'lance_core.dataset("{patient.uri}").migrate_manifest_paths_v2()',
        )  # fmt: skip
    if patient.snapshot.manifest.file_version.is_legacy:
        yield Finding(
            code="legacy-files", severity="note", title="Data files have version 0.1",
            size=len(patient.snapshot.manifest.fragments), unit="fragments",
            cost="Scans are slower, and files larger, than with version 2.1.",
            cure="Rewrite the table with data_storage_version='2.1'.",
        )  # fmt: skip


def large_manifest(patient: Patient) -> Iterator[Finding]:
    """A manifest that every open and every commit reads and writes."""
    newest = max(patient.versions, key=lambda entry: entry.version)
    if newest.size > MANIFEST_BYTES:
        yield Finding(
            code="large-manifest", severity="warning", title="The manifest is large",
            size=newest.size, unit="bytes", cost="Each open reads the whole manifest, and each commit rewrites it.",
            cure=f"lance compact {patient.uri}, with a larger --target-rows",
        )  # fmt: skip


def conflicts(patient: Patient) -> Iterator[Finding]:
    """Commits that met others: how many were rebased, and who wrote the versions around them."""
    judged = [entry for entry in patient.log if entry.read_version is not None and entry.version > 1]
    late = [entry for entry in judged if entry.version - (entry.read_version or 0) > 1]
    if len(judged) >= MIN_VERSIONS_FOR_CONFLICTS and len(late) > CONFLICT_SHARE * len(judged):
        pairs = Counter(str(entry.operation) for entry in late)
        yield Finding(
            code="hot-conflicts", severity="note", title="Writers often conflict",
            size=len(late), unit=f"of the last {len(judged)} versions",
            cost="Each of these commits was rebased or re-executed.",
            cure="Put the commits of the table into one pool (python -m airflow_lance.pools URI).",
            details={"operations": dict(pairs), "between": _between(late, patient.log)},
        )  # fmt: skip


def _between(late: Iterable[LogEntry], log: Iterable[LogEntry]) -> list[dict[str, object]]:
    """Which writers met which, the most frequent first. A writer that left no name is None."""
    by_version = {entry.version: entry for entry in log}
    counts: Counter[tuple[tuple[str, str, str], tuple[str, str, str]]] = Counter()
    for mine in late:
        others = (by_version.get(number) for number in range((mine.read_version or 0) + 1, mine.version))
        counts.update((_party(mine), _party(other)) for other in others if other is not None)
    return [
        {
            "operation": mine[0], "writer": _named(mine), "other_operation": other[0], "other_writer": _named(other),
            "count": count,
        }
        for (mine, other), count in counts.most_common(MOST_PAIRS)
    ]  # fmt: skip


def _party(entry: LogEntry) -> tuple[str, str, str]:
    first = entry.asked[0] if entry.asked else Asked()
    return str(entry.operation), first.dag_id, first.task_id


def _named(party: tuple[str, str, str]) -> dict[str, object] | None:
    return {"dag_id": party[1], "task_id": party[2], "run_id": None, "map_index": -1} if party[1] else None


def absent_files(patient: Patient) -> Iterator[Finding]:
    """Files of the newest version that are not there or not as long as they were; that they were not compared at all."""
    seen = patient.observation.files
    if seen is None:
        return
    if seen.unchecked:
        yield Finding(
            code="files-not-checked", severity="note", title="The files were not compared with the manifest",
            size=seen.num_files, unit="files",
            cost=f"Whether all of them are there is not known: {seen.unchecked}.",
            cure=f"lance doctor {patient.uri} --deep",
        )  # fmt: skip
    if seen.is_damaged:
        paths = [*seen.missing, *seen.wrong_size]
        yield Finding(
            code="missing-files", severity="error", title="Files of the newest version are missing or damaged",
            size=seen.num_missing + seen.num_wrong_size, unit="files",
            cost=f"Reads of these rows fail; the first file is {paths[0]}.",
            cure=f"lance restore {patient.uri} VERSION (an older version that passes `lance validate --deep`)",
            details={"missing": list(seen.missing), "wrong_size": list(seen.wrong_size)},
        )  # fmt: skip


def damage(patient: Patient) -> Iterator[Finding]:
    """Files that are missing, or that contradict their metadata or the manifest; indices that do not match."""
    messages: list[str] = []
    try:
        messages += find_damages(patient.snapshot)
    except LanceError as error:
        messages.append(str(error))
    if messages:
        yield Finding(
            code="damaged", severity="error", title="The newest version is damaged",
            size=len(messages), unit="findings", cost=messages[0],
            cure=f"lance restore {patient.uri} VERSION (an older version that passes `lance validate --deep`)",
            details={"findings": messages[:MOST_DAMAGES]},
        )  # fmt: skip


def stranded_files(patient: Patient) -> Iterator[Finding]:
    """Files that no version refers to and no attempt at work can own."""
    plan = plan_cleanup(
        patient.snapshot.store, versions=(), now=patient.now, storage_options=patient.snapshot.storage_options
    )
    stranded = plan.files
    size = sum(entry.size for entry in stranded)
    if size >= STRANDED_BYTES:
        yield Finding(
            code="stranded-files", severity="warning", title="Files that no version refers to",
            size=size, unit="bytes", cost="They take up space; nothing reads them.",
            cure=f"lance cleanup {patient.uri}",
            details={"files": len(stranded), "examples": [entry.path for entry in stranded[:5]]},
        )  # fmt: skip


CHECKS: tuple[Check, ...] = (
    many_versions,
    late_rows,
    small_fragments,
    deleted_rows,
    stale_indices,
    stale_columns,
    many_segments,
    unsealed_indices,
    dead_attempts,
    damaged_records,
    many_column_files,
    short_retention,
    old_layout,
    large_manifest,
    conflicts,
    absent_files,
)
DEEP_CHECKS: tuple[Check, ...] = (damage, stranded_files, void_ledger_records)
