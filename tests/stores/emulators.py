"""Buckets, containers and databases on the emulators, and the stores in them."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import urllib.request
import uuid
from pathlib import Path
from typing import Any

import fsspec

from lance_core.io.remote import options as remote_options
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store

AZURITE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The key of every Azurite: published with it, secret nowhere."""
AZURITE_PACKAGE = "azurite@3.37.0"
DDB_TABLE = "lance-manifests"


def azurite_command() -> list[str] | None:
    """How to start Azurite's blob service here; None where neither `make test` nor anybody else installed it."""
    named = os.environ.get("AZURITE")
    if named:
        return [named] if not named.endswith(".js") else ["node", named]
    found = shutil.which("azurite-blob")
    if found is not None:
        return [found]
    local = Path(__file__).parents[2] / ".azurite" / "node_modules" / ".bin" / "azurite-blob"
    return [str(local)] if local.exists() else None


def s3_options(endpoint: str) -> dict[str, str]:
    return {
        "aws_access_key_id": "testing",
        "aws_secret_access_key": "testing-secret",
        "aws_region": "eu-west-1",
        "aws_endpoint": endpoint,
        "dynamodb_endpoint": endpoint,
    }


def new_bucket(endpoint: str) -> str:
    """A bucket with a fresh name."""
    options = s3_options(endpoint)
    options.pop("dynamodb_endpoint")
    bucket = f"b{uuid.uuid4().hex}"
    fsspec.filesystem("s3", **remote_options.s3_arguments(options)).mkdir(bucket)
    return bucket


def dynamodb(endpoint: str) -> Any:
    """A client, the manifest table made."""
    import botocore.session

    client = botocore.session.Session().create_client(
        "dynamodb", region_name="eu-west-1", endpoint_url=endpoint, aws_access_key_id="testing", aws_secret_access_key="x"
    )
    with contextlib.suppress(client.exceptions.ResourceInUseException):
        client.create_table(
            TableName=DDB_TABLE,
            KeySchema=[{"AttributeName": "base_uri", "KeyType": "HASH"}, {"AttributeName": "version", "KeyType": "RANGE"}],
            AttributeDefinitions=[
                {"AttributeName": "base_uri", "AttributeType": "S"},
                {"AttributeName": "version", "AttributeType": "N"},
            ],
            BillingMode="PAY_PER_REQUEST",
        )
    return client


def rows_of_register(endpoint: str) -> list[dict[str, Any]]:
    """Every row of the DynamoDB table, by version."""
    items = dynamodb(endpoint).scan(TableName=DDB_TABLE, ConsistentRead=True)["Items"]
    rows = [{name: next(iter(value.values())) for name, value in item.items()} for item in items]
    return sorted(rows, key=lambda row: (row["base_uri"], int(row["version"])))


def s3_store(endpoint: str, engine: str = "obstore") -> Store:
    return resolve_store(f"s3://{new_bucket(endpoint)}/tables/t", {**s3_options(endpoint), "store_engine": engine})


def ddb_uri(endpoint: str) -> str:
    dynamodb(endpoint)
    return f"s3+ddb://{new_bucket(endpoint)}/tables/{uuid.uuid4().hex}?ddbTableName={DDB_TABLE}"


def azure_store(options: dict[str, str], engine: str = "obstore") -> Store:
    container = f"c{uuid.uuid4().hex}"
    fsspec.filesystem("abfs", **remote_options.azure_arguments(options)).mkdir(container)
    return resolve_store(f"az://{container}/tables/t", {**options, "store_engine": engine})


def gcs_options(endpoint: str) -> dict[str, str]:
    return {"google_endpoint": endpoint, "skip_signature": "true", "google_project": "p"}


def gcs_store(endpoint: str) -> Store:
    bucket = f"b{uuid.uuid4().hex}"
    request = urllib.request.Request(
        f"{endpoint}/storage/v1/b?project=p", json.dumps({"name": bucket}).encode(), {"Content-Type": "application/json"}
    )
    urllib.request.urlopen(request, timeout=20).close()
    return resolve_store(f"gs://{bucket}/tables/t", gcs_options(endpoint))
