"""Hot loops over arrays, without knowledge of the format. `jit` alone imports numba, when a kernel runs."""

from __future__ import annotations

import importlib
import pkgutil


def load_all() -> None:
    """Import every kernel module, so that `jit.warmup()` knows all kernels."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
