"""A folder for temporary files on this machine; when its disk fails the error is typed."""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lance_core.errors import LanceError, StoreError, StoreRefusedError

_REFUSED = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EFBIG})


@contextmanager
def scratch_folder(purpose: str) -> Iterator[Path]:
    """A new folder below the temporary directory, removed at the end.

    An OSError inside becomes StoreRefusedError where a retry cannot help (the disk is full, permission is missing), else
    StoreError. LanceErrors pass as they are.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="lance-scratch-", ignore_cleanup_errors=True) as folder:
            yield Path(folder)
    except LanceError:
        raise
    except OSError as error:
        kind = StoreRefusedError if error.errno in _REFUSED else StoreError
        raise kind(
            f"temporary files for {purpose} cannot be written: {error.strerror or error}",
            cure="Free space in the temporary directory, or set TMPDIR to one with space and write permission.",
        ) from error
