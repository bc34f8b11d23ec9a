"""Publish staged transactions: one short task per table, the only one whose changes readers see.

::

    LanceCommitOperator(task_id="commit", staged=[append.output, mapped.output], pool=pool_of(uri))
        -> XCom {"version": 7, "num_versions": 1, "identities": {"5d2c...": "committed"}, "rows_added": 27004, ...}
        -> each outlet asset's event gets extra {"version": 7, "rows_added": 27004, "identities": {...}, ...}

Any number of staged transactions become as few versions as the format allows. A commit that is retried, cleared or
killed asks first what was committed, so it never doubles a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_lance.compat import Context
from airflow_lance.execution.dataflow import PUBLISHES_WHAT_IS_THERE, commits_later, operator_class, source_tasks
from airflow_lance.execution.errors import as_airflow_errors
from airflow_lance.lineage import Touched, described, lineage
from airflow_lance.operators.stage import LanceStageOperator
from airflow_lance.operators.table import LanceTableOperator
from airflow_lance.pools import DEFAULT_POOL, suggest_pool
from lance_core.errors import InputError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.execution.former_members import Received
    from airflow_lance.signatures import CommitArguments


class LanceCommitOperator(LanceTableOperator):
    """Commit staged transactions of one table.

    Args:
        staged: the XComs of staging tasks: one, a list, or the list that a mapped task gives; None entries (skipped
            tasks) are named in a warning and published as nothing. (templated)
        uri: the table; may be omitted, because the staged references contain it. (templated)
        max_attempts: bounds how often the commit tries again when other writers win; None is the library's default.
        gates: what the added rows must be like, else nothing is published and the task fails without a retry: a list of
            `{"name": ..., "min_rows": ..., "max_rows": ..., "max_deleted_rows": ..., "max_null_rates": {column: share},
            "norms": {column: [least, greatest]}, "unique": [columns], "no_rows": filter, "sql": query over `staged`,
            "callable": "module:function"}`. (templated)
        partitions: keys of the partitions that this commit is about, besides those of the staging tasks. (templated)
        trigger_rule: Airflow's; by default a skipped task does not keep back what the others staged.
        re_execute: stage deletes, updates, replacements and compactions again, in this process, when another writer made
            them invalid; else such a conflict fails the task.

    Raises:
        InputError: references of several tables, or what is no reference of staged work.
        AirflowFailException: a gate that the rows do not pass, or a conflict that no retry settles; nothing is published
            then.
        RetryableConflictError: other writers won `max_attempts` times. Airflow tries the task again.
    """

    commits_others: ClassVar[bool] = True

    template_fields: Sequence[str] = (*LanceTableOperator.template_fields, "staged", "gates", "partitions")
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **LanceTableOperator.template_fields_renderers, "staged": "json", "gates": "json",
    }  # fmt: skip
    ui_color = "#cfe8dd"

    def __init__(
        self,
        *,
        staged: Any,
        uri: str = "",
        max_attempts: int | None = None,
        gates: Sequence[Mapping[str, Any]] = (),
        partitions: Sequence[str] | str | None = None,
        re_execute: bool = True,
        trigger_rule: str = PUBLISHES_WHAT_IS_THERE,
        **kwargs: Unpack[CommitArguments],
    ) -> None:
        super().__init__(uri=uri, trigger_rule=trigger_rule, **kwargs)
        self.staged = staged
        self.max_attempts = max_attempts
        self.gates = list(gates)
        self.partitions = partitions
        self.re_execute = re_execute
        for task in source_tasks(staged):
            if issubclass(operator_class(task), LanceStageOperator):
                commits_later(task)
        # By name: `staged` has the references once it is rendered.
        self.source_task_ids = tuple(task.task_id for task in source_tasks(staged))
        self._options: dict[str, Any] = {}
        self._touched: Touched | None = None

    def execute(self, context: Context) -> dict[str, Any] | None:
        """Commit, and tell the outlets. None when no task staged anything."""
        from airflow_lance.execution.partitions import plain_keys
        from airflow_lance.execution.publish import publish

        with as_airflow_errors(self.uri):
            references = list(staged_references(self.staged))
            missing = list(missing_references(self.staged))
            if missing and references:
                named = ", ".join([*missing[:_NAMED], *["..."][: len(missing) > _NAMED]])
                self.log.warning(
                    "%d of %d staged references are None, so nothing is published for them: %s. "
                    "A task that was skipped or that pushed no XCom gives None.",
                    len(missing), len(missing) + len(references), named,
                )  # fmt: skip
            if not references:
                self.log.info("No task staged a transaction, so the table is unchanged.")
                return None
            uri = self._only_table(references)
            # Kept for the lineage, which is requested after the task and must not ask Airflow for the connection again.
            options = self._options = self.store_options()
            lost = self._lost_members(context, uri=uri, references=references)
            references = [item for item in references if _identity_of(item) not in lost]
            if not references:
                self.log.info("Every member that staged a transaction is gone from its list, so the table is unchanged.")
                self._name_former_members(context, uri=uri, references=references, is_whole=not missing)
                return None
            if self.pool == DEFAULT_POOL:
                self.log.info(suggest_pool(uri))
            result = publish(
                self,
                context,
                uri=uri,
                references=references,
                options=options,
                gates=self.gates,
                max_attempts=self.max_attempts,
                re_execute=self.re_execute,
                partitions=plain_keys([*plain_keys(self.partitions), *_partitions_of(references)]),
            )
            self._name_former_members(context, uri=uri, references=references, is_whole=not missing)
        self._touched = Touched(uri, result["version"], rows=result["rows_added"], bytes=result["bytes_added"])
        return result

    def _lost_members(self, context: Context, *, uri: str, references: Sequence[Mapping[str, Any]]) -> frozenset[str]:
        from airflow_lance.execution.former_members import lost_members

        if not self.source_task_ids or not self.has_dag():  # type: ignore[no-untyped-call]
            return frozenset()
        try:
            return lost_members(self, context, tasks=self.source_task_ids, received=self._received(uri, references, True))
        except Exception as error:  # as before a list shrank: what was received is published
            self.log.warning("Members that are no longer part of a mapped list were not looked for: %s", error)
            return frozenset()

    def _name_former_members(
        self, context: Context, *, uri: str, references: Sequence[Mapping[str, Any]], is_whole: bool
    ) -> None:
        from airflow_lance.execution.former_members import abort_former_members

        if not self.source_task_ids or not self.has_dag():  # type: ignore[no-untyped-call]
            return
        received = self._received(uri, references, is_whole)
        try:
            abort_former_members(self, context, tasks=self.source_task_ids, received=received)
        except Exception as error:  # the commit took effect: whatever is left is garbage collection's
            self.log.warning("Members that are no longer part of a mapped list were not looked for: %s", error)

    def _received(self, uri: str, references: Sequence[Mapping[str, Any]], is_whole: bool) -> Received:
        from airflow_lance.execution.former_members import Received

        return Received(uri, self._options, frozenset(map(_identity_of, references)), is_whole)

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:
        """For OpenLineage: the table at its new version, with its columns and the rows and bytes that were added."""
        return lineage(outputs=[] if self._touched is None else [described(self._touched, options=self._options)])

    def _only_table(self, references: Sequence[Mapping[str, Any]]) -> str:
        from lance_core.jobs.specs.identity import canonical_uri

        uris = {canonical_uri(str(reference["uri"])) for reference in references}
        if self.uri:
            uris.add(canonical_uri(self.table_uri()))
        if len(uris) != 1:
            raise InputError(
                f"a commit task publishes to one table, but these staged writes belong to {', '.join(sorted(uris))}",
                cure="Use one LanceTransaction or LanceCommitOperator per table.",
            )
        self.uri = self.uri or str(references[0]["uri"])
        return self.table_uri()


def _identity_of(reference: Mapping[str, Any]) -> str:
    return str(reference.get("identity") or reference.get("uuid"))


def _partitions_of(references: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for reference in references:
        yield from reference.get("partitions") or ()


_NAMED = 10
"""How many missing references a warning names."""


def missing_references(staged: Any, *, where: str = "staged") -> Iterator[str]:
    """Where an XCom, or a list of them, has None in place of a reference: `staged[1][4]`."""
    if staged is None:
        yield where
    elif isinstance(staged, Iterable) and not isinstance(staged, (str, bytes, Mapping)):
        is_lazy = isinstance(staged, Sequence) and not isinstance(staged, (list, tuple))
        items: Any = staged
        for number, item in enumerate(items[:] if is_lazy else items):
            yield from missing_references(item, where=f"{where}[{number}]")


def staged_references(staged: Any) -> Iterator[Mapping[str, Any]]:
    """Every reference in an XCom, a list of them, or lists of lists; None is skipped. InputError for anything else."""
    if staged is None:
        return
    if isinstance(staged, Mapping):
        if not staged.keys() >= {"uri", "identity"}:
            raise InputError(
                f"a staged reference needs a uri and an identity, got the keys {sorted(map(str, staged))}",
                cure="Pass only the output of staging operators.",
            )
        yield staged
    elif isinstance(staged, Iterable) and not isinstance(staged, (str, bytes)):
        # The results of mapped tasks are a lazy sequence: a slice is one request for all; iterating is one for each, and one
        # more past the end, which Airflow logs as an error.
        is_lazy = isinstance(staged, Sequence) and not isinstance(staged, (list, tuple))
        items: Any = staged
        for item in items[:] if is_lazy else items:
            yield from staged_references(item)
    else:
        raise InputError(
            f"expected references of staged writes, got {type(staged).__name__}",
            cure="Pass the output of staging operators: staged=[append.output].",
        )
