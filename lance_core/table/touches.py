"""What an operation touches, as data: the vocabulary in which conflicts are judged.

delete one row of fragment 3     Touches(modified={3})
drop fragment 3                  Touches(removed={3})
rewrite column 7 of fragment 3   Touches(modified={3}, fields={7}, supplies_values=True)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Touches:
    """The parts of a table one operation changes.

    `modified`: existing fragments whose entry changes; `removed`: existing fragments that go away; `fields`: ids of fields
    that get new values in modified fragments; `supplies_values`: brings rows or values for the schema as it was read;
    `schema`: replaces the schema; `keys`: map name ("config", "table", "schema", "field:3") -> changed keys, None for "all
    of them".
    """

    modified: frozenset[int] = frozenset()
    removed: frozenset[int] = frozenset()
    fields: frozenset[int] = frozenset()
    supplies_values: bool = False
    schema: bool = False
    keys: Mapping[str, frozenset[str] | None] = field(default_factory=dict)

    @property
    def fragments(self) -> frozenset[int]:
        """All existing fragments it modifies or removes."""
        return self.modified | self.removed


NOTHING = Touches()
