"""A store that hangs in one of its folders, beside a healthy one: every verb of each, on disk and on S3 (loopback).

::

    python tests/io/hanging_stores.py local                 how much longer the healthy verbs take, in seconds
    python tests/io/hanging_stores.py obstore|fsspec        exit status 1 when a verb takes 0.1 s longer, or waits
    python tests/io/hanging_stores.py fsspec data,tree      these folders only

Two processes ask the same verb in turns, a store hanging in one of them: what else the machine does meets both alike. The
shortest times of each are compared, because all that a hanging store can add (a wait for a lock or a thread, a look at a
clock) it adds to every time, and a machine that is busy only to some. A verb that seems slower by half of what is allowed is
asked again, by both, `MOST_PAIRS` times in all. Nothing is asked before the process of the hanging store does nothing but
wait: what its verbs still do in folders that do not hang takes the processor, and Python's lock, as any work does. The
largest difference of a pair, by the clock, is printed beside.
`test_io_hanging.py` compares no times: its hanging calls end when the healthy verbs have ended.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import multiprocessing
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol
from unittest import mock
from urllib.parse import parse_qs, unquote, urlsplit

import pyarrow as pa

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import lance_core
from lance_core.errors import LanceError
from lance_core.io.local.store import LocalStore
from lance_core.io.resolve import resolve_store
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.edits import DeleteSpec
from lance_core.jobs.specs.spec import CommitSpec
from lance_core.maintenance.doctor import diagnose
from lance_core.publish.collect import collect_garbage

PATIENCE = 120.0
"""Seconds after which a verb counts as one that waits; they take one."""
MOST_SLOWER = 0.1
MOST_PAIRS = 12
RESTING = 0.05
"""Seconds of processor time that a process with fifty waiting threads takes in a second, at most."""
FOLDERS = ("_versions", "data", "_deletions", "_indices", "_transactions", "_refs", "tree", "_lance_core")
CALLS = ("get", "get_ranges", "size", "put", "put_if_absent", "copy_if_absent", "open_writer", "list", "list_unfinished",
         "list_names", "list_folders", "delete", "delete_many", "missing", "not_listed", "get_scattered",
         "first_entries", "names_after")  # fmt: skip
Options = Mapping[str, str]


def build(uri: str, options: Options | None = None) -> None:
    """A table with something in every folder."""
    rows = pa.table({
        "id": pa.array(range(40), pa.int64()), "s": [f"row {number % 3}" for number in range(40)],
        "v": pa.array([[1.0, float(number)] for number in range(40)], pa.list_(pa.float32(), 2)),
    })  # fmt: skip
    held: Any = lance_core.write_dataset(rows, uri, max_rows_per_file=10, storage_options=options)
    held.create_scalar_index("id", "BTREE")
    held.create_scalar_index("s", "INVERTED")
    held.create_index("v", "IVF_FLAT", num_partitions=1)
    held.delete("id = 3")
    held.tags.create("good", 1)
    held.create_branch("side")
    run_job(DeleteSpec(uri=uri, predicate="id = 7", storage_options=options or {}))


def verbs(uri: str, options: Options | None = None) -> dict[str, Callable[[], object]]:
    """What users do with a table."""

    def table(version: Any = None) -> Any:
        return lance_core.dataset(uri, version=version, storage_options=options)

    def stage() -> object:
        staged: Any = run_job(DeleteSpec(uri=uri, predicate="id = 9", storage_options=options or {}))
        return run_job(CommitSpec.of([staged], uri=uri, storage_options=options or {}))

    rows = pa.table(
        {"id": pa.array([100], pa.int64()), "s": ["new"], "v": pa.array([[0.0, 0.0]], pa.list_(pa.float32(), 2))}
    )
    return {
        "scan": lambda: table().to_table(),
        "filter": lambda: table().to_table(filter="id = 5 or s = 'row 1'"),
        "take": lambda: table().take([0, 9]),
        "nearest": lambda: table().to_table(nearest={"column": "v", "q": [1.0, 2.0], "k": 3}),
        "search": lambda: table().to_table(full_text_query="row", limit=3),
        "log": lambda: [version["version"] for version in table().versions()],
        "tag": lambda: table("good").count_rows(),
        "branch": lambda: table().checkout_version(("side", None)).count_rows(),
        "stats": lambda: table().stats.index_stats("id_idx"),
        "validate": lambda: table().validate(deep=True),
        "doctor": lambda: diagnose(uri, storage_options=options),
        "append": lambda: lance_core.write_dataset(rows, uri, mode="append", storage_options=options),
        "delete": lambda: table().delete("id = 5"),
        "update": lambda: table().update({"s": "'x'"}, where="id = 8"),
        "merge": lambda: table().merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows),
        "columns": lambda: table().add_columns({"t": "id + 1"}),
        "index": lambda: table().create_scalar_index("s", "BITMAP", name="more"),
        "optimize": lambda: table().optimize.optimize_indices(),
        "compact": lambda: table().optimize.compact_files(),
        "stage": stage,
        "restore": lambda: table(2).restore(),
        "collect": lambda: collect_garbage(resolve_store(uri, options)),
        "cleanup": lambda: table().cleanup_old_versions(older_than=timedelta(days=1)),
    }  # fmt: skip


def tidy(uri: str, options: Options | None = None) -> None:
    """Let the verbs be asked again."""
    with suppress(LanceError):
        lance_core.dataset(uri, storage_options=options).drop_columns(["t"])


class Hang(Protocol):
    """What waits while a folder of a store hangs."""

    def begin(self, folder: str) -> None:
        """From now on what touches the folder waits."""

    def end(self) -> None:
        """Everything goes on."""

    def has_begun(self) -> bool:
        """Whether something came to wait within `PATIENCE`."""


@dataclass
class Gate:
    """Holds whoever touches the folder that hangs."""

    folder: str | None = None
    begun: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)

    def begin(self, folder: str) -> None:
        """As `Hang`."""
        self.begun, self.over, self.folder = threading.Event(), threading.Event(), folder

    def end(self) -> None:
        """As `Hang`."""
        self.folder = None
        self.over.set()

    def has_begun(self) -> bool:
        """As `Hang`."""
        return self.begun.wait(PATIENCE)

    def touch(self, path: str) -> None:
        """Wait where a path of the hanging store is in its folder."""
        folder, over = self.folder, self.over
        if folder is not None and path.startswith(folder):
            self.begun.set()
            over.wait()


@contextmanager
def local_gate(uri: str) -> Iterator[Gate]:
    """A gate before the calls of the local store of a table."""
    gate = Gate()

    def waiting(call: Callable[..., Any]) -> Callable[..., Any]:
        def waits(store: Any, first: Any = "", *given: Any, **named: Any) -> Any:
            touched = f"{store.uri}/{first if isinstance(first, str) else gate.folder}"
            if touched.startswith(f"{uri}/"):
                gate.touch(touched[len(uri) + 1 :])
            return call(store, first, *given, **named)

        return waits

    with contextlib.ExitStack() as patched:
        for name in CALLS:
            if hasattr(LocalStore, name):
                patched.enter_context(mock.patch.object(LocalStore, name, waiting(getattr(LocalStore, name))))
        try:
            yield gate
        finally:
            gate.end()


def key_of(target: str, table: str) -> str | None:
    """The path within a table that a request to S3 is about, "/" at its end for a listing, or None for others."""
    asked = urlsplit(target)
    prefix = parse_qs(asked.query).get("prefix")
    path = unquote(asked.path).strip("/") + (f"/{prefix[0].rstrip('/')}/" if prefix else "")
    return path[len(table) + 1 :] if path.startswith(f"{table}/") else None


@contextmanager
def s3_gate(table: str) -> Iterator[tuple[str, Gate]]:
    """A server of S3, and a gate before its answers about a table (`bucket/folder`)."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication

    from tests.io.moto_server import moto_server

    gate = Gate()
    with moto_server() as endpoint:
        serve = DomainDispatcherApplication.__call__

        def gated(self: Any, environ: dict[str, Any], start_response: Any) -> Any:
            key = key_of(f"{environ['PATH_INFO']}?{environ['QUERY_STRING']}", table)
            if key is not None:
                gate.touch(key)
            return serve(self, environ, start_response)

        with mock.patch.object(DomainDispatcherApplication, "__call__", gated):
            try:
                yield endpoint, gate
            finally:
                gate.end()


def s3_options(endpoint: str, engine: str) -> dict[str, str]:
    """Of a store whose patience is longer than ours."""
    return {
        "aws_endpoint": endpoint, "aws_access_key_id": "a", "aws_secret_access_key": "b", "aws_region": "us-east-1",
        "allow_http": "true", "timeout": "600s", "store_engine": engine,
    }  # fmt: skip


def make_buckets(endpoint: str, *names: str) -> None:
    """Buckets of a server."""
    import botocore.session

    client = botocore.session.get_session().create_client(
        "s3", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b"
    )
    for name in names:
        client.create_bucket(Bucket=name)


def in_thread(action: Callable[[], object]) -> tuple[threading.Thread, list[BaseException]]:
    """A thread that does it, and what it ended with."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            action()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, failed


def ask(name: str, action: Callable[[], object], folder: str) -> float:
    """The seconds that a healthy verb takes; AssertionError where it waits or ends untyped."""
    began = time.perf_counter()
    thread, failed = in_thread(action)
    thread.join(PATIENCE)
    assert not thread.is_alive(), f"{name} waited while {folder} of another store hung"
    assert not [error for error in failed if not isinstance(error, LanceError)], (name, failed)
    return time.perf_counter() - began


def stick(slow: str, options: Options | None, every: int = 1) -> list[threading.Thread]:
    """Threads that ask the hanging store, two for each verb."""
    return [in_thread(action)[0] for action in [*verbs(slow, options).values()][::every] for _ in range(2)]


class _FarGate:
    """A gate in the process of a server."""

    def __init__(self, pipe: Any) -> None:
        self._pipe = pipe

    def begin(self, folder: str) -> None:
        self._said(folder)

    def end(self) -> None:
        self._said("")

    def has_begun(self) -> bool:
        return bool(self._said(None))

    def _said(self, word: str | None) -> Any:
        self._pipe.send(word)
        return self._pipe.recv()


def _serve(pipe: Any, table: str) -> None:
    """A server and its gate: a folder begins to hang, "" ends it, None asks whether somebody waits."""
    with s3_gate(table) as (endpoint, gate):
        pipe.send(endpoint)
        with suppress(EOFError):
            while True:
                word = pipe.recv()
                pipe.send(gate.has_begun() if word is None else gate.begin(word) if word else gate.end())


SPAWN = multiprocessing.get_context("spawn")


@contextmanager
def _process(target: Callable[..., None], *given: object) -> Iterator[Any]:
    """A pipe to a process that ends with this."""
    ours, theirs = SPAWN.Pipe()
    process = SPAWN.Process(target=target, args=(theirs, *given), daemon=True)
    process.start()
    try:
        yield ours
    finally:
        process.kill()
        process.join()


@contextmanager
def _stores(kind: str) -> Iterator[tuple[str, str, Options | None, Hang | None]]:
    """The uris of a store that hangs and of a healthy one; the gate of the first, of none where each process has its own."""
    if kind == "local":
        with tempfile.TemporaryDirectory() as place:
            yield f"{place}/slow.lance", f"{place}/healthy.lance", None, None
        return
    with _process(_serve, "slow/t.lance") as pipe:
        endpoint = pipe.recv()
        make_buckets(endpoint, "slow", "healthy")
        yield "s3://slow/t.lance", "s3://healthy/t.lance", s3_options(endpoint, kind), _FarGate(pipe)


def _ask(pipe: Any, slow: str, options: Options | None) -> None:
    """Answers (verb, uri, folder) with seconds of clock and processor, or an error's text.

    "begin" and a folder: its gate, where it has one, is closed, and the threads that ask the hanging store begin; "end"
    opens it and joins them.
    """
    with local_gate(slow) if options is None else contextlib.nullcontext() as gate:
        stuck: list[threading.Thread] = []
        with suppress(EOFError):
            while True:
                word, uri, folder = pipe.recv()
                if word == "begin":
                    if gate is not None:
                        gate.begin(folder)
                    stuck = stick(slow, options)
                    pipe.send((gate is None or gate.has_begun()) and _waits())
                elif word == "end":
                    still = sum(thread.is_alive() for thread in stuck)
                    if gate is not None:
                        gate.end()
                    pipe.send(still)
                elif word == "join":
                    for thread in stuck:
                        thread.join(PATIENCE)
                    pipe.send(sum(thread.is_alive() for thread in stuck))
                else:
                    pipe.send(_asked(word, uri, folder, options))


def _waits() -> bool:
    """Whether this process comes to rest within `PATIENCE`."""
    over, used = time.monotonic() + PATIENCE, time.process_time()
    while time.monotonic() < over:
        time.sleep(1)
        before, used = used, time.process_time()
        if used - before < RESTING:
            return True
    return False


def _asked(verb: str, uri: str, folder: str, options: Options | None) -> tuple[float, float] | str:
    used = time.process_time()
    try:
        seconds = ask(verb, verbs(uri, options)[verb], folder)
    except AssertionError as error:
        return str(error)
    return seconds, time.process_time() - used


@dataclass
class Pairs:
    """What the same verb took beside a hanging store and alone, in turns: seconds of clock and of processor."""

    beside: list[tuple[float, float]] = field(default_factory=list)
    alone: list[tuple[float, float]] = field(default_factory=list)

    @property
    def slower(self) -> float:
        """Seconds that the shortest time beside a hanging store is longer than the shortest one alone."""
        return min(clock for clock, _ in self.beside) - min(clock for clock, _ in self.alone)

    @property
    def clock(self) -> float:
        """The largest difference of a pair, as the clock said it."""
        return max(one[0] - other[0] for one, other in zip(self.beside, self.alone, strict=True))

    @property
    def used(self) -> float:
        """Processor time that it costs more, by the shortest ones."""
        return min(used for _, used in self.beside) - min(used for _, used in self.alone)


def _copies(uri: str, options: Options | None) -> Iterator[str]:
    """Copies of a table, one after the other, each at a place of its own."""
    made = resolve_store(uri, options)
    objects = {entry.path: bytes(made.get(entry.path)) for entry in made.list("")}
    for number in itertools.count():
        copy = resolve_store(f"{uri}-{number}", options)
        for path, data in objects.items():
            copy.put(path, data)
        yield copy.uri


def _told(pipe: Any, *word: str) -> Any:
    pipe.send(word)
    told = pipe.recv()
    assert not isinstance(told, str), told
    return told


def _round(busy: Any, free: Any, copies: Iterator[str], folder: str, pairs: dict[str, Pairs], names: list[str]) -> None:
    """Each of these verbs once in both processes, on tables that nobody has changed."""
    one, other = next(copies), next(copies)
    for number, name in enumerate(names):
        pair = pairs.setdefault(name, Pairs())
        for pipe, uri, times in ((busy, one, pair.beside), (free, other, pair.alone))[:: 1 if number % 2 else -1]:
            times.append(_told(pipe, name, uri, folder))


def measure(kind: str, folders: Sequence[str] = FOLDERS, *, repeats: int = 3) -> dict[str, dict[str, float]]:
    """For each folder and healthy verb: the seconds that it takes longer while the folder of another store hangs."""
    slower: dict[str, dict[str, float]] = {}
    with _stores(kind) as (slow, healthy, options, gate):
        build(slow, options)
        build(healthy, options)
        copies, names = _copies(healthy, options), [*verbs(healthy, options)]
        with _process(_ask, slow, options) as busy, _process(_ask, slow, options) as free:
            _round(busy, free, copies, "-", {}, names)
            for folder in folders:
                pairs: dict[str, Pairs] = {}
                if gate is not None:
                    gate.begin(folder)
                assert _told(busy, "begin", slow, folder)
                assert gate is None or gate.has_begun(), folder
                for number in range(MOST_PAIRS):
                    slow_ones = [name for name in names if number < repeats or pairs[name].slower > MOST_SLOWER / 2]
                    if slow_ones:
                        _round(busy, free, copies, folder, pairs, slow_ones)
                stuck = _told(busy, "end", slow, folder)
                assert stuck, folder
                if gate is not None:
                    gate.end()
                assert not _told(busy, "join", slow, folder), folder
                slower[folder] = {name: round(pair.slower, 4) for name, pair in pairs.items()}
                _report(kind, folder, pairs, stuck)
    return slower


def _report(kind: str, folder: str, pairs: dict[str, Pairs], stuck: int) -> None:
    worst = max(pairs, key=lambda name: pairs[name].slower)
    clock = max(pairs, key=lambda name: pairs[name].clock)
    used = max(pairs, key=lambda name: pairs[name].used)
    print(
        f"{kind} {folder}: at most {pairs[worst].slower:.3f} s longer ({worst}, {len(pairs[worst].alone)} pairs), "
        f"{pairs[used].used:.3f} s of processor time ({used}), "
        f"by the clock of one pair {pairs[clock].clock:.3f} s ({clock}), {stuck} threads stuck",
        flush=True,
    )


if __name__ == "__main__":
    folders = sys.argv[2].split(",") if len(sys.argv) > 2 else FOLDERS
    most = max(max(times.values()) for times in measure(sys.argv[1], folders).values())
    print(json.dumps({"python": sys.version.split()[0], "store": sys.argv[1], "slower": most}))
    sys.exit(most > MOST_SLOWER)
