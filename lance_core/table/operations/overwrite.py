"""Overwrite: a new schema and new fragments; also creates a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from lance_core.format.fragment import Fragment
from lance_core.format.manifest import BasePath
from lance_core.format.schema import Schema
from lance_core.table.touches import Touches

if TYPE_CHECKING:
    from lance_core.table.draft import ManifestDraft


@dataclass(frozen=True, slots=True)
class Overwrite:
    """Replace everything by `fragments` of `schema`; `config_upsert_values` are added to the configuration."""

    name: ClassVar[str] = "Overwrite"
    fragments: Sequence[Fragment]
    schema: Schema
    config_upsert_values: Mapping[str, str] = field(default_factory=dict)
    initial_bases: tuple[BasePath, ...] = ()

    def touches(self) -> Touches:
        """The schema and some configuration keys; which fragments go away is not known before it is committed."""
        return Touches(schema=True, keys={"config": frozenset(self.config_upsert_values)})

    def apply(self, draft: ManifestDraft) -> None:
        """Start over; ids go on where the table had got to, indices are dropped."""
        draft.add_initial_bases(self.initial_bases)
        draft.clear()
        draft.set_schema(self.schema)
        draft.add_new(self.fragments)
        draft.config.update(self.config_upsert_values)
