"""A manifest store in a DynamoDB table; the only file that imports botocore (extra `dynamodb`).

::

    s3+ddb://bucket/tables/t?ddbTableName=manifests

    base_uri (S, hash)  version (N, range)  path (S)                                  committer (S)  size (N)
    tables/t            2                   tables/t/_versions/…613.manifest          lancedb        1234

Keys and attributes are the official library's, so that both write one table; reads are consistent, writes conditional.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import Any

from lance_core.errors import AlreadyExistsError, InputError, NotFoundError, PreconditionError, StoreError
from lance_core.io.aws_role import role_of
from lance_core.io.remote.errors import Redactor, retrying, typed
from lance_core.io.spellings import AWS, picker
from lance_core.io.waiting import answered

COMMITTER = "lancedb"
_KEYS = {"base_uri": "HASH", "version": "RANGE"}


class DynamoRegister:
    """Rows in one DynamoDB table, which must exist and have the keys above. `options` are storage options of S3."""

    def __init__(self, table: str, options: Mapping[str, str]) -> None:
        self._table = table
        self._name = f"dynamodb table {table}"
        self._options = dict(options)
        self._redact = Redactor(options)
        self._connected: tuple[int, Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"table": self._table, "options": self._options}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["table"], state["options"])  # type: ignore[misc]

    def get(self, base: str, version: int) -> str | None:
        """One row's path, by a consistent read."""
        answer = self._again("get_item", Key=_key(base, version), ConsistentRead=True)
        item = answer.get("Item")
        return None if item is None else str(item["path"]["S"])

    def latest(self, base: str) -> tuple[int, str] | None:
        """The row of the highest version, by a consistent query for one item."""
        answer = self._again(
            "query",
            KeyConditionExpression="base_uri = :base_uri",
            ExpressionAttributeValues={":base_uri": {"S": base}},
            ScanIndexForward=False,
            Limit=1,
            ConsistentRead=True,
        )
        items = answer.get("Items", [])
        return (int(items[0]["version"]["N"]), str(items[0]["path"]["S"])) if items else None

    def add(self, base: str, version: int, path: str, size: int) -> None:
        """Conditional put: refused when there is a row. Not repeated here: a lost reply is for the caller to settle."""
        if not self._put(base, version, path, size, condition="attribute_not_exists"):
            raise AlreadyExistsError(f"the manifest store already has version {version} of {base}")

    def change(self, base: str, version: int, path: str, size: int) -> None:
        """Conditional put: refused when there is no row."""
        if not self._put(base, version, path, size, condition="attribute_exists"):
            raise NotFoundError(f"the manifest store has no row ({base}, {version})")

    def replace(self, base: str, version: int, old: str, path: str, size: int) -> None:
        """Conditional put: refused unless the row names the old path."""
        item = {**_key(base, version), "path": {"S": path}, "committer": {"S": COMMITTER}, "size": {"N": str(size)}}
        try:
            self._once(
                "put_item",
                Item=item,
                ConditionExpression="#path = :old",
                ExpressionAttributeNames={"#path": "path"},
                ExpressionAttributeValues={":old": {"S": old}},
            )
        except _ConditionFailed:
            raise NotFoundError(f"the manifest store has no row ({base}, {version}) that names {old}") from None

    def remove(self, base: str, version: int) -> None:
        """Delete."""
        self._again("delete_item", Key=_key(base, version))

    def remove_if(self, base: str, version: int, path: str) -> None:
        """Conditional delete: nothing happens unless the row names this path."""
        with contextlib.suppress(_ConditionFailed):
            self._again(
                "delete_item",
                Key=_key(base, version),
                ConditionExpression="#path = :old",
                ExpressionAttributeNames={"#path": "path"},
                ExpressionAttributeValues={":old": {"S": path}},
            )

    def _put(self, base: str, version: int, path: str, size: int, *, condition: str) -> bool:
        item = {**_key(base, version), "path": {"S": path}, "committer": {"S": COMMITTER}, "size": {"N": str(size)}}
        both = f"{condition}(base_uri) AND {condition}(version)"
        try:
            self._once("put_item", Item=item, ConditionExpression=both)
        except _ConditionFailed:
            return False
        return True

    def _again(self, name: str, **arguments: Any) -> Any:
        return retrying(lambda: self._once(name, **arguments))

    def _once(self, name: str, **arguments: Any) -> Any:
        client = self._client()
        with typed(self._table, uri=self._name, redact=self._redact):
            try:
                return answered(lambda: getattr(client, name)(TableName=self._table, **arguments), by=self._name)
            except client.exceptions.ConditionalCheckFailedException:
                pass
        raise _ConditionFailed(f"{self._table}: the condition did not hold")

    def _client(self) -> Any:
        # Connections do not survive a fork: a child connects again. Two that begin at once both connect, and one is kept:
        # nobody waits for another's answer.
        connected = self._connected
        if connected is None or connected[0] != os.getpid():
            client = _connect(self._options)
            self._check(client)
            connected = self._connected = (os.getpid(), client)
        return connected[1]

    def _check(self, client: Any) -> None:
        with typed(self._table, uri=self._name, redact=self._redact):
            keys = answered(lambda: client.describe_table(TableName=self._table)["Table"]["KeySchema"], by=self._name)
        found = {key["AttributeName"]: key["KeyType"] for key in keys}
        if found != _KEYS:
            raise PreconditionError(
                f"dynamodb table {self._table} has the keys {found}, expected {_KEYS}",
                cure="Create it with base_uri (string) as hash key and version (number) as range key.",
            )


class _ConditionFailed(StoreError):
    """The condition of a put did not hold."""


def _key(base: str, version: int) -> dict[str, dict[str, str]]:
    return {"base_uri": {"S": base}, "version": {"N": str(version)}}


def _connect(options: Mapping[str, str]) -> Any:
    try:
        import botocore.session  # type: ignore[import-untyped, unused-ignore]
        from botocore.config import Config  # type: ignore[import-untyped, unused-ignore]
    except ImportError as error:
        raise InputError(f"botocore is not installed: {error}", cure="Install airflow-provider-lance[dynamodb].") from error
    pick = picker(options, AWS)
    session = botocore.session.Session(profile=pick("profile"))
    role = role_of(options)
    signed = {
        "aws_access_key_id": pick("access_key_id"),
        "aws_secret_access_key": pick("secret_access_key"),
        "aws_session_token": pick("session_token"),
    }
    if role is not None:
        # A client that is given no keys asks the session, which renews them.
        signed = {}
        session._credentials = role.credentials()
    return session.create_client(
        "dynamodb",
        region_name=pick("region"),
        endpoint_url=pick("dynamodb_endpoint") or os.environ.get("DYNAMODB_ENDPOINT"),
        **signed,
        config=Config(retries={"max_attempts": 4, "mode": "standard"}),
    )
