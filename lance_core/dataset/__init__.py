"""The public face of the dataset API. Calling the module opens a table.

::

    lance_core.dataset("/t.lance")               opens a table, as the official library's `lance.dataset` does
    from lance_core.dataset.write import ...     the rooms below

One name is both: a module that can be called. Nothing heavy is imported before it is.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _CallableModule(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Open a table: see `lance_core.dataset.handle.open.dataset`."""
        from lance_core.dataset.handle.open import dataset

        return dataset(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule
