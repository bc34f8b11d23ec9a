"""Which Python functions jobs of this deployment may call: `[lance] allowed_callables`.

::

    [lance]
    allowed_callables = our_company.sources:*, our_company.gates:no_gaps

A spec names a function as `"module:function"`, and a DAG may fill that text from a template. Unset, every function is
allowed, because the author of the DAG runs code anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

from airflow_lance.compat import configured
from airflow_lance.execution.returned_source import READER
from lance_core.errors import InputError

OPTION = "allowed_callables"
_NAMES = frozenset({"callable", "function"})


def check_callables(plain: object) -> None:
    """InputError when a spec, a source or a gate names a function that the deployment does not allow."""
    allowed = [pattern.strip() for pattern in configured(OPTION).split(",") if pattern.strip()]
    for name in _callables(plain) if allowed else ():
        if name != READER and not any(fnmatchcase(name, pattern) for pattern in allowed):
            raise InputError(
                f"the function {name!r} is not allowed in this deployment",
                cure=f"Add it to [lance] {OPTION}, which allows {', '.join(allowed)}.",
            )


def _callables(plain: object) -> Iterator[str]:
    if isinstance(plain, Mapping):
        for name, value in plain.items():
            if name in _NAMES and isinstance(value, str):
                yield value
            elif name != "kwargs":
                yield from _callables(value)
    elif isinstance(plain, (list, tuple)):
        for item in plain:
            yield from _callables(item)
