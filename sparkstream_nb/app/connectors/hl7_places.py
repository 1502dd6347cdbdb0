"""The options of `hl7` sources and sinks as ports and servers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ...errors import Misuse, shown
from ...masking import mask_server
from ...plan.connectors.mapping import SourceMapping, TextSource
from ...sinks.hl7_sink import Hl7Server, Hl7Target
from ...sinks.target import Target
from ...sources.hl7_source import Hl7Port
from ...types import Schema
from ..config.grants import Grants
from .typed_options import OptionValues

_URI = re.compile(r"(hl7://)?(?P<server>[^/@\s]+:\d+)/?")


def make_hl7_port(o: OptionValues, grants: Grants, mapping: SourceMapping, schema: Schema) -> Hl7Port:
    """The port at which a source listens, as far as `grants` allow. Raises `Misuse` for options that are wrong."""
    port = o.number("port")
    grants.check_server("hl7", f"localhost:{port}", f"{o.what} listens at")
    o.choice("charset")
    is_er7 = o.choice("hl7.encoding") == "er7" and isinstance(mapping.format, TextSource)
    return Hl7Port(port, schema.names[0] if is_er7 else None)


@dataclass(frozen=True)
class Hl7Gate:
    """Makes targets of the options of `what`, a sink in words, within its `grants`."""

    grants: Grants
    what: str

    def target(self, options: Mapping[str, str]) -> tuple[str, Target]:
        """(the server as it may be shown, the target). Raises `Misuse` for options that are wrong, and NotAllowed if
        the server is not granted."""
        o = OptionValues.of_trimmed("hl7", options, self.what)
        uri = o.text("uri")
        match = _URI.fullmatch(uri)
        if match is None:
            raise Misuse(f"{self.what}: uri is HOST:PORT or hl7://HOST:PORT, not {shown(mask_server(uri))}")
        host, port = self.grants.check_server("hl7", match["server"], f"{self.what} sends to")
        o.choice("charset")
        seconds = o.number("hl7.timeout") / 1000
        place = Hl7Server(host.strip("[]"), port, o.choice("hl7.encoding") == "xml", seconds)
        return str(place), Hl7Target(place)
