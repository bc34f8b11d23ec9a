"""Everything that a run of operators imports, imported by the process that children are forked from."""

from __future__ import annotations

import lance_core.jobs.publish.commit
import lance_core.jobs.staging.add_columns
import lance_core.jobs.staging.append
import lance_core.jobs.staging.build_index
import lance_core.jobs.staging.compact
import lance_core.jobs.staging.delete
import lance_core.jobs.staging.merge
import lance_core.jobs.staging.overwrite
import lance_core.jobs.staging.replace_where
import lance_core.jobs.staging.update  # noqa: F401
