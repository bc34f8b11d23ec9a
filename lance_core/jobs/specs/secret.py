"""The value of a storage option that is never logged, or a reference to where it is kept.

In JSON a literal is a string; a reference is a small object and is resolved on the machine that runs the job::

    "us-east-1"                                                  the value itself
    {"env": "AWS_SECRET_ACCESS_KEY"}                             an environment variable
    {"env": "AIRFLOW_CONN_LAKE", "key": "extra.aws_secret"}      one entry of a connection kept as JSON in a variable
    {"file": "/run/secrets/lake", "key": "password"}             a mounted file, whole or one entry of its JSON

Standard library only.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lance_core.errors import InputError

HIDDEN = "***"


@dataclass(frozen=True, repr=False)
class Secret:
    """A literal `value`, or a reference to an environment variable or a file (exactly one of the three).

    `key` is a dotted path into the JSON that the variable or the file holds.
    """

    value: str | None = None
    env: str | None = None
    file: str | None = None
    key: str = ""

    def __post_init__(self) -> None:
        given = [name for name in ("value", "env", "file") if getattr(self, name) is not None]
        if len(given) != 1:
            raise InputError(f"a secret needs exactly one of value, env, file; got {given or 'none'}")
        if self.key and self.value is not None:
            raise InputError("the key of a secret requires env or file and cannot be combined with a literal value")

    def __repr__(self) -> str:
        if self.value is not None:
            return f"Secret({HIDDEN})"
        where = f"env={self.env!r}" if self.env is not None else f"file={self.file!r}"
        return f"Secret({where}, key={self.key!r})" if self.key else f"Secret({where})"

    __str__ = __repr__

    def reveal(self) -> str:
        """The value. InputError when the variable, the file or the key is not there."""
        if self.value is not None:
            return self.value
        if self.env is not None:
            text, where = os.environ.get(self.env), f"environment variable {self.env}"
        else:
            text, where = _read(str(self.file)), f"file {self.file}"
        if text is None:
            raise InputError(f"a storage option refers to {where}, which does not exist", cure="Set it where the job runs.")
        return _lookup(text, self.key, where) if self.key else text

    def to_json(self) -> str | dict[str, str]:
        """Plain data as in the module's head; a literal travels as itself."""
        if self.value is not None:
            return self.value
        place = {"env": self.env} if self.env is not None else {"file": str(self.file)}
        return {**place, **({"key": self.key} if self.key else {})}

    @property
    def is_literal(self) -> bool:
        """Whether the value itself is in here, so that JSON of it must not be shown."""
        return self.value is not None


def as_secret(value: object, *, where: str) -> Secret:
    """A Secret from JSON: a string, a number, a boolean, or a reference object. InputError otherwise."""
    if isinstance(value, Secret):
        return value
    if isinstance(value, bool):
        return Secret(value="true" if value else "false")
    if isinstance(value, (str, int, float)):
        return Secret(value=str(value))
    if isinstance(value, Mapping) and value and set(value) <= {"env", "file", "key"}:
        return Secret(**{str(name): str(text) for name, text in value.items()})
    shown = sorted(value) if isinstance(value, Mapping) else type(value).__name__
    raise InputError(
        f"{where}: expected a string or a reference, got {shown}",
        cure='Pass "text", {"env": NAME} or {"file": PATH}, the last two with an optional "key".',
    )


def reveal_all(options: Mapping[str, Any] | None) -> dict[str, str]:
    """Options with every value revealed: for the store, never for a log."""
    return {name: as_secret(value, where=name).reveal() for name, value in (options or {}).items()}


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8").rstrip("\n")
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except (OSError, ValueError) as error:  # a UnicodeDecodeError would quote what it could not read
        raise InputError(
            f"a storage option refers to file {path}, which this user cannot read as text ({type(error).__name__})",
            cure="Make the user of the job the owner of the file, or refer to an environment variable.",
        ) from None


def _lookup(text: str, key: str, where: str) -> str:
    try:
        found: Any = json.loads(text)
    except ValueError:
        # The text may be a password: never quote it, nor the parser's message, which may quote it.
        raise InputError(f"{where} is not JSON, so {key!r} cannot be read from it") from None
    for part in key.split("."):
        # Airflow stores a connection's `extra` as JSON inside JSON.
        if isinstance(found, str):
            try:
                found = json.loads(found)
            except ValueError:
                found = None
        found = found.get(part) if isinstance(found, Mapping) else None
        if found is None:
            raise InputError(f"{where} has no key {key!r}")
    return found if isinstance(found, str) else json.dumps(found)
