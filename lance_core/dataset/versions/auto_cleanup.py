"""The hook after a commit: cleans up every n-th version if the table's configuration requests it.

::

    lance.auto_cleanup.interval = 20          when the version is a multiple of 20
    lance.auto_cleanup.older_than = 14days    versions older than this go
    lance.auto_cleanup.retain_versions = 5    but for the newest five

Tagged versions stay. The commit has happened by then, so a cleanup that fails is only logged. (Spec: FORMAT D.5.)
"""

from __future__ import annotations

import logging

from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.durations import parse_duration
from lance_core.errors import InputError, LanceError

log = logging.getLogger(__name__)

_PREFIX = "lance.auto_cleanup."


def after_commit(snapshot: Snapshot) -> Snapshot:
    """Clean the table up if its configuration requires it; returns the same snapshot."""
    config = snapshot.manifest.config
    interval = config.get(f"{_PREFIX}interval")
    if interval is None or snapshot.manifest.branch is not None:
        return snapshot
    try:
        if _number(interval) and snapshot.version % _number(interval) == 0:
            _clean_up(snapshot)
    except LanceError as error:
        log.warning("%s: auto cleanup after version %d failed: %s", snapshot.uri, snapshot.version, error)
    return snapshot


def _clean_up(snapshot: Snapshot) -> None:
    config = snapshot.manifest.config
    older_than, retain = config.get(f"{_PREFIX}older_than"), config.get(f"{_PREFIX}retain_versions")
    if older_than is None and retain is None:
        return
    from lance_core.dataset.versions.cleanup import plan_cleanup, run_cleanup  # few tables need it after a commit

    plan = plan_cleanup(
        snapshot.store,
        older_than=None if older_than is None else parse_duration(older_than),
        retain_versions=None if retain is None else _number(retain),
        error_if_tagged_old_versions=False,
        storage_options=snapshot.storage_options,
    )
    run_cleanup(snapshot.store, plan)


def _number(text: str) -> int:
    if not text.isdigit():
        raise InputError(f"{_PREFIX}… is {text!r}, which is not a number")
    return int(text)
