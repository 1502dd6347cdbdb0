"""The options of `websocket` sources and sinks as servers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from ...connections.websocket_client import WebSocketServer
from ...errors import Misuse, shown
from ...masking import mask_server
from ...plan.connectors.connector_options import options_of
from ...plan.connectors.option_spec import End
from ...sinks.header_texts import text_fault
from ...sinks.target import Target
from ...sinks.websocket_sink import WebSocketPlace, WebSocketTarget
from ..config.grants import Grants, Url
from ..config.secrets import References
from .header_options import headers_of
from .typed_options import OptionValues

_OF_HANDSHAKE = ("connection", "content-length", "host", "origin", "transfer-encoding", "upgrade")


@dataclass(frozen=True)
class WebSocketGate:
    """Makes places of the options of `what`, a source or sink in words, within its `grants`."""

    grants: Grants
    references: References
    what: str

    def target(self, options: Mapping[str, str], *, is_binary: bool) -> tuple[str, Target]:
        """(the server as it may be shown, the target of a sink). Raises `Misuse` for options that are wrong, or have a
        secret that is no reference, and NotAllowed for a server that is not granted."""
        server = self._server("sink", options, "sends to")
        return str(server), WebSocketTarget(WebSocketPlace(server, is_binary))

    def subscription(self, options: Mapping[str, str]) -> WebSocketServer:
        """The server of a source. Raises as `target` does."""
        return self._server("source", options, "reads from")

    def _server(self, end: End, options: Mapping[str, str], does: str) -> WebSocketServer:
        o = OptionValues(options, options_of(end, "websocket"), self.what)
        address = o.text("url")
        scheme, separator, rest = address.partition("://")
        if scheme != "ws" or not separator:
            wrong = shown(mask_server(address))
            raise Misuse(f"{self.what}: url is an address such as ws://host:8025/path, not {wrong}")
        url = Url.of(f"http://{rest}", self.what)
        host = f"[{url.host}]" if ":" in url.host else url.host
        self.grants.check_server("websocket", f"{host}:{url.port}", f"{self.what} {does}")
        if not rest.isascii():
            raise Misuse(f"{self.what}: write the path of url percent-encoded")
        parts = urlsplit(url.text)
        query = f"?{parts.query}" if parts.query else ""
        protocols = tuple(protocol.strip() for protocol in o.text("sub.protocol").split(",") if protocol.strip())
        headers = []
        for header in headers_of(o.raw("headers"), _OF_HANDSHAKE, self.references, self.what):
            if header.name.lower().startswith("sec-websocket") or text_fault(header.value) is not None:
                raise Misuse(f"{self.what}: the header {header.name} is not an app's to set: leave it out")
            headers.append((header.name, header.value))
        return WebSocketServer(f"ws://{host}:{url.port}{parts.path or '/'}{query}", protocols, tuple(headers))
