"""Say what a table and its columns are, whose they are, and how fresh the rows shall be: takes effect at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from airflow_lance.operators.immediate import LanceImmediateOperator

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import ImmediateArguments


class LanceDescribeOperator(LanceImmediateOperator):
    """Describe a table and its columns, in one version; none where all is said already. The words are kept in the table's
    own metadata and shown on its page. Arguments of `LanceImmediateOperator`, and

    Args:
        description: what a row of the table is; "" takes it away, None leaves what is said. (templated)
        table_owner: who answers questions about the table. (templated)
        fresh_within: rows shall have changed within that time, such as "26h" or "2days"; the page and `lance doctor` say
            when they have not. (templated)
        columns: dotted path -> a description, or a mapping with `description` and `owner`. (templated)

    Raises:
        AirflowFailException: a column that the table does not have.
    """

    spec = "lance_core.jobs.specs.definition:DescribeSpec"
    renamed: ClassVar[Mapping[str, str]] = {"owner": "table_owner"}

    template_fields: Sequence[str] = (
        *LanceImmediateOperator.template_fields, "description", "table_owner", "fresh_within", "columns",
    )  # fmt: skip
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **LanceImmediateOperator.template_fields_renderers, "columns": "json",
    }  # fmt: skip

    def __init__(
        self,
        *,
        description: str | None = None,
        table_owner: str | None = None,
        fresh_within: str | None = None,
        columns: Mapping[str, str | Mapping[str, str]] | None = None,
        **kwargs: Unpack[ImmediateArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.description = description
        self.table_owner = table_owner
        self.fresh_within = fresh_within
        self.columns = dict(columns or {})
