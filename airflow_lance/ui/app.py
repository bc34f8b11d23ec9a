"""The app of the pages, mounted below `/lance` in the API server. Every route depends on `require_reader`: see `security`.

::

    /lance/                     the front end, standing alone
    /lance/static/{path}        its files
    /lance/api/...              facts as JSON, and buttons that trigger DAG runs
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import APIRouter, Depends, FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, Response

from airflow_lance.ui.errors import PageError, page_error
from airflow_lance.ui.redact import PageRedactor
from airflow_lance.ui.routing import HEADERS, PageRoute
from airflow_lance.ui.security import require_reader
from airflow_lance.ui.service import Pages
from airflow_lance.ui.settings import PagesSettings, read_settings

DIST = Path(__file__).parent / "dist"
BASE = '<base href="/">'
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; base-uri 'self'; form-action 'none'; frame-ancestors 'self'"
)
_HTTP_CODES = {401: "not_authenticated", 403: "forbidden", 404: "not_found"}


def create_app(settings: PagesSettings | None = None) -> FastAPI:
    """Return the app. InputError when a setting is wrong: then nothing is served."""
    from airflow_lance.ui import routes_actions, routes_plan, routes_table, routes_tables

    app = FastAPI(
        title="Lance pages",
        dependencies=[Depends(require_reader)],
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    app.state.pages = Pages(settings or read_settings())
    for routes in (routes_tables, routes_table, routes_plan, routes_actions):
        app.include_router(routes.router, prefix="/api")
    files = APIRouter(route_class=PageRoute)
    files.add_api_route("/", _index, methods=["GET"])
    files.add_api_route("/static/{path:path}", _static, methods=["GET"])
    app.include_router(files)
    for kind in (PageError, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, _failed)
    return app


def _index(request: Request) -> Response:
    """The front end, told where Airflow's root is."""
    root = str(request.scope.get("root_path", "")).removesuffix("/lance").rstrip("/")
    path = DIST / "index.html"
    if not path.is_file():
        raise PageError("not_found", "The front end was not built.", cure="make ui")
    page = path.read_text(encoding="utf-8").replace(BASE, f'<base href="{_attribute(root)}/">')
    return HTMLResponse(page, headers={**HEADERS, "Content-Security-Policy": _POLICY})


def _attribute(text: str) -> str:
    from html import escape

    return escape(text, quote=True)


def _static(path: str) -> Response:
    """A file of the front end, and nothing outside its folder."""
    found = (DIST / path).resolve()
    if not found.is_relative_to(DIST.resolve()) or not found.is_file():
        raise PageError("not_found", "There is no such file.")
    kind = {".js": "text/javascript", ".cjs": "text/javascript"}.get(found.suffix)
    return FileResponse(found, headers=HEADERS, media_type=kind)


async def _failed(request: Request, error: Exception) -> Response:
    """Any error in the shape that the front end knows."""
    if isinstance(error, HTTPException):
        found = PageError(_HTTP_CODES.get(error.status_code, "failed"), str(error.detail))
        return _answer(found, PageRedactor(), status=error.status_code)
    if isinstance(error, RequestValidationError):
        places = [f"{'.'.join(str(part) for part in item['loc'][1:])}: {item['msg']}" for item in error.errors()[:3]]
        return _answer(PageError("invalid", "; ".join(places)), PageRedactor())
    found = page_error(error)
    return _answer(found, request.app.state.pages.redactor())


def _answer(error: PageError, redactor: PageRedactor, *, status: int | None = None) -> JSONResponse:
    told: Any = redactor.clean({**error.to_dict(), "status": status or error.status})
    return JSONResponse({"error": told, "detail": told["message"]}, status_code=status or error.status, headers=HEADERS)
