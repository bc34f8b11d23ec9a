"""The methods of a handle for references and copies: tags, branches, clones.

::

    ds.create_branch("feat/x")      another handle, on the branch: what it writes the main line does not see
    ds.checkout_version(("feat/x", None))      ds.branches.list()      ds.shallow_clone("/b.lance", 7)
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lance_core.dataset.refs.branches import BranchRef, branch_path, encode_branch, list_branches, read_branch
from lance_core.dataset.refs.tags import Tags
from lance_core.dataset.snapshot.snapshot import Snapshot, Version, snapshot_of
from lance_core.shortage import verbs_tell_shortages

if TYPE_CHECKING:
    from typing_extensions import Self


@verbs_tell_shortages
class BranchingVerbs:
    """What `LanceDataset` knows of versions, tags, branches and clones."""

    _snapshot: Snapshot

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> Self:
        """The handle on a snapshot."""
        handle = cls.__new__(cls)
        handle._snapshot = snapshot
        return handle

    @property
    def tags(self) -> Tags:
        """Names for versions, of the main line and of branches."""
        return Tags(self._snapshot.root, self._snapshot.version, branch=self._snapshot.manifest.branch)

    @property
    def branches(self) -> Branches:
        """The branches of the table."""
        return Branches(self._snapshot)

    def checkout_version(self, version: Version) -> Self:
        """Another handle: on a version of this line, a tag, or (branch, version), where None means main and newest."""
        return self.from_snapshot(self._snapshot.at(version))

    def checkout_latest(self) -> None:
        """Move this handle to the newest version of its line."""
        self._snapshot = snapshot_of(self._snapshot.store, storage_options=self._snapshot.storage_options)

    def create_branch(
        self, branch: str, reference: Version | None = None, storage_options: Mapping[str, str] | None = None
    ) -> Self:
        """Create a branch from a version (None: this one) and return a handle on it."""
        from lance_core.dataset.versions.clone import create_branch

        return self.from_snapshot(create_branch(self._referred(reference, storage_options), branch))

    def shallow_clone(
        self, target_path: str | os.PathLike[str], reference: Version, storage_options: Mapping[str, str] | None = None
    ) -> Self:
        """A new table that reads a version's files where they are; a cleanup by this library keeps them while it exists."""
        from lance_core.dataset.versions.clone import shallow_clone

        return self.from_snapshot(shallow_clone(self._snapshot.at(reference), target_path, storage_options))

    def deep_clone(
        self, target_path: str | os.PathLike[str], reference: Version, storage_options: Mapping[str, str] | None = None
    ) -> Self:
        """A new table with copies of all files of a version."""
        from lance_core.dataset.versions.clone import deep_clone

        return self.from_snapshot(deep_clone(self._snapshot.at(reference), target_path, storage_options))

    def _referred(self, reference: Version | None, options: Mapping[str, str] | None) -> Snapshot:
        found = self._snapshot if reference is None else self._snapshot.at(reference)
        return found if options is None else Snapshot(found.store, found.manifest, options)


@verbs_tell_shortages
class Branches:
    """The branches of a table (`LanceDataset.branches`): list, create and delete them."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._root = snapshot.root

    def list(self) -> dict[str, dict[str, Any]]:
        """All branches: {name: {"parent_branch", "parent_version", "branch_identifier", "create_at", ...}}."""
        return {name: _described(branch) for name, branch in list_branches(self._root).items()}

    def list_ordered(self, order: str | None = None) -> Sequence[tuple[str, dict[str, Any]]]:
        """All branches by the version they began at, the highest first ("desc", the default) or last ("asc"), and name."""
        by_name = sorted(self.list().items())
        return sorted(by_name, key=lambda item: item[1]["parent_version"], reverse=order != "asc")

    def delete(self, branch: str) -> None:
        """Remove a branch and its files. InputError while a tag or another branch refers to it."""
        from lance_core.dataset.versions.clone import delete_branch

        delete_branch(self._root, branch)

    def replace_metadata(self, branch: str, metadata: Mapping[str, Any]) -> None:
        """Exchange what is written down about a branch."""
        found = read_branch(self._root, branch)
        self._root.put(branch_path(branch), encode_branch(replace(found, metadata=dict(metadata))))


def _described(branch: BranchRef) -> dict[str, Any]:
    return {
        "parent_branch": branch.parent_branch,
        "branch_identifier": [*branch.identifier],
        "parent_version": branch.parent_version,
        "create_at": branch.created_at,
        "manifest_size": branch.manifest_size,
        "metadata": dict(branch.metadata),
    }
