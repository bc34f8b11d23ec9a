"""Every spelling of a storage option says the same to every engine, whichever file reads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from lance_core.io.objects.options import azure_client, gcs_client, s3_client
from lance_core.io.options import KNOWN_OPTIONS
from lance_core.io.remote import options
from lance_core.io.remote.options import azure_arguments, gcs_arguments, s3_arguments
from lance_core.io.spellings import AWS, AZURE, GOOGLE, Spellings, names_in, picker

_CLOUDS: tuple[tuple[str, Spellings, Callable[..., Any], Callable[..., Any]], ...] = (
    ("aws", AWS, s3_client, s3_arguments),
    ("google", GOOGLE, gcs_client, gcs_arguments),
    ("azure", AZURE, azure_client, azure_arguments),
)
_TEXTS = {
    "key": '{"type": "service_account"}',
    "provider_scheme": "token",
    "endpoint": "http://127.0.0.1:1",
    "unsigned": "true",
}
_FLAGS = {"use_emulator", "use_azure_cli", "use_fabric_endpoint", "disable_tagging", "s3_express", "unsigned_payload"}
_NEEDS = {
    "provider_scheme": {"aws_access_key_id": "a", "aws_secret_access_key": "b"},
    "role_session_name": {"aws_role_arn": "arn:aws:iam::1:role/r"},
    "external_id": {"aws_role_arn": "arn:aws:iam::1:role/r"},
    "role_seconds": {"aws_role_arn": "arn:aws:iam::1:role/r"},
    "sts_endpoint": {"aws_role_arn": "arn:aws:iam::1:role/r"},
    "tenant_id": {"federated_token_file": "f", "client_id": "c"},
    "client_id": {"federated_token_file": "f", "tenant_id": "t"},
}
_CASES = [
    pytest.param(spellings, option, given, engine, id=f"{cloud}-{option}-{given}-{kind}")
    for cloud, spellings, objects, remote in _CLOUDS
    for kind, engine in (("obstore", objects), ("fsspec", remote))
    for option, names in spellings.items()
    for given in names[1:]
]


def _asked(engine: Callable[..., Any], options: Mapping[str, str]) -> object:
    try:
        found = engine(options)
    except Exception as error:
        return type(error), str(error)
    return {name: getattr(found, name) for name in ("config", "client", "endpoint")} if hasattr(found, "config") else found


@pytest.mark.parametrize(("spellings", "option", "given", "engine"), _CASES)
def test_a_spelling_says_what_the_first_one_says(
    spellings: Spellings, option: str, given: str, engine: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(options, "_identity", lambda name, **arguments: (name, arguments))
    text = "true" if option in _FLAGS else _TEXTS.get(option, "text")
    needed = {name: value for name, value in _NEEDS.get(option, {}).items() if name not in spellings[option]}
    assert _asked(engine, {**needed, given: text}) == _asked(engine, {**needed, spellings[option][0]: text})


@pytest.mark.parametrize("spellings", [AWS, GOOGLE, AZURE], ids=["aws", "google", "azure"])
def test_every_spelling_is_a_known_option_and_the_first_given_counts(spellings: Spellings) -> None:
    assert names_in(spellings) <= KNOWN_OPTIONS
    for option, names in spellings.items():
        assert picker({name: name for name in names}, spellings)(option) == names[0]
        assert picker({names[0]: "", **({names[-1]: "last"} if names[-1] != names[0] else {})}, spellings)(option) == (
            "last" if len(names) > 1 else None
        )
