"""The end of a commit: remove the records of landed work. Best effort: garbage collection does the same."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from lance_core.errors import LanceError
from lance_core.io.parallel import each
from lance_core.io.store import Store
from lance_core.publish.model import ALREADY_LANDED
from lance_core.publish.registry.fences import remove_fence
from lance_core.publish.service.tally import Tally
from lance_core.publish.staging.drain import Loaded, drain_landed, drain_published
from lance_core.publish.staging.supersede import clear_superseded

log = logging.getLogger(__name__)


def clear(
    store: Store,
    tally: Tally,
    loaded: Mapping[str, Loaded],
    *,
    fenced: Collection[tuple[str, str]],
    shared: Collection[tuple[str, str]],
    last: Sequence[str] = (),
) -> bool:
    """Remove the records and staged files of what has landed. `fenced`: attempts that this commit
    decided to publish; `shared`: those of them that another had decided to publish before. `last`: what goes last, the claim
    of the commit behind all; whether it is gone."""
    known: dict[int, list[Loaded]] = {}
    for ref in tally.landed:
        known.setdefault(tally.versions[ref.identity], []).append(loaded[ref.identity])
    rest = [uuid for uuid in tally.outcome if uuid not in loaded]
    # The claim goes along where nothing else is to be cleared behind it.
    is_all = bool(last) and len(known) == 1 and not rest and not tally.withdrawn
    done = [
        quietly(partial(drain_published, store, items, published, named=named, shared=shared, last=last if is_all else ()))
        for version, items in known.items()
        for published, named in [tally.published[version]]
    ]
    quietly(lambda: each(store, rest, drain_landed))
    kept = {attempt for ref in tally.landed for attempt in ref.writers}
    for key in fenced:
        if tally.outcome.get(key[0]) == ALREADY_LANDED:
            quietly(partial(remove_fence, store, *key))
    for ref in tally.withdrawn:
        if ref.identity in tally.outcome and ref.attempt not in kept:
            quietly(partial(clear_superseded, store, ref))
    return is_all and all(done)


def quietly(action: Callable[[], object]) -> bool:
    """Do something that garbage collection does as well, when it fails here; whether it was done."""
    try:
        action()
    except LanceError as error:
        log.warning("left for garbage collection: %s", error)
        return False
    return True
