"""`"module:function"` -> the function; errors that say which half is wrong, and what the deployment allows.

::

    LANCE_ALLOWED_CALLABLES = "our_company.sources:*"
    our_company.sources:flights     -> the function
    our_company.sources:os.system   refused: one public name of the module, no path through what it imports
    our_company.sources:system      refused where the module has it from `from os import system`

The list is a deployment's (`[lance] allowed_callables`). It is asked where the function is loaded, because only there is
known what a name stands for; so it travels to drivers and executors as an environment variable, and inside pickled work.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import os
import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any

from lance_core.errors import InputError

ALLOWED_VARIABLE = "LANCE_ALLOWED_CALLABLES"
"""Comma-separated patterns of `module:function`; unset or empty, every function is allowed."""

_ONE_PUBLIC_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z]\w*", re.ASCII)


def allowed_callables() -> tuple[str, ...]:
    """The patterns of this process; empty where everything is allowed."""
    return patterns_of(os.environ.get(ALLOWED_VARIABLE, ""))


def patterns_of(text: str) -> tuple[str, ...]:
    """The patterns of a comma-separated list."""
    return tuple(pattern.strip() for pattern in text.split(",") if pattern.strip())


def load_function(name: str, *, allowed: Sequence[str] | None = None) -> Callable[..., Any]:
    """The callable that a spec names. InputError when the module or the attribute is not there, or is not allowed.

    `allowed`: the patterns that count, those of this process unless given.
    """
    patterns = allowed_callables() if allowed is None else allowed
    if patterns:
        check_name(name, patterns)
    module_name, _, path = name.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise InputError(
            f"callable {name}: cannot import {module_name}: {error}",
            cure="Put the module on the PYTHONPATH of the machine that runs the job (spark-submit: py_files).",
        ) from error
    found: Any = module
    for part in path.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        near = difflib.get_close_matches(path, [key for key, value in vars(module).items() if callable(value)], n=2)
        raise InputError(
            f"callable {name}: module {module_name} has no function {path!r}",
            cure=f"Did you mean {' or '.join(near)}?" if near else 'Write it as "module:function".',
        )
    if patterns:
        _check_found(name, found, patterns)
    return found  # type: ignore[no-any-return]


def check_name(name: str, patterns: Sequence[str]) -> None:
    """InputError for a text that no pattern allows, or that is more than one public name of a module."""
    if not _ONE_PUBLIC_NAME.fullmatch(name) or not _matches(name, patterns):
        raise _refused(name, patterns, "it is not one public name of an allowed module")


def _check_found(name: str, found: Any, patterns: Sequence[str]) -> None:
    """InputError unless the function, and what it wraps, was defined in a module that is allowed."""
    inner = inspect.unwrap(found)
    for item in (found, inner):
        if not (inspect.isfunction(item) or inspect.isclass(item)):
            raise _refused(name, patterns, f"it is a {type(item).__name__}, neither a Python function nor a class")
    modules = {str(found.__module__), str(inner.__module__)}
    if inspect.isfunction(inner):  # a decorator copies `__module__`, the namespace of the code cannot be copied
        modules.add(str(inner.__globals__.get("__name__", "")))
    own = name.partition(":")[2]
    for module in sorted(modules):
        if not _matches(f"{module}:{own}", patterns):
            raise _refused(name, patterns, f"it was defined in {module or 'no module'}")


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _refused(name: str, patterns: Sequence[str], why: str) -> InputError:
    return InputError(
        f"the function {name[:200]!r} is not allowed in this deployment: {why}",
        cure=f"Add it to [lance] allowed_callables, which allows {', '.join(patterns)}.",
    )
