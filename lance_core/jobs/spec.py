"""The older path of `lance_core.jobs.specs.spec`, kept for one release; import from `lance_core.jobs`."""

from lance_core.jobs.specs.spec import *  # noqa: F403
