"""Links from a task to its table's page, to the changes of its version, to staged work. Light: every operator imports it."""

from __future__ import annotations

import hashlib
from typing import Any
from urllib.parse import urlsplit

from airflow_lance.compat import BaseOperatorLink, api_base_url


def table_id(conn_id: str, uri: str) -> str:
    """Return the id of a table in links to its page."""
    return hashlib.sha256(f"{conn_id}\n{uri.rstrip('/')}".encode()).hexdigest()[:16]


class LancePageLink(BaseOperatorLink):
    """The table's page among Airflow's, on the page of each task that knows its table."""

    name = "Lance table"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """Return where the page is; empty when the task did not find its table."""
        uri = str(getattr(operator, "resolved_uri", "") or "")
        if not uri:
            return ""
        root = urlsplit(api_base_url()).path.rstrip("/")
        return f"{root}/plugin/lance#/table/{table_id(str(operator.lance_conn_id), uri)}{self._part(operator)}"

    def _part(self, operator: Any) -> str:
        return ""


class LanceChangesLink(LancePageLink):
    """What the version that the task made changed; all versions where it made none."""

    name = "Changes"

    def _part(self, operator: Any) -> str:
        version = getattr(getattr(operator, "_touched", None), "version", None)
        return "/versions" if version is None or version < 2 else f"/diff/{version - 1}/{version}"


class LanceStagedLink(LancePageLink):
    """Work on the table that waits for its commit."""

    name = "Staged work"

    def _part(self, operator: Any) -> str:
        return "/staged"
