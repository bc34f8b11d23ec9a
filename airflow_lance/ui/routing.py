"""How a route answers: errors become those that the front end knows, answers lose secrets and what the user may not read."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Annotated, Any, TypeAlias

from fastapi import Depends, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute

from airflow_lance.ui.answers import mentioned_dags, with_links
from airflow_lance.ui.errors import PageError, page_error
from airflow_lance.ui.security import readable_dags, require_reader
from airflow_lance.ui.service import Pages

log = logging.getLogger(__name__)

HEADERS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "Cache-Control": "private, no-cache"}


class PageRoute(APIRoute):
    """A route whose errors are all `PageError`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler of a request."""
        handler = super().get_route_handler()

        async def answer_or_error(request: Request) -> Response:
            try:
                return await handler(request)
            except (PageError, HTTPException, RequestValidationError):
                raise
            except Exception as error:
                found = page_error(error)
                if found.code == "failed":
                    log.exception("the Lance pages failed at %s", request.url.path)
                raise found from error

        return answer_or_error


def _pages_of(request: Request) -> Pages:
    pages: Pages = request.app.state.pages
    return pages


PagesDep: TypeAlias = Annotated[Pages, Depends(_pages_of)]
UserDep: TypeAlias = Annotated[Any, Depends(require_reader)]


async def respond(pages: Pages, user: Any, value: object, *, status: int = 200) -> JSONResponse:
    """Return an answer that this user may see."""
    return await asyncio.to_thread(_respond, pages, user, value, status)


def _respond(pages: Pages, user: Any, value: object, status: int) -> JSONResponse:
    linked = with_links(value, readable_dags(user, mentioned_dags(value)))
    return JSONResponse(pages.redactor().clean(linked), status_code=status, headers=HEADERS)
