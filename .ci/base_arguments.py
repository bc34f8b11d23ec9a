"""For the reference: the arguments that a class takes from its bases stand in its own signature and table.

::

    class LanceAppendOperator(LanceWriteOperator):            the site shows `create`, and `source`, `gates`, `uri`, ...,
        def __init__(self, *, create=True,                    each with type, default and description; what is left in
                     **kwargs: Unpack[WriteArguments])        `**kwargs` are the arguments of Airflow's own base

An extension of griffe, which mkdocstrings reads the modules with; `mkdocs.yml` names it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import griffe

PACKAGE = "airflow_lance"
_ARGS = re.compile(r"^Args:\n((?:(?: {4}.*)?\n)*(?: {4}.*)?)", re.MULTILINE)
_DESCRIBED = re.compile(r"^ {4}(\w+): (.*?)(?=^ {4}\w|^\s*$|\Z)", re.MULTILINE | re.DOTALL)
_UNPACKED = re.compile(r"Unpack\[(\w+)\]")
_REFERS = re.compile(r"\s*Arguments of `\w+`[^:]{0,60}, and\s*(?=Args:)")
_CONNECTION = "LanceHook.default_conn_name"


class BaseArguments(griffe.Extension):
    """Completes the signature and the description of every class whose `**kwargs` are an `Unpack[...]`."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Once all modules are read: bases may be in any of them."""
        if pkg.path != PACKAGE:
            return
        # Bases of bases are looked at: what a class has of its own is read before anything is added to it.
        found = [(cls, _additions(cls, pkg)) for cls in _classes(pkg)]
        for cls, additions in found:
            if additions:
                _add(cls, additions)
            for parameter in cls.parameters:
                if str(parameter.default) == _CONNECTION:
                    parameter.default = '"lance_default"'


def _classes(module: griffe.Module) -> Iterator[griffe.Class]:
    for member in module.members.values():
        if isinstance(member, griffe.Module):
            yield from _classes(member)
        elif isinstance(member, griffe.Class):
            yield member


def _additions(cls: griffe.Class, pkg: griffe.Module) -> dict[str, tuple[griffe.Parameter, str]]:
    """Name -> parameter and description, of the bases that are this package's."""
    unpacked = _unpacked(cls)
    if unpacked is None:
        return {}
    # Not each class takes all that its bases do.
    arguments = pkg[f"signatures.{unpacked}"]
    taken = {name for base in (arguments, *arguments.mro()) for name in base.members}
    known = {parameter.name for parameter in _init(cls).parameters}
    found: dict[str, tuple[griffe.Parameter, str]] = {}
    for base in cls.mro():
        init = base.members.get("__init__")
        if not base.path.startswith(f"{PACKAGE}.") or not isinstance(init, griffe.Function):
            continue
        described = descriptions(base)
        for parameter in init.parameters:
            if parameter.kind is griffe.ParameterKind.keyword_only and parameter.name in taken - known:
                said = described.get(parameter.name, "")
                # A list that follows does not fit into a cell.
                said = said if said.endswith((".", ")")) else f"{said.removesuffix(', one of')}: see `{base.name}`."
                found.setdefault(parameter.name, (parameter, said))
    return found


def _init(cls: griffe.Class) -> griffe.Function:
    init = cls.members["__init__"]
    assert isinstance(init, griffe.Function)
    return init


def _unpacked(cls: griffe.Class) -> str | None:
    init = cls.members.get("__init__")
    if not isinstance(init, griffe.Function):
        return None
    for parameter in init.parameters:
        found = _UNPACKED.fullmatch(str(parameter.annotation))
        if parameter.kind is griffe.ParameterKind.var_keyword and found:
            return found[1]
    return None


def descriptions(cls: griffe.Class) -> dict[str, str]:
    """Each parameter that the docstring of a class describes."""
    found = _ARGS.search(cls.docstring.value) if cls.docstring else None
    return {name: " ".join(said.split()) for name, said in _DESCRIBED.findall(found[1])} if found else {}


def _add(cls: griffe.Class, additions: dict[str, tuple[griffe.Parameter, str]]) -> None:
    init = _init(cls)
    *own, rest = init.parameters
    rest.annotation = "Any"
    init.parameters = griffe.Parameters(*own, *(parameter for parameter, _ in additions.values()), rest)
    lines = [f"    {name}: {said}" for name, (_, said) in additions.items()]
    if "kwargs" not in descriptions(cls):
        lines.append("    kwargs: those of Airflow's own base, such as `task_id`, `retries` and `pool`.")
    if cls.docstring is None:
        return
    text = _REFERS.sub("\n\n", cls.docstring.value.rstrip())
    own = _ARGS.search(text)
    if own is None:
        text = "\n".join([text, "", "Args:", *lines])
    else:
        end = own.start() + len(own[0].rstrip())
        text = "\n".join([text[:end], *lines]) + text[end:]
    cls.docstring.value = text
