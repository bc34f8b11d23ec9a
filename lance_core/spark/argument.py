"""A job spec as an argument of a submitted application: letters, digits, `-` and `_` only, whatever the spec says.

::

    {"spec": 1, "kind": "append", ...}    ->  base64url:eyJzcGVjIjoxLCJraW5kIjoiYXBwZW5kIi...
    more than 32 KB                       ->  base64url of {"spec_file": NAME, "sha256": ..., "uri": ..., "identity": ...}
                                              and a file, which goes to the driver as the submit's route has it

An argument is read by more than the program that it is for: YARN replaces `{{` and `}}` in the command of a container (and
every spec ends in `}}`), Kubernetes `$(NAME)`, and whatever a shell stands between does what shells do. A file is found by
its name in the driver's folder, or by its whole path. It holds what the argument would have held: references to secrets, no
secrets. Standard library only.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lance_core.errors import InputError

if TYPE_CHECKING:
    from lance_core.jobs.specs.spec import JobSpec

PREFIX = "base64url:"
MOST_ARGUMENT_SIZE = 32 * 1024
"""Bytes of an argument. Linux takes 128 KiB as one, and YARN hands the whole command of a driver to a shell as one."""
_ADDRESS = ("spec", "kind", "uri", "identity", "storage_options", "asked", "on_clear")
_FILE, _DIGEST = "spec_file", "sha256"


def encode_spec(spec: JobSpec, *, place: Callable[[bytes], str]) -> str:
    """What is handed to the driver for a spec. `place` puts the content of a file where the driver finds it, and returns
    under which name or path that is; it is called for a large spec only."""
    text = spec.to_json().encode("utf-8")
    argument = encode_text(text)
    if len(argument) <= MOST_ARGUMENT_SIZE:
        return argument
    plain = spec.to_plain()
    address = {name: plain[name] for name in _ADDRESS if name in plain}
    named = {**address, _FILE: place(text), _DIGEST: hashlib.sha256(text).hexdigest()}
    return encode_text(json.dumps(named, separators=(",", ":")).encode("utf-8"))


def decode_argument(argument: str) -> str:
    """The text that `encode_spec` encoded: a spec, or the address of one in a file. InputError where it was changed."""
    text = argument[len(PREFIX) :]
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        raise InputError(
            f"the job spec arrived damaged: {len(argument)} characters that begin with {PREFIX!r} are not base64url",
            cure="Something between the submit and the driver changes or cuts arguments.",
        ) from None


def is_encoded(argument: str) -> bool:
    """Whether an argument is one of `encode_spec`."""
    return argument.startswith(PREFIX)


def text_of_file(address: Mapping[str, Any]) -> str | None:
    """The spec in the file that an address names; None for what is no address.

    InputError when the file is not there, cannot be read, or is another one.
    """
    name = address.get(_FILE)
    if name is None:
        return None
    try:
        content = Path(str(name)).read_bytes()
    except OSError as error:
        raise InputError(
            f"the job spec should be in the file {str(name)!r}, which cannot be read in {Path.cwd()}: "
            f"{error.strerror or error}",
            cure="Check that the submit's files reach the driver; on a standalone cluster, pass "
            "spark_submit={'options_folder': ...}, a folder that all nodes see.",
        ) from None
    if hashlib.sha256(content).hexdigest() != address.get(_DIGEST):
        raise InputError(f"the job spec in the file {str(name)!r} is not the one that was submitted (its SHA-256 differs)")
    return content.decode("utf-8")


def encode_text(text: bytes) -> str:
    """Text as an argument that nothing changes."""
    return PREFIX + base64.urlsafe_b64encode(text).decode("ascii").rstrip("=")
