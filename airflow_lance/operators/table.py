"""Shared by all operators on a table: the table's uri, the connection, the options of its store."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_lance.compat import BaseOperator, BaseOperatorLink, Context
from airflow_lance.connection import plain_uri
from airflow_lance.execution.secrets import check_storage_options, mask_all
from airflow_lance.full_signature import FullSignature
from airflow_lance.hooks.lance import LanceHook
from airflow_lance.links import LancePageLink
from airflow_lance.pools import DEFAULT_POOL, explain_pool

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import TaskArguments


class LanceTableOperator(BaseOperator):
    """An operator on one table.

    Args:
        uri: the table: a full uri, a name below the connection's base uri, or, where the connection has a catalog, its
            name in there, such as `sales.orders`. (templated)
        lance_conn_id: the `lance` connection; the default one need not exist for a full uri. (templated)
        storage_options: more options for the store, over the connection's. A value may be a reference that the
            machine running the job resolves: `{"env": NAME}` or `{"file": PATH}`, with an optional `"key"`. (templated)

    Raises:
        InputError: a storage option that may be a secret stands in the DAG file.
    """

    template_fields: Sequence[str] = ("uri", "lance_conn_id", "storage_options")
    template_fields_renderers: ClassVar[dict[str, str]] = {"storage_options": "json"}
    ui_color = "#e3f0ec"
    operator_extra_links: Collection[BaseOperatorLink] = (LancePageLink(),)
    declares_name: ClassVar[bool] = False
    """Whether the operator makes a table that does not exist: a name that is new is reserved in the catalog."""
    __signature__: ClassVar[Any] = FullSignature()
    resolved_uri = ""
    """The table's full uri, once the task has looked it up; the link to its page needs it."""

    def __init__(
        self,
        *,
        uri: str | os.PathLike[str],
        lance_conn_id: str = LanceHook.default_conn_name,
        storage_options: Mapping[str, Any] | None = None,
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.uri = plain_uri(uri)
        self._hook: LanceHook | None = None
        self.lance_conn_id = lance_conn_id
        self.storage_options = dict(storage_options or {})
        check_storage_options(self.storage_options, where=self.task_id)
        if self.pool != DEFAULT_POOL and not any((self.doc, self.doc_md, self.doc_rst, self.doc_json, self.doc_yaml)):
            # A task that waits for a pool has no log; the page of the task shows its documentation.
            self.doc_md = explain_pool(self.pool, self.uri)

    def prepare_template(self) -> None:
        """Airflow calls this when the DAG is parsed: SQL that stands in a file is read."""
        from airflow_lance.execution.sql_files import resolve_sql_files

        super().prepare_template()
        resolve_sql_files(self)

    def render_template_fields(self, context: Context, jinja_env: Any = None) -> None:
        """Render, then tell the masking what must not show: Airflow stores rendered fields right after this."""
        super().render_template_fields(context, jinja_env)
        fields = [getattr(self, name, None) for name in self.template_fields if name != "storage_options"]
        mask_all(self.storage_options, specs=fields)
        check_storage_options(self.storage_options, where=self.task_id)

    @property
    def lance_hook(self) -> LanceHook:
        """The hook of this task's connection. One for the task, so that a name is resolved once."""
        if self._hook is None or self._hook.lance_conn_id != self.lance_conn_id:
            self._hook = LanceHook(self.lance_conn_id)
        return self._hook

    def table_uri(self) -> str:
        """The table's full uri. NotFoundError for a name that its catalog does not have."""
        self.resolved_uri = self.lance_hook.get_uri(self.uri, declare=self.declares_name)
        return self.resolved_uri

    def identity_uri(self, uri: str) -> str:
        """The uri that identities are made of: that of a named table is its name's, so that a moved table has the same."""
        return self.lance_hook.identity_uri(self.uri) if self.uri else uri

    def store_options(self) -> dict[str, Any]:
        """The connection's options and over them this operator's; values are text or references."""
        mask_all(self.storage_options)
        return {**self.lance_hook.storage_options(self.uri), **self.storage_options}
