"""Why a file vanished under a staging job: its attempt was aborted, or the version that it read was removed.

Both end well when the task runs again, so neither may end as "no such file", which looks like a damaged table and keeps a
scheduler from trying again.
"""

from __future__ import annotations

from lance_core.commit.manifests import version_numbers
from lance_core.errors import LanceError, NotFoundError, RetryableConflictError, StoreError
from lance_core.io.paths import UNFINISHED_GONE
from lance_core.io.store import Store
from lance_core.publish.attempts import is_over
from lance_core.publish.model import Attempt


def explain_lost_file(store: Store, attempt: Attempt, error: BaseException) -> RetryableConflictError | None:
    """What to raise in the place of an error; None where it speaks for itself. Ask before the attempt's records go."""
    if not (isinstance(error, NotFoundError) or (isinstance(error, StoreError) and error.operation == UNFINISHED_GONE)):
        return None
    try:
        if is_over(store, attempt.identity, attempt.attempt):
            return RetryableConflictError(
                f"{store.uri}: attempt {attempt.attempt} of {attempt.identity} was aborted while it ran, by a further try "
                f"of its task, an abort or garbage collection, and its files are gone ({error})",
                uri=store.uri,
                cure="Run the task again: it first checks what the other try has done.",
            )
        if attempt.read_version and attempt.read_version not in version_numbers(store):
            return RetryableConflictError(
                f"{store.uri}: a cleanup removed version {attempt.read_version} while attempt {attempt.attempt} of "
                f"{attempt.identity} read it ({error})",
                uri=store.uri,
                version=attempt.read_version,
                cure="Run the task again, and keep versions for longer than its work takes.",
            )
    except LanceError:
        return None  # the store fails: the error itself says more
    return None
