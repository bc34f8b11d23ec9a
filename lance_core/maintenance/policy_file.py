"""Read a policy from YAML; every complaint names the line.

::

    base_uri: s3://lake/lance
    levels: {max_deleted_share: 0.1, keep_seconds: 7d}
    budget: {bytes_per_day: 500 GB, quiet_hours: "08:00-18:00", max_concurrent: 2}
    tables:
      - match: "*"
      - {match: "finance/*", levels: {max_deleted_share: 0.02}, steps: [compact, cleanup]}
      - {match: "scratch/*", paused: true}
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from lance_core.errors import InputError
from lance_core.maintenance.policy import Budget, Policy, ServiceLevels, TableRule, read_fields

_SECTIONS: Mapping[str, type[Any]] = {"levels": ServiceLevels, "budget": Budget}


def load_policy(path: str | os.PathLike[str]) -> Policy:
    """Read a policy file. InputError with `path:line` when it cannot be read or has an unknown key or an impossible
    value."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot read the policy {path}: {error.strerror}", cure="Check the path.") from None
    return parse_policy(text, name=str(path))


def parse_policy(text: str, *, name: str = "policy") -> Policy:
    """Read a policy from YAML text; `name` is the file that complaints mention."""
    yaml = _yaml()
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f":{mark.line + 1}" if mark is not None else ""
        raise InputError(f"{name}{where}: {getattr(error, 'problem', error)}", cure="Write the policy as YAML.") from None
    reader = _Reader(yaml, name)
    entries = reader.entries(root)
    given: dict[str, Any] = {}
    for key, (node, line) in entries.items():
        if key == "tables":
            given[key] = tuple(reader.build(TableRule, item) for item in reader.items(node))
        elif key in _SECTIONS:
            given[key] = reader.build(_SECTIONS[key], node)
        elif key == "base_uri":
            given[key] = reader.plain(node)
        else:
            raise InputError(f"{name}:{line}: unknown key {key!r}", cure="Known keys: base_uri, budget, levels, tables.")
    policy: Policy = reader.at(root, lambda: Policy(**{"base_uri": "", **given}))
    return policy


class _Reader:
    """Nodes of a YAML document, with their lines."""

    def __init__(self, yaml: Any, name: str) -> None:
        self._yaml = yaml
        self._name = name

    def entries(self, node: Any) -> dict[str, tuple[Any, int]]:
        """The keys of a mapping: value node and line."""
        if not isinstance(node, self._yaml.MappingNode):
            raise InputError(f"{self._where(node)}: expected keys and values")
        return {str(key.value): (value, key.start_mark.line + 1) for key, value in node.value}

    def items(self, node: Any) -> list[Any]:
        """The items of a list."""
        if not isinstance(node, self._yaml.SequenceNode):
            raise InputError(f"{self._where(node)}: expected a list")
        return list(node.value)

    def plain(self, node: Any) -> Any:
        """A node as plain data; only YAML's own types are built."""
        loader = self._yaml.SafeLoader("")
        try:
            return loader.construct_object(node, deep=True)
        except self._yaml.YAMLError as error:
            raise InputError(f"{self._where(node)}: {getattr(error, 'problem', error)}") from None

    def build(self, cls: type[Any], node: Any) -> Any:
        """One of the policy's classes; each key is checked separately, so that an error names its line."""
        arguments: dict[str, Any] = {}
        for key, (value, _) in self.entries(node).items():
            arguments |= self.at(value, lambda key=key, value=value: read_fields(cls, {key: self.plain(value)}))
        return self.at(node, lambda: cls(**arguments))

    def at(self, node: Any, action: Any) -> Any:
        """Run something; an InputError gets the node's line."""
        try:
            return action()
        except InputError as error:
            raise InputError(f"{self._where(node)}: {error}") from None

    def _where(self, node: Any) -> str:
        return self._name if node is None else f"{self._name}:{node.start_mark.line + 1}"


def _yaml() -> Any:
    try:
        return import_module("yaml")
    except ImportError:
        raise InputError(
            "reading a policy file needs PyYAML", cure="Run pip install PyYAML, or build a Policy in Python."
        ) from None
