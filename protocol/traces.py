"""Are runs of the real code runs of the model? `commit.pml` is given their writes to records and must be able to make them.

::

    commit     put_if_absent …fence.json                W_FENCE by committer 0
    commit     put_if_absent _versions/version 2        W_PUT by committer 0
    abort      delete        …finished.json             W_FINISHED_GONE by who gives up

Only writes that changed something count. The model may read whenever it likes, so a trace that it cannot make shows a write
at a time, or by an actor, that the specification does not allow.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType

MODEL = Path(__file__).with_name("commit.pml")
FENCE, PUT, LEDGER, FINISHED_GONE, FENCE_GONE, FILES_GONE = range(1, 7)
_WRITERS = 8


def writes_of(
    calls: Sequence[tuple[str, str, str, str]], *, actors: Mapping[str, int], identity: str, there: Collection[str]
) -> list[int]:
    """The model's writes in calls (actor, name, path, note) of a run; `there`: what the store held before."""
    present, found = set(there), []
    for actor, name, path, note in calls:
        if note in ("refused", "timed out", "dies", "already exists"):
            continue
        was_there = path in present
        if name == "delete":
            present.discard(path)
        elif name.startswith("put") or name == "close":
            present.add(path)
        what = _what(name, path, identity, was_there=was_there)
        if what and actor in actors:
            found.append(what * _WRITERS + actors[actor])
    return found


def _what(name: str, path: str, identity: str, *, was_there: bool) -> int:
    ours = f"_lance_core/staged/{identity}."
    if name == "put_if_absent" and path.startswith("_versions/"):
        return PUT
    if name == "put_if_absent" and path.startswith(ours) and path.endswith(".fence.json"):
        return FENCE
    if name == "put_if_absent" and path == f"_lance_core/ledger/{identity}.json":
        return LEDGER
    if name == "delete" and was_there:
        if path.startswith(ours):
            return FINISHED_GONE if path.endswith(".finished.json") else FENCE_GONE if path.endswith(".fence.json") else 0
        return FILES_GONE if path.startswith("data/") else 0
    return 0


class Acceptor:
    """The model, compiled once to follow traces."""

    def __init__(self, *, committers: int = 2, appends: int = 0) -> None:
        self._folder = tempfile.TemporaryDirectory()
        defines = [
            f"-DCOMMITTERS={committers}",
            f"-DAPPENDS={appends}",
            "-DPRUNES=0",
            "-DCRASHES=0",
            "-DDOUBTS=0",
            "-DTRACE",
        ]
        self._run(["spin", "-a", *defines, str(MODEL)])
        self._run(["gcc", "-O1", "-w", "-DSAFETY", "-o", "pan", "pan.c"])

    def __enter__(self) -> Acceptor:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._folder.cleanup()

    def accepts(self, writes: Sequence[int]) -> bool:
        """Whether the model can make exactly these writes, one after the other."""
        if not writes:
            return True
        (Path(self._folder.name) / "trace.txt").write_text(" ".join(map(str, writes)))
        told = self._run(["./pan", "-E", "-m100000"])
        if "errors:" not in told:
            raise RuntimeError(told)
        return re.search(r"assertion violated.*next_write", told) is not None

    def _run(self, command: Sequence[str]) -> str:
        done = subprocess.run(command, cwd=self._folder.name, capture_output=True, text=True, check=False)
        if done.returncode and command[0] != "./pan":
            raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr
