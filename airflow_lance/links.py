"""The link from a task to its table's page. Light: every operator imports it."""

from __future__ import annotations

import hashlib
from typing import Any
from urllib.parse import urlsplit

from airflow_lance.compat import BaseOperatorLink, api_base_url


def table_id(conn_id: str, uri: str) -> str:
    """Return the id of a table in links to its page."""
    return hashlib.sha256(f"{conn_id}\n{uri.rstrip('/')}".encode()).hexdigest()[:16]


class LancePageLink(BaseOperatorLink):
    """Where the page of a task leads: to what its version changed; to the staged work of a task that only stages; else to
    the table. The tabs of that page lead to the rest.

    One link, because Airflow keeps each as an XCom of every task instance.
    """

    name = "Lance table"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """Return where the page is; empty when the task did not find its table."""
        uri = str(getattr(operator, "resolved_uri", "") or "")
        if not uri:
            return ""
        root = urlsplit(api_base_url()).path.rstrip("/")
        return f"{root}/plugin/lance#/table/{table_id(str(operator.lance_conn_id), uri)}{_part(operator)}"


def _part(operator: Any) -> str:
    version = getattr(getattr(operator, "_touched", None), "version", None)
    if version is None:
        return "" if getattr(operator, "publishes", True) else "/staged"
    return f"/diff/{version - 1}/{version}" if version > 1 else "/versions"
