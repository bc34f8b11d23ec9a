"""Everything that a run of operators imports, imported by the process that children are forked from."""

from __future__ import annotations
