"""SQL: a SELECT over several tables, each at one version, whose rows are the result or become a file."""

from __future__ import annotations

import logging
from typing import Any

from lance_core.jobs.acts.query import bounded_result, export
from lance_core.jobs.runtime.local_runner import LocalRunner
from lance_core.jobs.runtime.protocols import Report, Runner
from lance_core.jobs.sources.open_source import from_sql
from lance_core.jobs.specs.definition import SqlSpec

log = logging.getLogger(__name__)


def sql(spec: SqlSpec, runner: Runner | None = None) -> Report:
    """Report {"num_rows", "rows" or "target", "inputs": {name: version}}."""
    options = spec.resolved_options()
    options_of = runner.options_of if isinstance(runner, LocalRunner) else lambda _: options
    source = from_sql(spec.sql, spec.tables, options_of, what="the query")
    facts: dict[str, Any] = {"inputs": {name: table.version for name, table in source.tables.items()}}
    if spec.target is None:
        facts |= bounded_result(source.batches(), spec.max_rows, max_bytes=spec.max_bytes)
    else:
        rows = export(source.reader(), spec.target, format=spec.format, options=options)
        facts |= {"num_rows": rows, "target": spec.target}
    log.info("query over %s: %d rows", facts["inputs"], facts["num_rows"])
    return Report(spec.kind, facts)
