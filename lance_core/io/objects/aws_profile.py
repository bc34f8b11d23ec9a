"""AWS credentials of a profile in `~/.aws`: static keys are read here, others through botocore where it is installed.

::

    [default]                              aws_access_key_id=AK   -> access_key_id=AK, region of ~/.aws/config
    [work] sso_session, role_arn, …        -> botocore signs in, and is called again before the keys expire

A machine without such files, or whose environment names keys, a web identity or a container, is left to obstore's own chain.
"""

from __future__ import annotations

import configparser
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from lance_core.errors import InputError
from lance_core.io.aws_role import as_provided

_ENVIRONMENT = (
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)


@dataclass(frozen=True)
class ProfileCredentials:
    """What a profile says: entries of a client's configuration, and who to ask for keys that expire."""

    config: Mapping[str, str] = field(default_factory=dict, repr=False)
    provider: Callable[[], Any] | None = field(default=None, repr=False)


def profile_credentials(name: str | None) -> ProfileCredentials:
    """What the named profile says, or the environment's or default one when that is what AWS's own chain would take.

    Raises InputError for a named profile that is not there, or that only botocore, which is not installed, can sign in with.
    """
    chosen = name or os.environ.get("AWS_PROFILE")
    if chosen is None and any(os.environ.get(variable) for variable in _ENVIRONMENT):
        return ProfileCredentials()
    section = _section(chosen or "default")
    if section is None:
        if chosen is None:
            return ProfileCredentials()
        raise InputError(f"AWS profile {chosen!r} does not exist", cure="Check ~/.aws/config and ~/.aws/credentials.")
    config = {"region": section["region"]} if "region" in section else {}
    if "aws_access_key_id" in section and "role_arn" not in section:
        keys = {"access_key_id": "aws_access_key_id", "secret_access_key": "aws_secret_access_key"}
        keys["session_token"] = "aws_session_token"
        return ProfileCredentials(config | {ours: section[theirs] for ours, theirs in keys.items() if theirs in section})
    if not any(key in section for key in ("role_arn", "sso_session", "sso_start_url", "credential_process")):
        return ProfileCredentials(config)
    return ProfileCredentials(config, _through_botocore(chosen))


def _section(name: str) -> Mapping[str, str] | None:
    found: dict[str, str] = {}
    places = (("AWS_CONFIG_FILE", "config", f"profile {name}"), ("AWS_SHARED_CREDENTIALS_FILE", "credentials", name))
    is_there = False
    for variable, file, title in places:
        path = Path(os.environ.get(variable) or Path.home() / ".aws" / file)
        parser = configparser.RawConfigParser()
        try:
            parser.read(path)
        except (configparser.Error, OSError) as error:
            raise InputError(f"{path} cannot be read: {type(error).__name__}") from None
        for section in (title, name) if name == "default" else (title,):
            if parser.has_section(section):
                is_there = True
                found.update(parser.items(section))
    return found if is_there else None


def _through_botocore(name: str | None) -> Callable[[], Any]:
    try:
        module = import_module("botocore.session")
    except ImportError:
        raise InputError(
            f"AWS profile {name or 'default'!r} uses a role, SSO or a credential process, which needs botocore",
            cure="Install airflow-provider-lance[dynamodb], or pass keys as storage options.",
        ) from None
    credentials = module.Session(profile=name).get_credentials()
    if credentials is None:
        raise InputError(f"AWS profile {name or 'default'!r} has no credentials")

    def provide() -> Mapping[str, Any]:
        # botocore renews expiring credentials on each call.
        return as_provided(credentials.get_frozen_credentials())

    return provide
