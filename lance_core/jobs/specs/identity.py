"""The identity of a write: one uuid per unit of orchestrated work, the same on every retry.

A retry, a cleared task, a zombie that wakes up and a restarted scheduler all compute the same uuid, so the commit can see
that the work was committed already. The try number, a job id or a clock never enter it. Standard library only.

::

    make_identity("s3://lake/flights", dag_id="flights", run_id="2013-01", task_id="append")
    -> uuid5(NAMESPACE, '["s3://lake/flights","flights","2013-01","append",-1,""]')
"""

from __future__ import annotations

import json
import posixpath
import re
import uuid
from collections.abc import Mapping

NAMESPACE = uuid.UUID("6f0d3c51-7b3e-5d0c-9a4b-2f6f1f0a7c11")
"""Fixed for ever: changing it would make every write that was committed look new."""


def make_identity(
    uri: str,
    *,
    dag_id: str,
    run_id: str,
    task_id: str,
    map_index: int = -1,
    key: str = "",
    idempotency_key: str = "",
) -> str:
    """The uuid of one unit of work, as text.

    `uri` is the table as users know it; see `canonical_uri` for what makes no difference. `key` tells apart several writes
    to one table from one task instance. `idempotency_key` takes the place of dag, run and task: work that is done once
    for each such text, whatever the task. Parts are joined as JSON, so no two different tuples of parts can meet in one
    text.

    The map indices of one task have the first 18 characters in common, so that one listing finds what is known of all of
    them.
    """
    own = _uuid(_parts(canonical_uri(uri), dag_id, run_id, task_id, map_index, key, idempotency_key))
    if map_index < 0:
        return own
    task = _uuid(_parts(canonical_uri(uri), dag_id, run_id, task_id, -1, key, idempotency_key))
    return task[:_OF_TASK] + own[_OF_TASK:]


_OF_TASK = 18
"""Characters of an identity that the map indices of one task share: 60 random bits; the others tell the indices apart."""


DEFAULT_ON_CLEAR: Mapping[str, str] = {
    "overwrite": "again", "replace_where": "again", "merge": "again", "refresh_columns": "again",
}  # fmt: skip
"""What a person's clear means for committed work: doing these again gives the same rows. For every other kind: "fail"."""


def identity_after_clear(identity: str, *, clear: str, on_clear: str) -> str:
    """The identity of work that a person cleared: a new one for each clear where it is to be published "again"."""
    if not (identity and clear and on_clear == "again"):
        return identity
    # What the members of one task have in common, they have in common afterwards.
    return _uuid([identity[:_OF_TASK], clear])[:_OF_TASK] + _uuid([identity, clear])[_OF_TASK:]


def _parts(
    uri: str, dag_id: str, run_id: str, task_id: str, map_index: int, key: str, idempotency_key: str
) -> list[str | int]:
    if idempotency_key:
        return [uri, map_index, key, "idempotency_key", idempotency_key]
    return [uri, dag_id, run_id, task_id, map_index, key]


def _uuid(parts: list[str | int] | list[str]) -> str:
    return str(uuid.uuid5(NAMESPACE, json.dumps(parts, ensure_ascii=True, separators=(",", ":"))))


def random_identity() -> str:
    """An identity for a caller that has none to offer: exactly-once then holds within this one call only."""
    return str(uuid.uuid4())


_SCHEMES: Mapping[str, str] = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfs": "abfss", "adl": "abfss"}
"""Other names of the same place."""


def canonical_uri(uri: str) -> str:
    """The uri without what does not change the place it names.

    ::

        file:///lake/t/  /lake//t  /lake/./t      -> /lake/t
        S3A://lake/a//t  s3://lake/a/t/           -> s3://lake/a/t
    """
    found = re.match(r"([A-Za-z][A-Za-z0-9+.-]*):(?://)?", uri)
    if found is None or len(found[1]) == 1:
        return _plain_path(uri)
    scheme, rest = found[1].lower(), uri[found.end() :]
    if scheme == "file":
        return _plain_path("/" + rest.removeprefix("localhost/").lstrip("/"))
    rest, mark, query = rest.partition("?")
    parts = [part for part in rest.split("/") if part not in ("", ".")]
    return f"{_SCHEMES.get(scheme, scheme)}://{'/'.join(parts)}{mark}{query}"


def _plain_path(path: str) -> str:
    bare = posixpath.normpath(re.sub(r"/+", "/", path)) if ".." not in path.split("/") else path.rstrip("/")
    return bare or "/"
