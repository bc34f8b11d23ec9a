"""Branches: separate tables below `tree/`, which begin as a clone of a version; each has a small JSON file.

::

    _refs/branches/feat%2Fx.json   {"parentBranch": null, "identifier": {"version_mapping": [[2, "faff…"]]},
                                    "parentVersion": 2, "createAt": 1795253189, "manifestSize": 422, "metadata": {}}
    tree/feat/x/_versions/…        the branch's manifests; version numbers go on where the parent was

The identifier is the path from the main line: (version, uuid) of each fork. (Spec: FORMAT C.3.)
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote

from lance_core.errors import CorruptFileError, InputError, NotFoundError
from lance_core.io.parallel import each
from lance_core.io.store import Store
from lance_core.publish.records import decode_object

BRANCHES = "_refs/branches"
TREE = "tree"
MAIN = "main"
_SEGMENT = re.compile(r"[\w.-]+")
"""Letters and digits of any alphabet, as officially: an `\u00e9` is one letter, an `e` with an accent of its own is not."""


@dataclass(frozen=True, slots=True)
class BranchRef:
    """A branch: the line and version it began from (parent None: the main line), seconds since the epoch, bytes."""

    name: str
    parent_branch: str | None
    parent_version: int
    identifier: tuple[tuple[int, str], ...] = ()
    created_at: int = 0
    manifest_size: int = 0
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def is_below(self, other: BranchRef) -> bool:
        """Whether this one, or one it began from, began from `other`."""
        return len(self.identifier) > len(other.identifier) > 0 and (
            self.identifier[: len(other.identifier)] == other.identifier
        )


def check_branch_name(name: str) -> str:
    """The name itself, when a branch may have it; else InputError."""
    segments = name.split("/")
    fine = all(_SEGMENT.fullmatch(part) and set(part) != {"."} for part in segments)
    if not fine or name == MAIN or ".." in name or name.endswith(".lock"):
        raise InputError(
            f"{name!r} is not a valid branch name",
            cure='Use letters, digits, dots, dashes and underscores, with single slashes between them; "main" is reserved.',
        )
    return name


def branch_path(name: str) -> str:
    """Path of a branch's file below the main table."""
    return f"{BRANCHES}/{quote(check_branch_name(name), safe='')}.json"


def place_of(root: Store, branch: str | None) -> Store:
    """Where a branch's versions are; None or "main" is the main table itself."""
    return root if branch is None or branch == MAIN else root.child(f"{TREE}/{check_branch_name(branch)}")


def read_branch(root: Store, name: str) -> BranchRef:
    """The branch of that name. NotFoundError when there is none."""
    path = branch_path(name)
    try:
        data = bytes(root.get(path))
    except NotFoundError:
        known = ", ".join(branch_names(root)) or "none"
        raise NotFoundError(f"{root.uri} has no branch {name!r}", uri=root.uri, cure=f"Known branches: {known}.") from None
    return decode_branch(name, data, where=f"{root.uri}: {path}")


def branch_names(root: Store) -> list[str]:
    """Names of all branches, sorted; one listing, no reads."""
    names = root.list_names(f"{BRANCHES}/")
    return sorted(unquote(name.removesuffix(".json")) for name in names if name.endswith(".json"))


def list_branches(root: Store) -> dict[str, BranchRef]:
    """All branches by name, sorted by name."""
    names = branch_names(root)
    return dict(zip(names, each(root, names, read_branch), strict=True))


def decode_branch(name: str, data: bytes, *, where: str) -> BranchRef:
    """A branch from its file's bytes. CorruptFileError when they are none."""
    try:
        plain = decode_object(data, where=where)
        mapping = (plain.get("identifier") or {}).get("version_mapping") or []
        metadata, parent = plain.get("metadata") or {}, plain.get("parentBranch")
        if not isinstance(metadata, dict) or not isinstance(parent, (str, type(None))):
            raise TypeError("metadata must be an object and parentBranch a string")
        return BranchRef(
            name=name,
            parent_branch=parent,
            parent_version=int(plain["parentVersion"]),
            identifier=tuple((int(version), str(uuid)) for version, uuid in mapping),
            created_at=int(plain.get("createAt") or 0),
            manifest_size=int(plain.get("manifestSize") or 0),
            metadata=metadata,
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise CorruptFileError(f"{where} is not a branch: {error}") from error


def encode_branch(branch: BranchRef) -> bytes:
    """The bytes of a branch's file, as the official library writes them."""
    plain = {
        "parentBranch": branch.parent_branch,
        "identifier": {"version_mapping": [list(item) for item in branch.identifier]},
        "parentVersion": branch.parent_version,
        "createAt": branch.created_at,
        "manifestSize": branch.manifest_size,
        "metadata": dict(branch.metadata),
    }
    return json.dumps(plain, indent=2).encode()
