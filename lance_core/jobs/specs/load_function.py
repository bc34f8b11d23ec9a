"""`"module:function"` -> the function; errors that say which half is wrong."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from lance_core.errors import InputError


def load_function(name: str) -> Callable[..., Any]:
    """The callable that a spec names. InputError when the module or the attribute is not there."""
    module_name, _, path = name.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
    except ImportError as error:
        raise InputError(
            f"callable {name}: cannot import {module_name}: {error}",
            cure="Put the module on the PYTHONPATH of the machine that runs the job (spark-submit: py_files).",
        ) from error
    for part in path.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise InputError(f"callable {name}: module {module_name} has no function {path!r}")
    return found  # type: ignore[no-any-return]
