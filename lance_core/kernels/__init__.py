"""Hot loops over arrays: arrays in, arrays out, no words of the format. `jit` alone imports numba, when a kernel runs."""

from __future__ import annotations


def load_all() -> None:
    """Import every kernel module, so that `jit.warmup()` knows all kernels."""
    from lance_core.kernels import bits, bytes, fsst  # noqa: F401
