"""One try of a task in a process of its own, for tests that kill it: its driver runs on a standalone cluster.

::

    python reattach_task.py TABLE STATES        STATES: the task's state store, a JSON file that outlives the process
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

CONF = {"spark.ui.enabled": "false", "spark.executor.memory": "512m", "spark.pyspark.python": sys.executable}


class States:
    """Airflow's task state store, as far as the Spark provider asks it."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    def _read(self) -> dict[str, Any]:
        return json.loads(self._path.read_text()) if self._path.exists() else {}

    def get(self, key: str) -> Any:
        """A kept value."""
        return self._read().get(key)

    def set(self, key: str, value: Any) -> None:
        """Keep a value."""
        self._path.write_text(json.dumps({**self._read(), key: value}))

    def delete(self, key: str) -> None:
        """Forget a value."""
        self._path.write_text(json.dumps({name: value for name, value in self._read().items() if name != key}))


def main(uri: str, states: str) -> None:
    """Stage slow rows; prints the reference."""
    from airflow_lance.operators.append import LanceAppendOperator

    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    operator = LanceAppendOperator(
        task_id="append",
        uri=uri,
        source={
            "callable": "slow_source:slow_rows",
            "kwargs": {"rows": 1000, "partitions": 2, "seconds": 20},
        },
        spark_conn_id="standalone",
        conf=CONF,
        spark_submit={"driver_memory": "512m", "deploy_mode": "cluster"},
        commit="elsewhere",
    )
    ti = SimpleNamespace(dag_id="d", run_id="r", task_id="append", map_index=-1, try_number=1, stats_tags={})
    context: Any = {"ti": ti, "outlet_events": {}, "task_state_store": States(states)}
    print(json.dumps(operator.execute(context)))


if __name__ == "__main__":
    main(*sys.argv[1:])
