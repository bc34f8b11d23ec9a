"""Replace where: replace the rows that a filter selects by those of the source, as one Update: the backfill of a day.

::

    main pass     the source's rows, each of which must satisfy the predicate   -> new fragments
    second pass   the table's fragments, searched for matching rows     -> deletion files
    together      one Update; a reader sees the old day or the new one, never a gap

Run it again and nothing changes. A commit of other days in the meantime does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lance_core.arrow import schema_to_arrow
from lance_core.commit.identities import CREATES_PROPERTY
from lance_core.errors import NotFoundError
from lance_core.expr import parse_filter
from lance_core.format.manifest import Manifest
from lance_core.jobs.plans.assumptions import assumes_predicate
from lance_core.jobs.plans.delete import StageDelete
from lance_core.jobs.plans.edit_fragments import count_taken, edit_work, existing, group_fragments, operations_of
from lance_core.jobs.plans.write_fragments import RefusesNoRows, fragments_of, plan_new_contents, plan_new_rows
from lance_core.jobs.runtime.lifecycle import SECOND_PASS
from lance_core.jobs.runtime.protocols import JobSource, Pass, Plan, Runner, StagedOperation, TableState, TaskResult
from lance_core.jobs.specs.edits import ReplaceWhereSpec
from lance_core.table.operations.delete import Delete
from lance_core.table.operations.update import Update


@dataclass(frozen=True)
class ReplacesRows:
    """Results of both passes become one Update."""

    manifest: Manifest

    def __call__(self, results: Sequence[TaskResult]) -> StagedOperation:
        """New fragments from the first pass, updated and removed ones from the second."""
        new = fragments_of([result for result in results if result.partition < SECOND_PASS])
        parts = operations_of([result for result in results if result.partition >= SECOND_PASS], Delete)
        operation = Update(
            removed_fragment_ids=tuple(number for part in parts for number in part.deleted_fragment_ids),
            updated_fragments=tuple(fragment for part in parts for fragment in part.updated_fragments),
            new_fragments=new,
            # All columns are new: no index covers a new row because it covered one that went.
            fields_for_preserving_frag_bitmap=tuple(item.id for item in self.manifest.schema.fields),
        )
        taken = count_taken(self.manifest, operation.updated_fragments, operation.removed_fragment_ids)
        return StagedOperation(operation, sum(item.physical_rows for item in new), num_deleted=taken)


def plan_replace(spec: ReplaceWhereSpec, table: TableState, runner: Runner) -> Plan:
    """Check source, schema and filter. InputError, SchemaMismatchError, FilterError before anything is written."""
    if table.manifest is None and not spec.create:
        raise NotFoundError(
            f"there is no Lance table at {spec.uri}", uri=spec.uri, cure="Create it, or run with create=True."
        )
    types = None if table.manifest is None else schema_to_arrow(table.manifest.schema)
    source = runner.open_source(spec.source, table=types)
    if table.manifest is None:
        parse_filter(spec.predicate, source.schema)
        assumed = assumes_predicate(spec.predicate)
        return plan_new_contents(spec, table, source, properties={**spec.properties, **assumed, CREATES_PROPERTY: "append"})
    return _plan_exchange(spec, table, source, runner)


def _plan_exchange(spec: ReplaceWhereSpec, table: TableState, source: JobSource, runner: Runner) -> Plan:
    manifest = existing(table, spec).manifest
    parse_filter(spec.predicate, schema_to_arrow(manifest.schema))
    groups = group_fragments(manifest.fragments, rows=spec.rows_per_task)
    tasks = runner.open_tasks(len(groups))
    second = Pass(
        lambda attempt, _: (tasks, edit_work(
            spec, attempt, groups, StageDelete(spec.predicate),
            progress_seconds=spec.progress_seconds, first_partition=SECOND_PASS,
        )),
    )  # fmt: skip
    properties = {**spec.properties, **assumes_predicate(spec.predicate)}
    replaces = ReplacesRows(manifest)
    conclude = replaces if spec.allow_empty else RefusesNoRows(replaces, spec.kind, spec.uri)
    return plan_new_rows(spec, table, source, manifest, conclude=conclude, properties=properties, then=(second,))
