"""Erase rows from every version, branch and index of a table, and report, signed, what still holds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_lance.compat import AirflowFailException, BaseHook, Context, mask_secret
from airflow_lance.execution.arguments import identity_of, with_asker
from airflow_lance.execution.errors import as_airflow_errors
from airflow_lance.lineage import Touched, lineage
from airflow_lance.operators.table import LanceTableOperator
from lance_core.errors import InputError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import TableArguments

MOST_HOLDERS = 200
"""So many places that still have the rows stand in the report; its result is kept in the metadata database."""


class LanceErasureOperator(LanceTableOperator):
    """Delete the rows on the main line and on every branch, rewrite the fragments that held them, build the indices again,
    clean up, and look at what is left. The result is the report; the task fails when a version or a clone still has rows.

    It runs in the worker. A task that was killed goes on where it stood. Arguments of `LanceTableOperator`, and

    Args:
        predicate: a SQL filter: the rows to be erased. (templated)
        predicate_params: values for `:name` in the predicate, put in as literals. (templated)
        signing_conn_id: a connection whose password signs the report (HMAC-SHA256); without it the report is not signed.
            (templated)
        retrain_indices: build every index again, because an index keeps values of deleted rows; an index that a branch
            shares with the main line is dropped on the branch.
        delete_unverified: files of no version go at once. Only when no other writer is at work.
        fail_when_left: whether the task fails when something still has the rows.

    Raises:
        InputError: an empty predicate.
        AirflowFailException: something still has the rows, and `fail_when_left`; or the signing connection has no password.
    """

    template_fields: Sequence[str] = (
        *LanceTableOperator.template_fields, "predicate", "predicate_params", "signing_conn_id",
    )  # fmt: skip
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **LanceTableOperator.template_fields_renderers, "predicate": "sql",
    }  # fmt: skip

    def __init__(
        self,
        *,
        predicate: str,
        predicate_params: Mapping[str, Any] | None = None,
        signing_conn_id: str | None = None,
        retrain_indices: bool = True,
        delete_unverified: bool = False,
        fail_when_left: bool = True,
        **kwargs: Unpack[TableArguments],
    ) -> None:
        super().__init__(**kwargs)
        if not predicate.strip():
            raise InputError(f"{self.task_id}: predicate is empty")
        self.predicate = predicate
        self.predicate_params = dict(predicate_params or {})
        self.signing_conn_id = signing_conn_id
        self.retrain_indices = retrain_indices
        self.delete_unverified = delete_unverified
        self.fail_when_left = fail_when_left
        self._touched: Touched | None = None

    def execute(self, context: Context) -> dict[str, Any]:
        """Erase the rows, look for what still has them, sign the report and return it.

        AirflowFailException when something is left and `fail_when_left`.
        """
        from lance_core.jobs.specs.bind import bind
        from lance_core.jobs.specs.edits import DeleteSpec
        from lance_core.maintenance.erasure import Erasure, erase, sign

        with as_airflow_errors(self.uri):
            key = self._key()
            uri = self.table_uri()
            predicate = bind(self.predicate, self.predicate_params) if self.predicate_params else self.predicate
            identity = identity_of(context, uri=self.identity_uri(uri))
            asked = with_asker(DeleteSpec(uri=uri, predicate=predicate), context, retries=self.retries).asked
            erasure = Erasure(
                uri=uri,
                predicate=predicate,
                # A person's clear is another erasure: rows may have come since.
                identity=f"{identity}{asked.get('clear', '')}",
                asked=asked,
                retrain_indices=self.retrain_indices,
                delete_unverified=self.delete_unverified,
            )
            report = erase(erasure, options=self.store_options())
            for holder in report["holders"]:
                self.log.info("%(line)s: %(kind)s %(name)s: %(why)s", holder)
            left = [holder for holder in report["holders"] if holder["num_rows"]]
            # The log has all of them; what is signed is what is kept.
            kept = sorted(report["holders"], key=lambda holder: not holder["num_rows"])[:MOST_HOLDERS]
            report = {**report, "holders": kept, "num_holders": len(report["holders"])}
            if key is not None:
                report = sign(report, key, key_id=str(self.signing_conn_id))
        self._touched = Touched(uri)
        self.log.info("%s: the rows are %s", uri, "not gone" if left else "gone")
        if left and self.fail_when_left:
            context["ti"].xcom_push(key="report", value=report)
            shown = "; ".join(f"{item['kind']} {item['name']} ({item['why']})" for item in left[:5])
            raise AirflowFailException(f"{uri}: {len(left)} places still have the rows: {shown}")
        return report

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:
        """For OpenLineage: the table."""
        return lineage(outputs=[] if self._touched is None else [self._touched])

    def _key(self) -> bytes | None:
        if self.signing_conn_id is None:
            return None
        key = BaseHook.get_connection(self.signing_conn_id).password
        if not key:
            raise InputError(
                f"{self.task_id}: the connection {self.signing_conn_id!r} has no password to sign the report",
                cure="Set a password of at least 16 random characters.",
            )
        mask_secret(key)
        return str(key).encode()
