"""GraphiQL, with every asset served from here: the page works without a network."""

from __future__ import annotations

from html import escape
from importlib import resources
from typing import TYPE_CHECKING

from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Match, Route

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Scope

ASSETS_PATH = "/graphiql"

EXAMPLES = "examples.json"

_MEDIA_TYPES = {".js": "text/javascript", ".css": "text/css", ".json": "application/json"}

# CodeMirror and GraphiQL set inline styles; fonts and icons are data inside the style sheet
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline';"
    " img-src 'self' data:; font-src data:; connect-src 'self'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="{assets}/graphiql.min.css">
<link rel="stylesheet" href="{assets}/page.css">
</head>
<body>
<div id="graphiql" data-endpoint="{endpoint}" data-assets="{assets}">Loading GraphiQL…</div>
<script src="{assets}/react.production.min.js"></script>
<script src="{assets}/react-dom.production.min.js"></script>
<script src="{assets}/graphiql.min.js"></script>
<script src="{assets}/page.js"></script>
</body>
</html>
"""


class _PageRoute(Route):
    """The page for browsers only: everyone else goes on to the GraphQL endpoint."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child = super().matches(scope)
        accept = dict(scope.get("headers", ())).get(b"accept", b"")
        if match is not Match.FULL or b"text/html" not in accept:
            return Match.NONE, {}
        return match, child


def graphiql_routes(endpoint: str, title: str) -> list[BaseRoute]:
    """Return the routes of the page, at the endpoint's own path, and of its assets.

    Args:
        endpoint: Path of the GraphQL endpoint.
        title: Title of the page.
    """
    page = _PAGE.format(title=escape(title), assets=escape(ASSETS_PATH), endpoint=escape(endpoint))
    files = {
        file.name: file.read_bytes()
        for file in (resources.files(__package__) / "graphiql_assets").iterdir()
        if file.name.endswith(tuple(_MEDIA_TYPES))
    }
    # the operations that are shipped are what the page shows how to ask by
    files[EXAMPLES] = (resources.files(__package__) / "operations.json").read_bytes()

    async def show_page(_request: Request) -> Response:
        return HTMLResponse(page, headers=_HEADERS)

    async def show_asset(request: Request) -> Response:
        name = request.path_params["name"]
        content = files.get(name)
        if content is None:
            return Response(status_code=404)
        media_type = _MEDIA_TYPES[name[name.rindex(".") :]]
        return Response(content, media_type=media_type, headers=_HEADERS)

    return [
        _PageRoute(endpoint, show_page, methods=["GET"], include_in_schema=False),
        Route(f"{ASSETS_PATH}/{{name}}", show_asset, methods=["GET"], include_in_schema=False),
    ]
