"""What a table's storage may hold after a cleanup: the files its versions name, and the small records beside them."""

from __future__ import annotations

from lance_core.commit.manifests import list_versions, load_manifest
from lance_core.commit.references import is_referenced, referenced_files
from lance_core.dataset.refs.clones import places_of
from lance_core.io.store import Store
from lance_core.publish.history import SETTLED_PATH
from lance_core.publish.table_id import TABLE_PATH

_RECORDS = ("_refs/", "_lance_core/decisions/", "_lance_core/segments/", "_lance_core/clones/", SETTLED_PATH, TABLE_PATH)


def strangers(root: Store) -> list[str]:
    """Files of all lines that no version of any line refers to; [] when storage is exact."""
    places = places_of(root)
    needed: set[str] = set()
    manifests: set[str] = set()
    for place in places:
        prefix = "" if place.uri == root.uri else place.uri[len(root.uri) :].strip("/") + "/"
        for entry in list_versions(place):
            manifests.add(prefix + entry.path)
            needed.update(referenced_files(load_manifest(place, entry.version)))
    frozen = frozenset(needed)
    found = []
    for entry in [*root.list(""), *root.list_unfinished("")]:
        path = entry.path
        for place in places[1:]:
            path = path.removeprefix(place.uri[len(root.uri) :].strip("/") + "/")
        known = entry.path in manifests or path.startswith(_RECORDS) or path.endswith("latest_version_hint.json")
        if not known and not is_referenced(path, frozen):
            found.append(entry.path)
    return sorted(found)


def missing(root: Store) -> list[str]:
    """Files that some version refers to and no line has; [] unless something was removed that was needed."""
    places = places_of(root)
    present = [entry.path for place in places for entry in place.list("")]
    held = frozenset(present) | {"/".join(path.split("/")[:2]) + "/" for path in present if path.startswith("_indices/")}
    needed: set[str] = set()
    for place in places:
        for item in list_versions(place):
            manifest = load_manifest(place, item.version)
            # A reuse index may be in the manifest alone.
            inline = {f"_indices/{index.uuid}/" for index in manifest.indices if not index.files}
            needed.update(set(referenced_files(manifest)) - inline)
    return sorted(needed - held)
