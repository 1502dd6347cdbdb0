"""The options of `tcp` sinks as servers that an app may send to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ...errors import Misuse, shown
from ...masking import mask_passwords
from ...sinks.target import Target
from ...sinks.tcp_sink import TcpServer, TcpTarget
from ..config.grants import Grants
from .typed_options import OptionValues

_URL = re.compile(r"tcp://(?P<server>[^/]+)/(?P<channel>\S+)")


@dataclass(frozen=True)
class TcpGate:
    """Makes targets of the options of `what`, a sink in words, within its `grants`."""

    grants: Grants
    what: str

    def target(self, options: Mapping[str, str]) -> tuple[str, Target]:
        """(the server as it may be shown, the target). Raises `Misuse` for options that are wrong, and NotAllowed if
        the server is not granted."""
        o = OptionValues.of_trimmed("tcp", options, self.what)
        url = o.text("url")
        match = _URL.fullmatch(url)
        if match is None:
            raise Misuse(f"{self.what}: url is tcp://HOST:PORT/CONTEXT, not {shown(mask_passwords(url))}")
        host, port = self.grants.check_server("tcp", match["server"], f"{self.what} sends to")
        o.flag("sync")
        place = TcpServer(host.strip("[]"), port, match["channel"], o.flag("tcp.no.delay"), o.flag("keep.alive"))
        return f"{place}/{place.channel}", TcpTarget(place)
