"""Which Python functions jobs of this deployment may call: `[lance] allowed_callables`.

::

    [lance]
    allowed_callables = our_company.sources:*, our_company.gates:no_gaps

A spec names a function as `"module:function"`, and a DAG may fill that text from a template. Unset, every function is
allowed, because the author of the DAG runs code anyway. Set, a text is one public name of an allowed module, and where it
is loaded (here, in a driver, in an executor) the function must have been defined in an allowed module:
`our_company.sources:os.system` is not, and neither is `system` of a module with `from os import system`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from airflow_lance.compat import configured
from airflow_lance.execution.returned_source import READER
from lance_core.jobs.specs.load_function import ALLOWED_VARIABLE, check_name, patterns_of

OPTION = "allowed_callables"
_NAMES = frozenset({"callable", "function"})


def check_callables(plain: object) -> None:
    """InputError when a spec, a source or a gate names a function that the deployment does not allow.

    What a name stands for is checked where it is loaded. The list goes there in this task's environment, which drivers and
    the executors of a local master inherit; `allowed_conf` takes it to the others.
    """
    allowed = allowed_here()
    if not allowed:
        os.environ.pop(ALLOWED_VARIABLE, None)
        return
    os.environ[ALLOWED_VARIABLE] = ",".join(allowed)
    for name in _callables(plain):
        check_name(name, allowed)


def allowed_here() -> tuple[str, ...]:
    """The patterns of this deployment, and the reader of what decorated functions return; empty when all is allowed."""
    allowed = patterns_of(configured(OPTION))
    return (*allowed, READER) if allowed else ()


def allowed_conf() -> dict[str, str]:
    """Spark's settings that give the list to drivers on a cluster and to executors."""
    text = ",".join(allowed_here())
    places = ("spark.executorEnv.", "spark.yarn.appMasterEnv.", "spark.kubernetes.driverEnv.")
    return {f"{place}{ALLOWED_VARIABLE}": text for place in places} if text else {}


def _callables(plain: object) -> Iterator[str]:
    if isinstance(plain, Mapping):
        for name, value in plain.items():
            if name in _NAMES and isinstance(value, str):
                yield value
            elif name == "functions" and isinstance(value, (list, tuple)):
                yield from (item for item in value if isinstance(item, str))
            elif name != "kwargs":
                yield from _callables(value)
    elif isinstance(plain, (list, tuple)):
        for item in plain:
            yield from _callables(item)
