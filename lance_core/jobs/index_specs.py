"""The older path of `lance_core.jobs.specs.indices`, kept for one release; import from `lance_core.jobs`."""

from lance_core.jobs.specs.indices import *  # noqa: F403
