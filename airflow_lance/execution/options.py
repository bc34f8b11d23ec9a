"""Storage options on their way to a Spark driver: never on a command line, never in a log.

The spec that travels as an application argument holds references only (`lance_core.jobs.specs.secret`)::

    {"env": "LANCE_STORAGE_OPTIONS", "key": "o0"}      client mode: an environment variable of the driver's process
    {"file": "lance-options-5c.json", "key": "o0"}     cluster mode: a file shipped with `--files` to the driver's folder
    {"file": "/shared/lance-.../lance-options-5c.json", "key": "o0"}     a standalone cluster, cluster mode: a private file

An option that a DAG gives as a reference itself is passed on as it is: the cluster resolves it. On a standalone cluster
plain options (endpoint, region) are passed on as they are, too.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lance_core.jobs.specs.spec import JobSpec

VARIABLE = "LANCE_STORAGE_OPTIONS"


@dataclass(frozen=True)
class HiddenOptions:
    """References to put in a spec, and the JSON text they refer to (empty when there is nothing to hide)."""

    references: Mapping[str, Any]
    text: str = ""


def hide_in_environment(options: Mapping[str, Any]) -> HiddenOptions:
    """References into the environment variable `VARIABLE`."""
    return _hide(options, {"env": VARIABLE})


def hide_in_file(options: Mapping[str, Any], *, name: str) -> HiddenOptions:
    """References into a file of that name in the driver's working folder."""
    return _hide(options, {"file": name})


def all_options(options: Mapping[str, Any], reads: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a job's own store and of the tables that it reads (`WriteSpec.table_reads`), under one name each."""
    further = {
        f"{name}/{option}": value.to_json() for name, read in reads.items() for option, value in read.storage_options.items()
    }
    return {**options, **further}


def with_references(spec: JobSpec, references: Mapping[str, Any]) -> JobSpec:
    """The spec with references in the place of the options that `all_options` names."""
    own = {name: value for name, value in references.items() if "/" not in name}
    further = {
        name: replace(read, storage_options={option: references[f"{name}/{option}"] for option in read.storage_options})
        for name, read in getattr(spec, "table_reads", {}).items()
    }
    reads: dict[str, Any] = {"table_reads": further} if further else {}
    return replace(spec, storage_options=own, **reads)


def _hide(options: Mapping[str, Any], place: Mapping[str, str]) -> HiddenOptions:
    # Keys are numbered: an option's name may hold a dot, which a reference's key reads as a path.
    literals = {
        name: f"o{index}" for index, (name, value) in enumerate(sorted(options.items())) if not isinstance(value, Mapping)
    }
    references = {name: {**place, "key": literals[name]} if name in literals else dict(options[name]) for name in options}
    text = json.dumps({key: str(options[name]) for name, key in literals.items()}) if literals else ""
    return HiddenOptions(references, text)


@contextmanager
def environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set variables of this task's process while a child is started.

    Not the Spark hook's `env_vars`: for YARN and Kubernetes the hook turns those into `--conf` arguments, which every
    user of the machine can read.
    """
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def private_file(name: str, *, folder: str | None = None) -> Iterator[Path]:
    """An empty file that only this user can read, in a separate folder (below `folder` if given), removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="lance-", dir=folder) as place:
        path = Path(place) / name
        path.touch(mode=0o600)
        yield path


def secret_names(options: Mapping[str, Any]) -> list[str]:
    """The options with a literal that is not known to be plain."""
    from lance_core.jobs.specs.plain_options import is_plain_option

    literals = [(name, value) for name, value in options.items() if not isinstance(value, Mapping)]
    return [name for name, value in literals if not is_plain_option(name.rpartition("/")[2], value)]
