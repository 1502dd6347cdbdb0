"""The options of `http` sinks as servers that an app may post to: grants, headers, secrets from outside the text."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from ...errors import Misuse, shown
from ...plan.query_parts import template_attributes
from ...sinks.header_texts import forbidden
from ...sinks.http_client import HttpServer
from ...sinks.http_sink import METHODS, OWN, Calls, HttpPlace, HttpTarget
from ...sinks.oauth import OAuthPlace
from ...sinks.target import Target
from ..config.grants import Grants
from ..config.secrets import KEPT_ELSEWHERE, References, check_password
from .header_options import Header, headers_of
from .typed_options import OptionValues

_CLIENTS = ("consumer.key", "body.consumer.key", "oauth.username")


@dataclass(frozen=True)
class HttpGate:
    """Makes targets of the options of `what`, a sink in words, within its `grants`. `key` begins the
    Idempotency-Keys of its messages, `calls` takes the responses.
    """

    grants: Grants
    references: References
    what: str
    key: str
    calls: Calls | None = None

    def target(self, options: Mapping[str, str], content_type: str) -> tuple[str, Target]:
        """(the server as it may be shown, the target for messages of this MIME type). Raises `Misuse` for options that
        are wrong, or have a secret that is no reference, and NotAllowed where the address is not granted."""
        o = OptionValues.of("sink", "http", options, self.what)
        address = o.raw("publisher.url")
        if "${" in urlsplit(address).netloc or address.startswith("${"):
            raise Misuse(f"{self.what}: the server in publisher.url cannot be a reference such as ${{sec:...}}")
        # No secret is looked up for an address that is not allowed.
        self.grants.check_url(address, f"{self.what} posts to")
        url = self.grants.check_url(self._resolve_url(address), f"{self.what} posts to")
        url_parts = urlsplit(url.text)
        path = (url_parts.path or "/") + (f"?{url_parts.query}" if url_parts.query else "")
        if not path.isascii():
            raise Misuse(f"{self.what}: write the path of publisher.url percent-encoded")
        oauth = self._oauth(o)
        header_list = list(self._headers(o.raw("headers")))
        headers = {h.name: h.value for h in header_list if not h.dynamic} | self._login(o)
        templates = {h.name: h.value for h in header_list if h.dynamic}
        if not any(h.name.lower() == "content-type" for h in header_list):
            headers["Content-Type"] = content_type
        method = o.raw("method")
        if not template_attributes(method) and method.upper() not in METHODS:
            raise Misuse(f"{self.what}: method is one of {', '.join(sorted(METHODS))}, not {shown(method)}")
        place = HttpPlace(
            url.scheme, url.host, url.port, path, tuple(headers.items()), tuple(templates.items()), method,
            self._timeout(o), self.key, oauth,
        )  # fmt: skip
        # The query may hold a key, and so may a path that has a reference.
        return url.base if "${" in address else url.base + (url_parts.path or "/"), HttpTarget(place, self.calls)

    def _resolve_url(self, text: str) -> str:
        return self.references.resolve(text, self.what)

    def _headers(self, text: str) -> Iterator[Header]:
        for header in headers_of(text, OWN, self.references, self.what):
            wrong = forbidden(header.fixed_value)
            if wrong is not None:
                raise Misuse(f"{self.what}: the header {header.name} {wrong}")
            yield header

    def _login(self, o: OptionValues) -> dict[str, str]:
        user, password = o.optional("basic.auth.username"), o.optional("basic.auth.password")
        if user is None and password is None:
            return {}
        if not user or not password:
            raise Misuse(f"{self.what}: basic.auth.username and basic.auth.password go together: give both")
        check_password(password, self.what, f"basic.auth.{KEPT_ELSEWHERE}")
        user = self._resolve_url(user)
        if ":" in user:
            raise Misuse(f"{self.what}: basic.auth.username cannot have a colon")
        login = f"{user}:{self._resolve_url(password)}".encode()
        return {"Authorization": f"Basic {base64.b64encode(login).decode()}"}

    def _oauth(self, o: OptionValues) -> OAuthPlace | None:
        """The server of access tokens; None without one."""
        client = self._pair(o, "consumer.key", "consumer.secret")
        in_body = self._pair(o, "body.consumer.key", "body.consumer.secret")
        user = self._pair(o, "oauth.username", "oauth.password")
        address = o.trim("token.url")
        if client is None and in_body is None and user is None:
            if address:
                raise Misuse(f"{self.what}: token.url needs {' or '.join(_CLIENTS)}: give both of a pair")
            return None
        if not address:
            raise Misuse(f"{self.what}: {' or '.join(_CLIENTS)} need a token.url, where access tokens come from")
        if o.raw("basic.auth.username"):
            raise Misuse(f"{self.what}: basic.auth.username and token.url do not go together: keep one")
        if "${" in address:
            raise Misuse(f"{self.what}: token.url cannot have a reference such as ${{sec:...}} in it")
        url = self.grants.check_url(address, f"{self.what} asks for access tokens at")
        url_parts = urlsplit(url.text)
        path = (url_parts.path or "/") + (f"?{url_parts.query}" if url_parts.query else "")
        refresh = o.trim("refresh.token")
        if refresh:
            check_password(refresh, self.what, "refresh.token='${sec:NAME}'")
        scope = o.trim("oauth.scope")
        server = HttpServer(url.scheme, url.host, url.port, self._timeout(o))
        return OAuthPlace(
            server, path, self._resolved_pair(client), self._resolved_pair(in_body), self._resolved_pair(user),
            self._resolve_url(refresh), "" if scope == "default" else scope,
        )  # fmt: skip

    def _pair(self, o: OptionValues, name: str, secret: str) -> tuple[str, str] | None:
        """Two options that go together, of which the second is a secret; None where neither is given."""
        first, second = o.trim(name), o.trim(secret)
        if not first and not second:
            return None
        if not first or not second:
            raise Misuse(f"{self.what}: {name} and {secret} go together: give both")
        check_password(second, self.what, f"{secret}='${{sec:NAME}}'")
        return first, second

    def _resolved_pair(self, pair: tuple[str, str] | None) -> tuple[str, str] | None:
        return None if pair is None else (self._resolve_url(pair[0]), self._resolve_url(pair[1]))

    def _timeout(self, o: OptionValues) -> float:
        """In seconds."""
        text, most = o.raw("socket.idle.timeout"), o.specs["socket.idle.timeout"].most
        if not text.isdecimal() or not 0 < int(text) <= most:
            raise Misuse(f"{self.what}: socket.idle.timeout is 1 to {most:,} ms, not {shown(text)}")
        return int(text) / 1000
