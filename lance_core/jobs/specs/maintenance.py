"""Specs of what takes effect at once, in one process: cleanup, garbage, tag, branch, restore, validate. Stdlib only.

::

    {"spec": 1, "kind": "tag", "uri": "/t.lance", "action": "set", "name": "golden", "version": 7}

None of these stages anything, so no commit task follows them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from lance_core.errors import InputError
from lance_core.jobs.specs.spec import JobSpec


@dataclass(frozen=True, kw_only=True)
class CleanupSpec(JobSpec):
    """Remove versions that are old by every measure given (14 days when none is), and files only they need.

    Staged work, tagged versions and the memory of what was committed are kept. `explain` only reports.
    """

    kind: ClassVar[str] = "cleanup"

    older_than_seconds: float | None = None
    retain_versions: int | None = None
    delete_unverified: bool = False
    error_if_tagged_old_versions: bool = False
    explain: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.older_than_seconds is not None and self.older_than_seconds < 0:
            raise InputError(f"cleanup: older_than_seconds must not be negative, got {self.older_than_seconds}")
        if self.retain_versions is not None and self.retain_versions < 1:
            raise InputError(f"cleanup: retain_versions must be at least 1, got {self.retain_versions}")


@dataclass(frozen=True, kw_only=True)
class GarbageSpec(JobSpec):
    """Remove what dead attempts and dead commits left behind, at once and by name. `dry_run` only reports.

    `abandon_after_seconds`: staged work that has waited longer for its commit is aborted; None keeps it for ever.
    """

    kind: ClassVar[str] = "garbage"

    dry_run: bool = False
    abandon_after_seconds: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.abandon_after_seconds is not None and self.abandon_after_seconds <= 0:
            raise InputError(
                f"garbage: abandon_after must be more than 0, got {self.abandon_after_seconds} seconds",
                cure="Pass more time than the longest DAG run takes between staging and commit, such as 7 days.",
            )


@dataclass(frozen=True, kw_only=True)
class TagSpec(JobSpec):
    """Name a version (None: the newest).

    `action`: "create" refuses a name that is taken for another version, "set" moves it, "delete" forgets it; doing any of
    them twice is the same as once.
    """

    kind: ClassVar[str] = "tag"

    name: str
    action: Literal["create", "set", "delete"] = "set"
    version: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.name:
            raise InputError("tag: name is empty")
        if self.action == "delete" and self.version is not None:
            raise InputError("tag: version cannot be combined with action='delete'")


@dataclass(frozen=True, kw_only=True)
class BranchSpec(JobSpec):
    """Create a branch from a version of the main line or of another branch, or remove one with its files.

    `version`, or the one that `tag` names; neither: the newest of `from_branch` (None: the main line). Doing it twice with
    one identity is the same as once; a branch that already exists from another version is refused by "create", and removed
    with its files by "renew", which then begins it again.
    """

    kind: ClassVar[str] = "branch"

    name: str
    action: Literal["create", "delete", "renew"] = "create"
    version: int | None = None
    tag: str | None = None
    from_branch: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.name:
            raise InputError("branch: name is empty")
        given = [name for name in ("version", "tag", "from_branch") if getattr(self, name) is not None]
        if self.action == "delete" and given:
            raise InputError(f"branch: {given[0]} cannot be combined with action='delete'")
        if self.tag is not None and len(given) > 1:
            raise InputError("branch: tag cannot be combined with version or from_branch")


@dataclass(frozen=True, kw_only=True)
class RestoreSpec(JobSpec):
    """Make an old version, or the one a tag names, the newest again, as a new version.

    `expected_version`: the newest version that may be undone. With `if_moved="fail"` the job refuses when the table has
    gone on since; "overwrite" restores regardless of versions in between. Without it the newest version is looked up when
    the job runs.
    """

    kind: ClassVar[str] = "restore"

    version: int | None = None
    tag: str | None = None
    expected_version: int | None = None
    if_moved: Literal["fail", "overwrite"] = "fail"

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.version is None) == (self.tag is None):
            raise InputError("restore: exactly one of version and tag is required")


@dataclass(frozen=True, kw_only=True)
class ValidateSpec(JobSpec):
    """Check that a version (None: the newest) is whole: every data and deletion file is opened. `deep`: True also reads
    every page and compares every index with its rows, False looks at the manifest only. `indices` compares every index with
    the rows it covers; `seal_indices` writes checksums for those that have none, once they were compared.
    """

    kind: ClassVar[str] = "validate"

    version: int | None = None
    deep: bool | None = None
    indices: bool = False
    seal_indices: bool = False
