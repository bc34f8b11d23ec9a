"""The mark of an attempt that is about to be given up unless it has finished; it and the fence taken back."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress

from lance_core.errors import UnsupportedRecordError
from lance_core.io.parallel import each
from lance_core.io.store import Store
from lance_core.publish.records import FORMAT, add_record
from lance_core.publish.registry import attempts as registry
from lance_core.publish.registry.fences import remove_fence


def finished_meanwhile(store: Store, keys: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Those (identity, attempt) that turn out to have finished.

    The mark goes up before the look, and an attempt looks for it after it has finished: so at least one side sees the other.
    Nobody deletes for the mark, so it may be taken down again.
    """

    def look(store: Store, key: tuple[str, str]) -> bool:
        put_mark(store, *key)
        try:
            finished = registry.find_finished(store, key[0])
        except UnsupportedRecordError:
            remove_mark(store, *key)
            raise
        if finished is None or finished.attempt != key[1]:
            return False
        remove_mark(store, *key)
        return True

    return [key for key, is_finished in zip(keys, each(store, keys, look), strict=True) if is_finished]


def put_mark(store: Store, identity: str, attempt: str) -> None:
    """Say that an attempt which has not finished is about to be given up. UnsupportedRecordError when a newer release has
    put it."""
    mark = {"format": FORMAT, "attempt": attempt, "since": time.time()}
    # Not forced to the disk, as a fence: when this machine dies, whoever it protects from dies as well.
    add_record(store, registry.record_path(identity, attempt, registry.WITHDRAWN), mark, durable=False)


def take_back(store: Store, identity: str, attempt: str) -> None:
    """Remove the fence that the caller itself has raised over an attempt, and its mark."""
    with suppress(UnsupportedRecordError):
        registry.read_mark(store, identity, attempt)  # one of a newer release stays
        remove_mark(store, identity, attempt)
    remove_fence(store, identity, attempt)


def remove_mark(store: Store, identity: str, attempt: str) -> None:
    """Take the mark alone down."""
    store.delete(registry.record_path(identity, attempt, registry.WITHDRAWN))
