"""Of each worker of the bridge that Spark starts for these tests: its steps count, and it dies at one while a test says so.

`kill_file` has the other side. Python imports a module of this name as it starts, also where it is none of ours.
"""

from __future__ import annotations

import os
import sys

if os.environ.get("LANCE_TEST_KILLS") and "lance_core.spark.bridge.worker" in sys.orig_argv:
    from kill_file import FilePlan
    from kill_plan import install

    install(FilePlan(os.environ["LANCE_TEST_KILLS"]))  # type: ignore[arg-type]
