"""What `LanceHook.write` does for an append with a policy for columns: stage and commit in this process, under no name.

::

    append_rows(frame, "/lake/t.lance", options={}, schema_drift="fill_and_add")     -> one version more
"""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lance_core.errors import InputError


def append_rows(rows: Any, uri: str, *, options: Mapping[str, Any], schema_drift: str, **more: Any) -> dict[str, Any]:
    """Append whatever holds rows; the outcome of the commit. `more` are further fields of an append.

    InputError for what holds no rows; SchemaMismatchError for columns that the policy does not allow.
    """
    import pyarrow as pa

    from lance_core.jobs import api
    from lance_core.jobs.specs.spec import AppendSpec, read_spec

    with tempfile.TemporaryDirectory(prefix="lance-") as folder:
        path = Path(folder) / "rows.arrow"
        with _reader(rows) as reader, pa.ipc.new_file(str(path), reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch)
        source = {"format": "arrow", "paths": [str(path)]}
        fields = {"uri": uri, "identity": str(uuid.uuid4()), "source": source, "schema_drift": schema_drift, **more}
        staged = api.run(read_spec(AppendSpec, fields), options=options)
        return api.commit(uri, [staged], options=options, max_attempts=None)


def _reader(rows: Any) -> Any:
    import pyarrow as pa

    if isinstance(rows, Mapping):
        return pa.table(dict(rows)).to_reader()
    if isinstance(rows, list):
        return pa.Table.from_pylist(rows).to_reader()
    if hasattr(rows, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(rows)
    raise InputError(
        f"cannot append {type(rows).__name__} with a schema_drift",
        cure="Pass an Arrow table or reader, a pandas or Polars frame, a mapping of columns, or a list of rows.",
    )
