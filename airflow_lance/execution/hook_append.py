"""What `LanceHook.write` does for an append with a policy for columns: stage and commit in this process, under no name.

::

    append_rows(frame, "/lake/t.lance", options={}, schema_drift="fill_and_add")     -> one version more
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from airflow_lance.execution.returned_source import ROWS, private_folder, returned_source


def append_rows(rows: Any, uri: str, *, options: Mapping[str, Any], schema_drift: str, **more: Any) -> dict[str, Any]:
    """Append whatever holds rows; the outcome of the commit. `more` are further fields of an append."""
    from airflow_lance.execution.returned_rows import write_rows
    from lance_core.jobs import api
    from lance_core.jobs.specs.spec import AppendSpec

    name = str(uuid.uuid4())
    source = returned_source(name=name, function=append_rows, arguments=())
    fields = {"uri": uri, "identity": name, "source": source, "schema_drift": schema_drift, **more}
    spec = api.read_spec(AppendSpec, fields)
    with private_folder(name) as folder:
        write_rows(rows, folder / ROWS, what="the caller of LanceHook.write")
        staged = api.run(spec, options=options)
        return api.commit(uri, [staged], options=options, max_attempts=None)
