"""The plugin that Airflow loads (entry point `airflow.plugins`): the app below `/lance`, where the UI shows it, a listener.

Every Airflow process imports this module, so it imports nothing heavy: the app is made with the first request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from airflow.configuration import conf  # not by `compat`, which brings operators and triggers
from airflow.plugins_manager import AirflowPlugin

PREFIX = "/lance"
NAME = "Lance"
BUNDLE = "/static/lance.umd.js"

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class LazyApp:
    """An ASGI app that is made, in a separate thread, when the first request arrives."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._app: Any = None

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if self._app is None:
            app = await asyncio.to_thread(self._make)
            self._app = self._app or app
        await self._app(scope, receive, send)


def _make_app() -> Any:
    from airflow_lance.ui.app import create_app

    return create_app()


def bundle_url(base_url: str) -> str:
    """Where a browser finds the bundle, given `[api] base_url`.

    It begins with a slash: Airflow 3.1 and 3.2 import it as it is, and a module's name without one is none of a file.

    >>> bundle_url(""), bundle_url("https://host/team/airflow/")
    ('/lance/static/lance.umd.js', '/team/airflow/lance/static/lance.umd.js')
    """
    return f"{urlsplit(base_url).path.rstrip('/')}{PREFIX}{BUNDLE}"


def _base_url() -> str:
    return str(conf.get("api", "base_url", fallback="") or "")


def _destination(route: str, destination: str) -> dict[str, Any]:
    # One name and one bundle for all: the UI imports an url once, and finds the component by its name.
    shown = {"name": NAME, "bundle_url": bundle_url(_base_url()), "destination": destination, "url_route": route}
    return {**shown, "category": "browse"} if destination == "nav" else shown


_APPS: list[Any] = [{"app": LazyApp(_make_app), "url_prefix": PREFIX, "name": NAME}]
_VIEWS: list[Any] = [
    _destination("lance", "nav"),
    _destination("lance-dag", "dag"),
    _destination("lance-run", "dag_run"),
    _destination("lance-task", "task"),
    _destination("lance-ti", "task_instance"),
]


class LancePlugin(AirflowPlugin):
    """Lance tables in Airflow's UI, and a note on runs that end with staged work."""

    name = "lance"
    fastapi_apps = _APPS
    react_apps = _VIEWS

    @classmethod
    def on_load(cls, *args: Any, **kwargs: Any) -> None:
        """Airflow calls this when it loads the plugin; the listener needs more of Airflow than this module does."""
        cls.listeners = [import_module("airflow_lance.unpublished")]
