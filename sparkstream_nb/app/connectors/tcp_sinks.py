"""The options of `tcp` sinks as servers that an app may send to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ...errors import Misuse, mask_passwords, shown
from ...sinks.target import Target
from ...sinks.tcp import TcpServer, TcpTarget
from ..config.grants import Grants

_URL = re.compile(r"tcp://(?P<server>[^/]+)/(?P<channel>\S+)")
_TRUTH = {"true": True, "false": False}


@dataclass(frozen=True)
class TcpGate:
    """Makes targets of the options of `what`, a sink in words, within its `grants`."""

    grants: Grants
    what: str

    def target(self, options: Mapping[str, str]) -> tuple[str, Target]:
        """(the server as it may be shown, the target). Raises `Misuse` for options that are wrong, and NotAllowed if
        the server is not granted."""
        url = options["url"].strip()
        if "${" in url:
            raise Misuse(f"{self.what}: url cannot have a reference such as ${{sec:...}} in it: it is shown")
        found = _URL.fullmatch(url)
        if found is None:
            raise Misuse(f"{self.what}: url is tcp://HOST:PORT/CONTEXT, not {shown(mask_passwords(url))}")
        host, port = self.grants.check_server("tcp", found["server"], f"{self.what} sends to")
        self._flag(options, "sync", False)
        place = TcpServer(
            host.strip("[]"), port, found["channel"], self._flag(options, "tcp.no.delay", True),
            self._flag(options, "keep.alive", True),
        )  # fmt: skip
        return f"{place}/{place.channel}", TcpTarget(place)

    def _flag(self, options: Mapping[str, str], key: str, default: bool) -> bool:
        value = options.get(key, str(default)).strip().lower()
        if value not in _TRUTH:
            raise Misuse(f"{self.what}: {key} is 'true' or 'false', not {shown(value)}")
        return _TRUTH[value]
