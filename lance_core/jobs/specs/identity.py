"""Who asks for a write: one uuid per unit of orchestrated work, the same on every retry.

A retry, a cleared task, a zombie that wakes up and a restarted scheduler all compute the same uuid, so the commit can see
that the work has landed already. The try number, a job id or a clock never enter it. Standard library only.

::

    make_identity("s3://lake/flights", dag_id="flights", run_id="2013-01", task_id="append")
    -> uuid5(NAMESPACE, '["s3://lake/flights","flights","2013-01","append",-1,""]')
"""

from __future__ import annotations

import json
import uuid

NAMESPACE = uuid.UUID("6f0d3c51-7b3e-5d0c-9a4b-2f6f1f0a7c11")
"""Fixed for ever: changing it would make every write that has landed look new."""


def make_identity(uri: str, *, dag_id: str, run_id: str, task_id: str, map_index: int = -1, key: str = "") -> str:
    """The uuid of one unit of work, as text.

    `uri` is the table as users know it; a trailing slash and a `file://` prefix make no difference. `key` tells apart
    several writes to one table from one task instance. Parts are joined as JSON, so no two different tuples of parts
    can meet in one text.
    """
    parts = [canonical_uri(uri), dag_id, run_id, task_id, map_index, key]
    return str(uuid.uuid5(NAMESPACE, json.dumps(parts, ensure_ascii=True, separators=(",", ":"))))


def random_identity() -> str:
    """An identity for a caller that has none to offer: exactly-once then holds within this one call only."""
    return str(uuid.uuid4())


def canonical_uri(uri: str) -> str:
    """The uri without what does not change the place it names: `file://`, trailing slashes."""
    bare = uri[len("file://") :] if uri.startswith("file://") else uri
    return bare.rstrip("/") or "/"
