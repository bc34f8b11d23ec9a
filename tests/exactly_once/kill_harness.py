"""One kill and what follows: a retry, a clear, perhaps a cleanup in between; then the judge looks."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from multiprocessing import forkserver
from pathlib import Path

import lance
import pyarrow as pa
from kill_cases import CASES, OUTSIDE, Case, run, run_and_die, start_over

from lance_core.commit.identities import ABORTED_PREFIX
from lance_core.commit.manifests import list_versions, load_manifest
from lance_core.commit.references import is_referenced, referenced_files
from lance_core.dataset.versions.transaction_log import read_log
from lance_core.errors import CommitStateUnknownError
from lance_core.io.local.store import LocalStore
from lance_core.publish.abort import abort_attempt
from lance_core.publish.attempts import list_staged
from lance_core.publish.collect import collect_garbage
from lance_core.publish.decisions import look, settle_by_hand
from lance_core.publish.history import SETTLED_PATH
from lance_core.publish.intent import STALE_SECONDS, list_intents
from lance_core.publish.records import FORMAT, write_record
from lance_core.publish.table_id import TABLE_PATH

LATER = 10 * 24 * 3600.0
RECORDS = ("_lance_core/decisions/", "_lance_core/segments/", SETTLED_PATH, TABLE_PATH)
"""What stays, however tidy a table is."""
_CONTEXT = multiprocessing.get_context("forkserver")


def warm_up() -> None:
    """Start the process that children are forked from; it has imported what they need, once."""
    _CONTEXT.set_forkserver_preload(["kill_cases", "kill_preload"])
    before = os.environ.get("PYTHONPATH", "")
    # The server takes no import path from its parent but this one.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path(__file__).parent), before]))
    try:
        forkserver.ensure_running()
    finally:
        os.environ["PYTHONPATH"] = before


@dataclass
class Figures:
    """What a harness has seen."""

    kills: int = 0
    settled: list[str] = field(default_factory=list)


def steps_of(place: Path, name: str) -> list[str]:
    """The names of all steps of a run that nobody kills."""
    uri, names = start_over(place, CASES[name]), place / "steps"
    names.unlink(missing_ok=True)
    assert _child(name, uri, place, at=0, names=str(names)) == 0
    return names.read_text(encoding="utf-8").splitlines()


def kill_at(place: Path, name: str, number: int) -> str:
    """Run a case afresh, killed at a step; the table's uri."""
    uri = start_over(place, CASES[name])
    assert _child(name, uri, place, at=number) == -signal.SIGKILL
    return uri


def kill_again(place: Path, name: str, uri: str, number: int) -> None:
    """The retry, which may be killed as well."""
    _child(name, uri, place, at=number)


def retry(case: Case, uri: str, raw: str, what: str, figures: Figures) -> Mapping[str, object]:
    """Airflow's next try. Doubt, where nobody can know, is settled as the error says: by looking."""
    from airflow.exceptions import AirflowFailException

    try:
        return run(case, uri, raw)
    except AirflowFailException as error:
        if not isinstance(error.__cause__, CommitStateUnknownError):
            raise
        figures.settled.append(what)
        settle_by_looking(case, uri)
        return run(case, uri, raw)


def check(case: Case, uri: str, *, outside: bool, what: str) -> None:
    """Rows and versions exact; after gc nothing that no version needs."""
    table = lance.dataset(uri)
    table.validate()
    assert ids_of(uri) == expected(case, outside=outside), what
    if case.added:
        values = table.to_table(columns=["id", case.added]).to_pylist()
        for row in values:
            later = row["id"] in OUTSIDE and row[case.added] is None
            assert later or row[case.added] == 2 * row["id"], (what, row)
    store = LocalStore(uri)
    # Settling by abort what may have been published makes a version without rows, which a late put would lose to.
    told = [[name for name in entry.properties if name.startswith(ABORTED_PREFIX)] for entry in read_log(store)]
    aborts = [names for names in told if names]
    others = (len(OUTSIDE) if outside else 0) + len(aborts)
    assert table.version == versions_before(case) + case.num_versions + others, what
    aborted = [name for names in aborts for name in names]
    assert len(aborted) == len(set(aborted)), (what, "an identity is aborted once")
    collect_garbage(store, now=time.time() + LATER)
    left = orphans(store)
    assert not left, (what, left)
    assert ids_of(uri) == expected(case, outside=outside), what


def expected(case: Case, *, outside: bool) -> list[int]:
    """The ids that must be there. An overwrite takes what came before it, so its own file says what is left."""
    return sorted([*case.rows, *(OUTSIDE if outside else ())])


def ids_of(uri: str) -> list[int]:
    """The judge's view."""
    found: list[int] = sorted(lance.dataset(uri).to_table(columns=["id"])["id"].to_pylist())
    return found


def orphans(store: LocalStore) -> set[str]:
    """Files that neither a version needs nor decisions and what is told from them are."""
    manifests = [load_manifest(store, entry.version) for entry in list_versions(store)]
    wanted = frozenset(path for manifest in manifests for path in referenced_files(manifest))
    keep = ("_versions/", "_refs/", *RECORDS)
    found = {entry.path for entry in [*store.list(""), *store.list_unfinished("")]}
    return {path for path in found if not is_referenced(path, wanted) and not path.startswith(keep)}


def append_outside(uri: str) -> None:
    """Another writer, another library: a version for each row."""
    for number in OUTSIDE:
        schema = lance.dataset(uri).schema
        row = {name: pa.nulls(1, schema.field(name).type) for name in schema.names}
        given = {"id": pa.array([number], pa.int64()), "day": pa.array([-1], pa.int32())}
        lance.write_dataset(pa.table({**row, **given}, schema=schema), uri, mode="append")


def clean_ours(uri: str) -> None:
    """Our own cleanup, with nothing kept but the newest version."""
    from kill_cases import execute

    from airflow_lance.operators.cleanup import LanceCleanupOperator

    execute(LanceCleanupOperator(task_id="clean", uri=uri, older_than_days=0, retain_versions=1))


def clean_theirs(uri: str) -> None:
    """The official library's cleanup; files younger than seven days that no version knows stay, as by default."""
    lance.dataset(uri).cleanup_old_versions(older_than=timedelta(0))


CLEANUPS: Mapping[str, Callable[[str], None]] = {"our cleanup": clean_ours, "their cleanup": clean_theirs}


def settle_by_looking(case: Case, uri: str) -> None:
    """What a person does: look whether it is there, then `lance staged settle` or `lance staged abort --certain`."""
    store = LocalStore(uri)
    # The commit that was killed counts as alive until its lease is over; a person would come later than that.
    for intent in list_intents(store):
        write_record(store, intent.path, {"format": FORMAT, **asdict(intent), "since": intent.since - STALE_SECONDS})
    version = lance.dataset(uri).version
    there = version > versions_before(case) + len(OUTSIDE)
    for entry in list_staged(store):
        if there and look(store, entry.identity).committed is None:
            settle_by_hand(store, entry.identity, version=version)
        elif not there:
            with suppress(FileNotFoundError):
                abort_attempt(store, entry.identity, entry.attempt, certain=True)


def versions_before(case: Case) -> int:
    """The version that a case begins with."""
    return 0 if case.creates else 3


def _child(name: str, uri: str, place: Path, *, at: int, names: str = "") -> int | None:
    process = _CONTEXT.Process(target=run_and_die, args=(name, uri, str(place / "raw"), at, names))
    process.start()
    process.join()  # a busy machine may take minutes for what takes a second
    code = process.exitcode
    process.close()
    return code
