"""The spec of a merge by key. Standard library only.

::

    {"spec": 1, "kind": "merge", "uri": "/t.lance", "on": ["id"], "source": {"format": "parquet", "paths": ["new.parquet"]},
     "when_matched": "update", "when_not_matched": "insert", "when_not_matched_by_source": "keep"}
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from lance_core.errors import InputError
from lance_core.jobs.specs.edits import ROWS_PER_TASK
from lance_core.jobs.specs.spec import WriteSpec


@dataclass(frozen=True, kw_only=True)
class MergeSpec(WriteSpec):
    """Merge the source's rows into the table by key columns; null keys match nothing.

    - `when_matched`: rows of both "update" to the source's values, "delete", "keep" or "fail";
    - `when_matched_condition`: SQL over `source.x` and `target.x`; only pairs for which it is true are updated;
    - `when_not_matched`: rows of the source alone, "insert" or "keep" out;
    - `when_not_matched_by_source`: rows of the table alone, "keep" or "delete", those that
      `when_not_matched_by_source_condition` selects;
    - `when_duplicate`: a key that two rows of the source have. "fail": refused where the rows would be inserted, or would
      update one row. "last": only the row counts that is read last (in the order of files and their rows; Spark keeps no
      order between files, only within a query with ORDER BY).

    The source may lack columns: they keep their values, or are null in inserted rows. A task holds the source in memory, of
    the table its keys and the rows that change. `create`: as for an append.
    """

    kind: ClassVar[str] = "merge"

    on: tuple[str, ...]
    when_matched: Literal["update", "delete", "keep", "fail"] = "update"
    when_matched_condition: str | None = None
    when_not_matched: Literal["insert", "keep"] = "insert"
    when_not_matched_by_source: Literal["keep", "delete"] = "keep"
    when_not_matched_by_source_condition: str | None = None
    when_duplicate: Literal["fail", "last"] = "fail"
    create: bool = True
    rows_per_task: int = ROWS_PER_TASK

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.on or not all(name.strip() for name in self.on):
            raise InputError("merge: on must name at least one key column", cure='Pass on=["id"].')
        if self.when_matched_condition is not None and self.when_matched != "update":
            raise InputError('merge: when_matched_condition requires when_matched="update"')
        if self.when_not_matched_by_source_condition is not None and self.when_not_matched_by_source != "delete":
            raise InputError('merge: when_not_matched_by_source_condition requires when_not_matched_by_source="delete"')
        if self.changes_nothing:
            raise InputError(
                "merge: no action is set, so nothing would change", cure="Set an action for matched or for unmatched rows."
            )
        if self.rows_per_task < 1:
            raise InputError(f"merge: rows_per_task must be at least 1, got {self.rows_per_task}")

    @property
    def changes_nothing(self) -> bool:
        """Whether no row could change."""
        quiet = self.when_matched in ("keep", "fail") and self.when_not_matched == "keep"
        return quiet and self.when_not_matched_by_source == "keep"
