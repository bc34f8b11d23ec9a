"""Lance tables among the sources of a Spark job: each at one version, read by Python tasks, with no package in the JVM.

::

    {"format": "lance", "paths": ["/lake/orders.lance"], "options": {"version": "4"}}  ->  a DataFrame of version 4

The version is fixed when the source is opened: however often a query names the table, and whenever Spark plans it, the rows
are the same. Of a view only the columns are read whose names are in the query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lance_core.dataset.query.named_columns import named_columns
from lance_core.errors import InputError
from lance_core.jobs.sources.lance_table import OptionsOf, no_options
from lance_core.jobs.specs.secret import reveal_all
from lance_core.jobs.specs.spec import JobSpec, TableRead, WriteSpec
from lance_core.spark.places import check_place


@dataclass(frozen=True)
class LanceTables:
    """How tables are read: `reads` says it by the name of a view, `options_of` gives the options of the others' stores.

    `opened`: by the name of its view, or by uri, the version of each table that was opened.
    """

    options_of: OptionsOf = no_options
    reads: Mapping[str, TableRead] = field(default_factory=dict)
    opened: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, spec: JobSpec) -> LanceTables:
        """As a job's spec says."""
        return cls(reads=spec.table_reads if isinstance(spec, WriteSpec) else {})

    def open(
        self, spark: Any, paths: Sequence[str], options: Mapping[str, str], *, name: str = "", query: str | None = None
    ) -> Any:
        """The DataFrame of a table. `name`: of the view that it becomes; `query`: what reads it.

        InputError for another number of paths than one, an unknown option, and a Spark that has no Python data sources.
        """
        if len(paths) != 1:
            raise InputError(f"a source of format lance needs one path, that of a table; got {len(paths)}")
        try:
            from lance_core.spark.frame import frame_of
            from lance_core.spark.options import parse_options
            from lance_core.spark.table_reader import open_read_snapshot
        except ImportError as error:
            raise InputError(
                f"this Spark cannot read Lance tables: {error}", cure="Use PySpark 4.0 or later, or run without Spark."
            ) from None
        check_place(spark, paths[0])
        read = self.reads.get(name) if name else None
        storage = self.options_of(paths[0]) if read is None else reveal_all(read.storage_options)
        asked = parse_options({"path": paths[0], **options})
        asked = replace(asked, storage={**storage, **asked.storage})
        if read is not None and read.version is not None:
            version = read.version if read.branch is None else (read.branch, read.version)
            asked = replace(asked, asof=None, branch=read.branch, version=version)
        snapshot = open_read_snapshot(asked)
        self.opened[name or paths[0]] = snapshot.version
        fixed = replace(asked, uri=snapshot.uri, asof=None, branch=None, version=snapshot.version)
        if query is not None and fixed.columns is None:
            fixed = replace(fixed, columns=tuple(named_columns(query, snapshot.visible_schema.names)))
        return frame_of(spark, fixed)
