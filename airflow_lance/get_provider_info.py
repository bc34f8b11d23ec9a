"""The description of this package for Airflow (the entry point `apache_airflow_provider`). Imports no operator."""

from __future__ import annotations

from typing import Any

from airflow_lance.operators import BASES, OPERATORS

_NAME = "Lance"


def get_provider_info() -> dict[str, Any]:
    """The provider's description in the shape of Airflow's provider schema."""
    return {
        "package-name": "airflow-provider-lance",
        "name": _NAME,
        "description": "Lance tables: stage work with Spark or locally, commit it exactly once.",
        "integrations": [{"integration-name": _NAME, "external-doc-url": "https://lance.org/", "tags": ["software"]}],
        "operators": [_modules("operators", *_operators())],
        "sensors": [_modules("sensors", "health", "index", "partitions", "rows", "staged", "tag", "version")],
        "hooks": [_modules("hooks", "lance")],
        "triggers": [_modules("triggers", "condition", "staging", "version")],
        "task-decorators": [
            {"name": "lance", "class-name": "airflow_lance.decorators.lance.lance_task"},
            {"name": "lance_column", "class-name": "airflow_lance.decorators.column.lance_column_task"},
        ],
        "extra-links": ["airflow_lance.links.LancePageLink"],
        "cli": ["airflow_lance.commands.get_lance_commands"],
        "connection-types": [_CONNECTION],
        "config": _CONFIG,
        "asset-uris": [_ASSETS],
        "dataset-uris": [_ASSETS],
    }


def _operators() -> list[str]:
    homes = {home for name, home in OPERATORS.items() if name not in BASES}
    return sorted(home.rpartition(".")[2] for home in homes)


def _modules(room: str, *names: str) -> dict[str, Any]:
    return {"integration-name": _NAME, "python-modules": [f"airflow_lance.{room}.{name}" for name in names]}


_ASSETS: dict[str, Any] = {
    "schemes": ["lance"],
    "handler": "airflow_lance.assets.sanitize_uri",
    "factory": "airflow_lance.assets.create_asset",
    "to_openlineage_converter": "airflow_lance.lineage.convert_asset_to_openlineage",
}


def _option(description: str, *, example: str, default: str = "") -> dict[str, Any]:
    told = {"description": description, "version_added": None, "type": "string", "example": example}
    return {**told, "default": default}


_PAGES: dict[str, Any] = {
    "pages_connections": _option(
        "Connections whose tables the pages show, comma-separated. Empty: all of type lance in the metadata database.",
        example="lake, archive",
    ),
    "pages_policy": _option("The maintenance policy that the pages show.", example="/etc/lance/lance_policy.yaml"),
    "pages_policy_conn_id": _option("The connection of the policy's tables.", example="lake", default="lance_default"),
    "pages_rows": _option(
        "Who may see rows of tables: nobody; connection, who may read the table's connection; or view, who has the view "
        '"Lance rows".',
        example="connection",
        default="nobody",
    ),
    "pages_actions_dag": _option(
        "The DAG that the buttons of the pages trigger.", example="lance_actions", default="lance_actions"
    ),
    "pages_plan_dag": _option("The DAG that executes the policy.", example="lance_maintenance", default="lance_maintenance"),
    "pages_cache_seconds": _option("How long facts about a table are kept.", example="60", default="30"),
    "pages_timeout_seconds": _option("How long a page waits for a store.", example="20", default="10"),
}

_CONFIG: dict[str, Any] = {
    "lance": {
        "description": "Jobs on Lance tables.",
        "options": {
            "default_execution": {
                "description": "Default execution of operators: spark-submit, spark-connect, local, or auto: spark-submit "
                "where PySpark, Java and the Spark connection are there, else local.",
                "version_added": None,
                "type": "string",
                "example": "local",
                "default": "auto",
            },
            "allowed_callables": {
                "description": "Functions that sources, gates and new columns may call, as comma-separated patterns of "
                "`module:function`. Empty allows every function.",
                "version_added": None,
                "type": "string",
                "example": "our_company.sources:*, our_company.gates:no_gaps",
                "default": "",
            },
            "catalog_classes": _option(
                "Clients of catalogs that connections may name as catalog_kind, comma-separated, with their classes.",
                example="glue=lance_namespace_impls.glue:GlueNamespace",
            ),
            **_PAGES,
        },
    },
}

_CONNECTION: dict[str, Any] = {
    "connection-type": "lance",
    "hook-class-name": "airflow_lance.hooks.lance.LanceHook",
    "hook-name": "Lance",
    "ui-field-behaviour": {
        "hidden-fields": ["schema", "port", "extra"],
        "relabeling": {
            "host": "Base uri (or use the field below)",
            "login": "Access key id or account name",
            "password": "Secret key",
        },
        "placeholders": {"host": "s3://bucket/tables"},
    },
    "conn-fields": {
        "base_uri": {
            "label": "Base uri",
            "description": "The folder of the tables: s3://bucket/prefix, gs://..., az://..., or an absolute path.",
            "schema": {"type": ["string", "null"]},
        },
        "spark_conn_id": {
            "label": "Default Spark connection",
            "description": "The Spark connection that runs jobs on these tables. Default: spark_default.",
            "schema": {"type": ["string", "null"], "default": "spark_default"},
        },
        **{
            name: {
                "label": f"{cloud} connection",
                "description": f"Takes the credentials from this connection, for example {example}.",
                "schema": {"type": ["string", "null"]},
            }
            for name, cloud, example in (
                ("aws_conn_id", "AWS", "aws_default"),
                ("gcp_conn_id", "Google Cloud", "google_cloud_default"),
                ("azure_conn_id", "Azure", "wasb_default"),
            )
        },
        "catalog_uri": {
            "label": "Catalog",
            "description": "Where tables have names: a folder (s3://lake), or the address of a REST catalog (https://...).",
            "schema": {"type": ["string", "null"]},
        },
        "catalog_token": {
            "label": "Catalog token",
            "description": "The bearer token of a REST catalog.",
            "schema": {"type": ["string", "null"], "format": "password"},
        },
        "catalog_properties": {
            "label": "Catalog properties",
            "description": 'A JSON object, for example {"delimiter": "."}. Masked, because it may hold headers.',
            "schema": {"type": ["string", "null"], "format": "password"},
        },
        "storage_options": {
            "label": "Storage options",
            "description": 'A JSON object, for example {"region": "eu-west-1"}. Masked, because it may hold secrets.',
            "schema": {"type": ["string", "null"], "format": "password"},
        },
    },
}
