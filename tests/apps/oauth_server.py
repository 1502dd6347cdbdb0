"""A real server of access tokens on this machine, with Flask."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

import flask

from tests.apps.flask_server import served


@dataclass(frozen=True)
class TokenRequest:
    """What was asked for."""

    path: str
    headers: dict[str, str]
    form: dict[str, str]


@dataclass
class TokenServer:
    """What it was asked."""

    url: str = ""
    requests: list[TokenRequest] = field(default_factory=list)


@contextlib.contextmanager
def oauth_server(
    *, refreshes: bool = False, refused: Collection[str] = (), fails: int = 0, lasts: int = 3600
) -> Iterator[TokenServer]:
    """Gives `token-1`, `token-2`, ..., which last so many seconds. `refreshes`: refresh tokens come with them, of which
    some are `refused`. The first requests fail, so many."""
    found, app, given = TokenServer(), flask.Flask(__name__), [0]

    @app.post("/token")
    def token() -> Any:
        form = flask.request.form.to_dict()
        path = flask.request.full_path.rstrip("?")
        found.requests.append(TokenRequest(path, dict(flask.request.headers), form))
        if len(found.requests) <= fails:
            return {"error": "invalid_client"}, 401
        if form.get("refresh_token") in refused:
            return {"error": "invalid_grant"}, 400
        given[0] += 1
        more = {"refresh_token": f"refresh-{given[0]}"} if refreshes else {}
        return {"access_token": f"token-{given[0]}", "token_type": "Bearer", "expires_in": lasts, **more}

    with served(app) as url:
        found.url = url
        yield found
