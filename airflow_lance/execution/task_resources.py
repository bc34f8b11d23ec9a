"""What one task of a Spark job needs, as Spark's settings.

::

    {"cpus": 2}               spark.task.cpus=2
    {"gpu": 1}                spark.task.resource.gpu.amount=1       spark.executor.resource.gpu.amount=1
    {"gpu": 0.25}             spark.task.resource.gpu.amount=0.25    four tasks share a device

Spark gives a task the addresses of its devices, and keeps tasks apart by their amounts. How executors find their devices is
the cluster's: a discovery script, a device plugin.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from lance_core.errors import InputError

_NAME = re.compile(r"[a-z][a-z0-9-]{0,62}")
_MOST = 1024


def check_resources(resources: Mapping[str, Any], *, where: str) -> None:
    """InputError for a name or an amount that Spark would refuse when the job is submitted, or later."""
    for name, amount in resources.items():
        if not _NAME.fullmatch(name):
            raise InputError(f"{where}: {name!r} is no name of a resource", cure='As "cpus" or "gpu".')
        if isinstance(amount, bool) or not isinstance(amount, (int, float)) or not 0 < amount <= _MOST:
            raise InputError(f"{where}: {name} must be more than 0 and at most {_MOST}, got {amount!r}")
        if name == "cpus" and amount != int(amount):
            raise InputError(f"{where}: cpus must be a whole number, got {amount!r}")
        if amount != int(amount) and amount > 0.5:
            raise InputError(
                f"{where}: {name} must be a whole number or at most 0.5, got {amount!r}",
                cure="A task takes whole devices, or shares one with at least one other task.",
            )


def resources_conf(resources: Mapping[str, Any], conf: Mapping[str, str]) -> dict[str, str]:
    """Settings for what a task needs, `conf` before them; an executor has at least what one task needs.

    >>> resources_conf({"cpus": 2}, {"spark.executor.memory": "4g"})
    {'spark.task.cpus': '2', 'spark.executor.memory': '4g'}
    """
    made: dict[str, str] = {}
    for name, amount in resources.items():
        told = f"{amount:g}"
        if name == "cpus":
            made["spark.task.cpus"] = told
        else:
            made[f"spark.task.resource.{name}.amount"] = told
            made[f"spark.executor.resource.{name}.amount"] = str(math.ceil(amount))
    return {**made, **conf}
