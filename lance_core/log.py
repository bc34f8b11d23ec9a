"""The library's log, with the official library's names (`lance.log`). Loggers are called `lance_core.…`.

::

    set_logger("lance.log", level=logging.DEBUG)
"""

from __future__ import annotations

import logging
import os

ENV_NAME_PYLANCE_LOGGING_LEVEL = "LANCE_LOG"
_FORMAT = "%(asctime)s %(name)s [%(levelname)s] %(filename)s:%(lineno)d %(funcName)s : %(message)s"


def get_python_log_level(rust_log_level: str) -> str:
    """Python's name of a level; `trace` is its DEBUG."""
    return "DEBUG" if rust_log_level.lower() == "trace" else rust_log_level


def get_log_level() -> str:
    """The level that the environment variable `LANCE_LOG` asks for: "INFO" unless it says otherwise."""
    entries = [entry for entry in os.environ.get(ENV_NAME_PYLANCE_LOGGING_LEVEL, "").upper().split(",") if entry]
    general = [entry for entry in entries if "=" not in entry]
    return get_python_log_level(general[0]) if general else "INFO"


def set_logger(
    file_path: str | os.PathLike[str] | None = "lance_core.log",
    name: str = "lance_core",
    level: int | str = logging.INFO,
    format_string: str | None = None,
    log_handler: logging.Handler | None = None,
) -> None:
    """Send what the logger `name` and those below it say to a file, or to `log_handler`."""
    logger = logging.getLogger(name)
    logger.setLevel(level)
    handler = log_handler or logging.FileHandler(file_path or "lance_core.log")
    handler.setLevel(level)
    handler.setFormatter(logging.Formatter(format_string or _FORMAT))
    logger.addHandler(handler)
