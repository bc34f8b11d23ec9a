"""A password in an endpoint, or in any uri, stands in no error and no log."""

from __future__ import annotations

import logging
import traceback

import pytest

import lance_core
from lance_core.catalog.http import HttpClient
from lance_core.errors import InputError, LanceError, StoreError
from lance_core.io.options import KNOWN_OPTIONS

PASSWORD = "s3kr1tpw"
ADDRESSES = ("http://me:{}@127.0.0.1:9", "https://me:{}@127.0.0.1:9/x?token={}", "me:{}@127.0.0.1:9")
SCHEMES = ("file", "s3", "gs", "az", "abfss", "hdfs", "oss", "https", "redis")
ENDPOINTS = sorted(name for name in KNOWN_OPTIONS if "endpoint" in name)
KEYS = {"aws_access_key_id": "AKAKAKAK", "aws_secret_access_key": "SKSKSKSK", "aws_region": "x", "client_max_retries": "0"}


@pytest.mark.parametrize(
    "address", ["http://me:{}@127.0.0.1:9", "https://me:{}@127.0.0.1:9/x?token={}", "me:{}@127.0.0.1:9"]
)
@pytest.mark.parametrize("engine", ["obstore", "fsspec"])
@pytest.mark.parametrize("base", ["", "base_1.", "base[s3://b/x]."])
@pytest.mark.parametrize("name", ENDPOINTS)
def test_an_endpoint_with_a_password_is_refused_without_it(
    name: str, base: str, engine: str, address: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    options = {**KEYS, "store_engine": engine, base + name: address.format(PASSWORD, PASSWORD)}
    with pytest.raises(InputError, match="must not contain credentials") as caught:
        lance_core.dataset("s3://bucket/t", storage_options=options)
    assert PASSWORD not in "".join(traceback.format_exception(caught.value)) + caplog.text


def test_one_of_the_environment_does_not_stand_in_the_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://me:{PASSWORD}@127.0.0.1:9")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    with pytest.raises(LanceError) as caught:
        lance_core.dataset("s3://bucket/t", storage_options=KEYS)
    assert PASSWORD not in "".join(traceback.format_exception(caught.value)) + caplog.text


@pytest.mark.parametrize("address", [f"ftp://me:{PASSWORD}@host", f"https://me:{PASSWORD}@host"])
def test_nor_does_that_of_a_catalog(address: str) -> None:
    with pytest.raises(InputError) as caught:
        HttpClient(address)
    assert PASSWORD not in str(caught.value)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_nor_does_that_of_a_uri(scheme: str) -> None:
    with pytest.raises(LanceError) as caught:
        lance_core.dataset(f"{scheme}://me:{PASSWORD}@bucket/t")
    assert PASSWORD not in "".join(traceback.format_exception(caught.value)) + repr(vars(caught.value))


def test_what_is_no_password_stays() -> None:
    for text in ("abfss://container@account.dfs.core.windows.net/t", "s3://b/t: a@b:c@d", "http://host:80/a@b"):
        error = StoreError(text, uri=text)
        assert (str(error), error.uri) == (text, text)
    assert str(StoreError("x://a:b@h and y://c:d@h/")) == "x://***@h and y://***@h/"


def test_an_endpoint_without_a_scheme_is_named() -> None:
    options = {**KEYS, "aws_endpoint": "127.0.0.1:9", "store_engine": "obstore"}
    with pytest.raises(InputError, match="has no scheme"):
        lance_core.dataset("s3://bucket/t", storage_options=options)
