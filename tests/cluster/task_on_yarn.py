"""One try of a task in a process of its own, for tests that kill it.

::

    python task_on_yarn.py client|cluster TABLE STATES SOURCE      STATES: the task's state store, a JSON file
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.cluster.yarn_support import append
from tests.integration.sources.reattach_task import States


def main(mode: str, uri: str, states: str, source: str) -> None:
    """Append; prints the result."""
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    tracked = {"yarn_track_via_rm_api": True, "status_poll_interval": 1} if mode == "cluster" else {}
    kept = States(states) if mode == "cluster" else None
    print(json.dumps(append(uri, json.loads(source), mode=mode, states=kept, spark_submit=tracked)))


if __name__ == "__main__":
    main(*sys.argv[1:])
