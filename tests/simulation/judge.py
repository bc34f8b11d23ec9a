"""The invariants at the end of a run: exact rows, no missing files, no leftovers, everything once.

The looks are made by a bystander: its reads are no steps, and it needs no clock.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace

from lance_core.arrow.buffers import numbers_of
from lance_core.commit import naming
from lance_core.commit.deletion_files import deletion_file_path
from lance_core.commit.identities import identities_of
from lance_core.commit.manifests import load_manifest, manifest_paths, open_path
from lance_core.commit.references import is_referenced, referenced_files
from lance_core.commit.transactions import transaction_of
from lance_core.dataset.scan.plan import plan_scan
from lance_core.dataset.scan.projection import plan_projection
from lance_core.dataset.scan.sinks import scan_table
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import NotFoundError
from lance_core.format.fragment import Fragment
from lance_core.format.manifest import Manifest
from lance_core.io.cache import shared_cache
from lance_core.io.store import Store
from lance_core.publish.decisions import look
from lance_core.wire.manifest_file import decode_manifest_file
from tests.simulation.model import Row, Rows
from tests.simulation.world import World

_MEMORY = tuple(f"{naming.PRIVATE}/{name}" for name in ("decisions/", "segments/", "settled.json", "table.json"))
_FOLDERS = (naming.DATA, naming.DELETIONS, naming.INDICES, naming.TRANSACTIONS)


class Judge:
    """Looks at a world; remembers the rows of fragments by their bytes, which recur from run to run."""

    def __init__(self) -> None:
        self._rows: dict[bytes, tuple[Row, ...]] = {}

    def rows(self, world: World) -> Rows:
        """The rows of the newest version, sorted; none where there is no table."""
        try:
            manifest = load_manifest(world.store)
        except NotFoundError:
            return ()
        found: list[Row] = []
        for fragment in manifest.fragments:
            found.extend(self._rows_of(world, manifest, fragment))
        return tuple(sorted(found))

    def _rows_of(self, world: World, manifest: Manifest, fragment: Fragment) -> tuple[Row, ...]:
        paths = [naming.data_path(file.path) for file in fragment.files]
        if fragment.deletion_file is not None:
            paths.append(deletion_file_path(fragment.id, fragment.deletion_file))
        key = hashlib.sha256(b"".join(world.objects[path][0] for path in paths)).digest()
        if key not in self._rows:
            # Names recur from run to run with other content, which no cache of a process expects.
            shared_cache().clear()
            snapshot = Snapshot(world.store, replace(manifest, fragments=(fragment,)), {})
            schema = manifest.schema
            plan = plan_scan(schema, snapshot.manifest.fragments, plan_projection(schema, ["id", "value"]))
            table = scan_table(snapshot, plan)
            self._rows[key] = tuple(zip(numbers_of(table["id"]), numbers_of(table["value"]), strict=True))
        return self._rows[key]


def lines(store: Store) -> list[Store]:
    """The main line and every branch."""
    marker = f"/{naming.VERSIONS}/"
    branches = {entry.path.split(marker, 1)[0] for entry in store.list("tree/") if marker in entry.path}
    return [store, *(store.child(folder) for folder in sorted(branches))]


def references(world: World) -> Mapping[str, str]:
    """path -> the first version that needs it, over every version of every line. Of indices the folder, ending in "/".

    Strays do not count: no version follows from them, and nobody can keep a put that lands late from taking a free number.
    """
    found: dict[str, str] = {}
    store = world.store
    for line in lines(store):
        for version, path in manifest_paths(line):
            if line is store and path in world.strays:
                continue
            for needed in referenced_files(open_path(line, version, path).manifest):
                found.setdefault(needed, f"version {version}" if line is store else f"version {version} of {line.uri}")
    return found


def broken(world: World, *, outsiders: Collection[str] = ()) -> list[str]:
    """Files that a version refers to and that are gone; but those that an outsider removed with its version."""
    objects = world.objects
    marker = f"/{naming.VERSIONS}/"
    branches = {path.split(marker)[0] for path in objects if path.startswith("tree/") and marker in path}
    gone = theirs(world, outsiders)
    problems = []
    for path, version in references(world).items():
        if path in gone:
            continue
        if path.endswith("/"):
            there = any(name.startswith(path) for name in objects)
        else:
            there = path in objects or any(f"{branch}/{path}" in objects for branch in branches)
        if not there:
            problems.append(f"{version} refers to {path}, which is gone")
    return problems


def theirs(world: World, outsiders: Collection[str]) -> frozenset[str]:
    """What outsiders have changed or removed."""
    return frozenset(path for actor, path, before in world.undo if actor in outsiders and before is not None)


def overlooked(world: World, outsiders: Collection[str]) -> frozenset[str]:
    """What versions refer to whose manifests outsiders have removed: theirs to remove as well."""
    found: set[str] = set()
    for actor, path, before in world.undo:
        if actor in outsiders and before is not None and _is_manifest(path) and path not in world.objects:
            found.update(referenced_files(decode_manifest_file(before[0]).manifest))
    return frozenset(found)


def _is_manifest(path: str) -> bool:
    return path.startswith(f"{naming.VERSIONS}/") and ".manifest" in path


def of_strays(world: World) -> frozenset[str]:
    """What only strays refer to."""
    found: set[str] = set()
    for version, path in manifest_paths(world.store):
        if path in world.strays:
            found.update(referenced_files(open_path(world.store, version, path).manifest))
    return frozenset(found)


def orphans(world: World) -> list[str]:
    """Files that no version refers to."""
    needed = frozenset(references(world))
    paths = [path for path in world.objects if path.split("/", 1)[0] in _FOLDERS]
    return [path for path in paths if not is_referenced(path, needed)]


def leftovers(world: World, *, unsettled: Collection[str]) -> list[str]:
    """Records that are no memory of the table: in the end only what has landed is worth one.

    `unsettled`: identities of which nobody knows whether they landed; what speaks of them stays until it is settled.
    """
    found = [path for path in world.objects if path.startswith(f"{naming.PRIVATE}/") and not path.startswith(_MEMORY)]
    if unsettled:  # the intents of their commits name others, too
        return [
            path for path in found if path.startswith(f"{naming.STAGED}/") and not any(name in path for name in unsettled)
        ]
    return found


def landings(world: World) -> Counter[str]:
    """How many of the listed versions carry each identity."""
    found: Counter[str] = Counter()
    for version, path in manifest_paths(world.store):
        if path in world.strays:
            continue
        transaction = transaction_of(world.store, open_path(world.store, version, path))
        found.update(() if transaction is None else [*identities_of(transaction)])
    return found


def untrue(world: World) -> list[str]:
    """Versions that carry an attempt of which a decision says that it is aborted: that was told as removed."""
    found: list[str] = []
    for version, path in manifest_paths(world.store):
        if path in world.strays:
            continue
        transaction = transaction_of(world.store, open_path(world.store, version, path))
        for identity, note in ({} if transaction is None else identities_of(transaction)).items():
            if look(world.store, identity).is_aborted(str(note.get("attempt", ""))):
                found.append(f"version {version} carries {identity}, which was aborted")
    return found
