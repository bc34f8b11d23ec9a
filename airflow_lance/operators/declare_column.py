"""Declare how a column is computed: takes effect at once, and computes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_lance.compat import AirflowSkipException, Context
from airflow_lance.operators.immediate import LanceImmediateOperator

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import ImmediateArguments


class LanceDeclareColumnOperator(LanceImmediateOperator):
    """Declare a column, which `LanceRefreshColumnsOperator` then keeps true. The same declaration again makes no version.

    Arguments of `LanceImmediateOperator`, and one of sql, function:

    Args:
        column: its name; a column that the table does not have is added, and null until it is refreshed. (templated)
        sql: an expression over other columns, in Lance's own SQL. (templated)
        function: "module:function" or "module:Class", which gets record batches of `inputs` with `arguments` and returns
            a value for each row.
        inputs: the columns that the function reads, with `function` only.
        data_type: the type of a column that is added, as in Spark DDL, such as "string" or "float".
        list_size: the column is a vector of so many values of `data_type`.
        version: of the definition: another one makes every row stale. (templated)
        arguments: of the function, plain JSON values; part of the definition. (templated)
        model: a part of the definition, for people. (templated)
        revision: a part of the definition, for people. (templated)
        where: SQL; the other rows are not computed and hold null. (templated)
        on_error: what becomes of a row for which the function fails: "fail" ends the refresh, "skip" remembers the row; a
            mapping says so by exception or status: `{"429": "retry", "ValueError": "skip", "*": "fail"}`.
        error_retries: how often a call is made again where `on_error` says "retry".
        batch_size: rows of one call, 1,024 unless given.
        batch_bytes: bytes of the inputs of one call; a row that alone has more is a call of its own.
        batch_tokens: tokens of one call, as the function's own `tokens(batch)` counts them for each row.
        deterministic: whether the function gives equal values for equal inputs; else no value stands for another row.
        cache_bytes: bytes of values that are kept beside the table for equal inputs, 0 for none.
        trust_existing: take over the values that the column has.
        confirm: a definition that takes the place of another one makes every row stale, and is an error without it.
        unless: skip the task where that column is declared with `version`, as after a switch to it. (templated)

    Raises:
        AirflowFailException: another definition without `confirm`, inputs that the table lacks, or a type that does not fit.
        AirflowSkipException: the column `unless` is declared with `version`.
    """

    spec = "lance_core.jobs.specs.columns:DeclareColumnSpec"

    template_fields: Sequence[str] = (
        *LanceImmediateOperator.template_fields,
        "column", "sql", "version", "arguments", "model", "revision", "where", "unless",
    )  # fmt: skip
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **LanceImmediateOperator.template_fields_renderers, "sql": "sql", "arguments": "json", "where": "sql",
    }  # fmt: skip

    def __init__(
        self,
        *,
        column: str,
        sql: str | None = None,
        function: str | None = None,
        inputs: Sequence[str] = (),
        data_type: str | None = None,
        list_size: int | None = None,
        version: str = "",
        arguments: Mapping[str, Any] | None = None,
        model: str = "",
        revision: str = "",
        where: str | None = None,
        on_error: str | Mapping[str, str] = "fail",
        error_retries: int = 3,
        batch_size: int | None = None,
        batch_bytes: int | None = None,
        batch_tokens: int | None = None,
        deterministic: bool = True,
        cache_bytes: int = 0,
        trust_existing: bool = False,
        confirm: bool = False,
        unless: str | None = None,
        **kwargs: Unpack[ImmediateArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.column = column
        self.sql = sql
        self.function = function
        self.inputs = list(inputs)
        self.data_type = data_type
        self.list_size = list_size
        self.version = version
        self.arguments = dict(arguments or {})
        self.model = model
        self.revision = revision
        self.where = where
        self.on_error = on_error
        self.error_retries = error_retries
        self.batch_size = batch_size
        self.batch_bytes = batch_bytes
        self.batch_tokens = batch_tokens
        self.deterministic = deterministic
        self.cache_bytes = cache_bytes
        self.trust_existing = trust_existing
        self.confirm = confirm
        self.unless = unless

    def execute(self, context: Context) -> dict[str, Any]:
        """Declare it. AirflowSkipException where `unless` says so."""
        result = super().execute(context)
        if result["skipped"]:
            raise AirflowSkipException(f"column {self.unless!r} of {self.uri} has version {self.version!r} already")
        return result
