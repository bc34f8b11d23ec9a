"""Extend indices to rows that were added after the build: staged now, published by the commit task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from airflow_lance.operators.stage import LanceStageOperator

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import StageArguments


class LanceOptimizeIndicesOperator(LanceStageOperator):
    """Stage new segments for indices that do not cover all rows. When all do, nothing is written and the commit says
    "already committed". Arguments of `LanceStageOperator`, and

    Args:
        index_names: these only; None means all. (templated)
        num_indices_to_merge: how many of an index's youngest segments go into the new one; None: all, 0: a further
            segment. (templated)
        retrain: build everything again.
        strategy: "all", or "tiered": merge the youngest segments only when enough of about one size have gathered.
            (templated)
        properties: text that is kept in the transaction. (templated)

    Raises:
        AirflowFailException: no index of such a name.
    """

    spec = "lance_core.jobs.specs.indices:OptimizeIndicesSpec"

    template_fields: Sequence[str] = (
        *LanceStageOperator.template_fields, "index_names", "num_indices_to_merge", "strategy", "properties",
    )  # fmt: skip
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **LanceStageOperator.template_fields_renderers, "properties": "json",
    }  # fmt: skip

    def __init__(
        self,
        *,
        index_names: Sequence[str] | None = None,
        num_indices_to_merge: int | str | None = None,
        retrain: bool = False,
        strategy: str | None = None,
        properties: Mapping[str, str] | None = None,
        **kwargs: Unpack[StageArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.index_names = index_names
        self.num_indices_to_merge = num_indices_to_merge
        self.retrain = retrain
        self.strategy = strategy
        self.properties = dict(properties or {})
