"""A process that forks, and the imports of its other threads.

A thread that imports a module holds that module's lock. A fork copies the lock and not the thread: whoever imports the same
module in the child waits for ever. This package imports late what is heavy, in whichever thread needs it first, so that a
fork of a busy process meets such an import sooner or later. So a fork waits for the imports that are under way, and a child
forgets those that began after that: the lock, and the module as far as it had come, which is then imported again.
"""

from __future__ import annotations

import _frozen_importlib as _import_system
import os
import sys
import time
from _thread import get_ident
from typing import Any

LONGEST_WAIT_SECONDS = 10.0
"""An import that hangs is not waited for without end."""
_LOOK_AGAIN_SECONDS = 0.001


def wait_for_imports(*, seconds: float = LONGEST_WAIT_SECONDS) -> None:
    """Return when no other thread is inside an import, at once where this thread is, because others may wait for it."""
    mine, ends = get_ident(), time.monotonic() + seconds
    while (owners := set(_importing().values())) and mine not in owners and time.monotonic() < ends:
        time.sleep(_LOOK_AGAIN_SECONDS)


def forget_imports() -> None:
    """In a forked child: nothing is being imported but by this thread."""
    mine = get_ident()
    for name, owner in _importing().items():
        if owner != mine:
            _module_locks().pop(name, None)
            module = sys.modules.get(name)
            if getattr(getattr(module, "__spec__", None), "_initializing", False):
                sys.modules.pop(name)


def _importing() -> dict[str, int]:
    """The modules whose lock is held, each with the thread that holds it."""
    held = {name: getattr(reference(), "owner", None) for name, reference in [*_module_locks().items()]}
    return {name: owner for name, owner in held.items() if owner is not None}


def _module_locks() -> dict[str, Any]:
    """The locks of the modules that are being imported. Python has them nowhere else; one without them is left alone."""
    found: dict[str, Any] = getattr(_import_system, "_module_locks", {})
    return found


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=wait_for_imports, after_in_child=forget_imports)
