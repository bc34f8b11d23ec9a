"""Everything that a run of operators imports, imported by the process that children are forked from."""

from __future__ import annotations

import lance_core.jobs.add_columns
import lance_core.jobs.append
import lance_core.jobs.build_index
import lance_core.jobs.commit
import lance_core.jobs.compact
import lance_core.jobs.delete
import lance_core.jobs.merge
import lance_core.jobs.overwrite
import lance_core.jobs.replace_where
import lance_core.jobs.update  # noqa: F401
