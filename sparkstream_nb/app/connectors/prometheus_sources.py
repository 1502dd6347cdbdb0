"""The options of `prometheus` sources as pages of servers and metrics on them."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from ...errors import Misuse, shown
from ...plan.connectors.mapping import SourceMapping
from ...sinks.header_texts import forbidden
from ...sinks.http_client import HttpClient, HttpServer
from ...sinks.http_sink import OWN
from ...sinks.target import TargetUnavailable
from ...sources.prometheus_source import PrometheusReader, WantedMetric
from ...sources.reader import SourceUnavailable
from ...types import Schema
from ..config.grants import Grants
from ..config.secrets import References, check_password
from .header_options import headers_of
from .typed_options import OptionValues

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_PAIR = re.compile(r"\s*'([^':]+):([^']*)'\s*")
_MOST_BYTES = 1 << 26
"""Maximum bytes of a page."""


@dataclass(frozen=True)
class _HttpPage:
    """A page with metrics, at a server that is asked over HTTP."""

    client: HttpClient
    path: str
    headers: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return f"{self.client.server}{self.path.partition('?')[0]}"

    def read(self) -> str:
        """The text of the page. Raises SourceUnavailable."""
        try:
            answer = self.client.ask("GET", self.path, b"", dict(self.headers))
        except TargetUnavailable as error:
            raise SourceUnavailable(str(error)) from None
        if answer.status != 200:
            raise SourceUnavailable(f"{self} answers {answer}")
        if not answer.is_complete:
            raise SourceUnavailable(f"{self} has more than {_MOST_BYTES:,} bytes")
        return answer.body.decode("utf-8", "replace")

    def close(self) -> None:
        self.client.close()

    def cancel(self) -> None:
        self.client.cancel()


@dataclass(frozen=True)
class PrometheusSourceGate:
    """Makes readers of the options of a source of `stream`, within its `grants`."""

    grants: Grants
    references: References
    stream: str

    def reader(self, o: OptionValues, mapping: SourceMapping, schema: Schema) -> tuple[str, PrometheusReader]:
        """(the page and the metric as they may be shown, the reader). Raises `Misuse` for options that are wrong, or
        have a secret that is no reference, and NotAllowed for an address that is not granted."""
        url = self.grants.check_url(o.text("target.url"), f"{o.what} reads from")
        if o.has("scheme") and o.choice("scheme") != url.scheme:
            raise Misuse(f"{o.what}: 'scheme' is {o.choice('scheme')}, and 'target.url' begins with {url.scheme}://")
        name = o.text("metric.name") or self.stream
        if not _NAME.fullmatch(name):
            raise Misuse(f"{o.what}: 'metric.name' is letters, digits, '_' and ':', not {shown(name)}")
        wanted_labels = {label: o.text(label) for label in ("job", "instance") if o.text(label)}
        metric = WantedMetric(name, o.choice("metric.type"), wanted_labels | self._grouping_key(o))
        parts = urlsplit(url.text)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        server = HttpServer(url.scheme, url.host, url.port, float(o.number("scrape.timeout")), _MOST_BYTES)
        page = _HttpPage(HttpClient(server), path, self._headers(o))
        return f"{name} at {page}", PrometheusReader(page, metric, mapping, schema, float(o.number("scrape.interval")))

    def _grouping_key(self, o: OptionValues) -> dict[str, str]:
        text = o.text("grouping.key")
        pairs = [_PAIR.fullmatch(part) for part in text.split(",") if text]
        if None in pairs:
            raise Misuse(f"{o.what}: 'grouping.key' is \"'NAME:VALUE','NAME:VALUE'\", not {shown(text)}")
        return {pair[1].strip(): pair[2].strip() for pair in pairs if pair is not None}

    def _headers(self, o: OptionValues) -> tuple[tuple[str, str], ...]:
        headers = [(h.name, h.value) for h in headers_of(o.raw("headers"), OWN, self.references, o.what)]
        for name, value in headers:
            fault = forbidden(value)
            if fault is not None:
                raise Misuse(f"{o.what}: the header {name} {fault}")
        user, password = o.trim("username"), o.trim("password")
        if bool(user) != bool(password):
            raise Misuse(f"{o.what}: 'username' and 'password' go together: give both")
        if user:
            check_password(password, o.what)
            login = f"{self.references.resolve(user, o.what)}:{self.references.resolve(password, o.what)}"
            headers.append(("Authorization", f"Basic {base64.b64encode(login.encode()).decode()}"))
        return tuple(headers)
