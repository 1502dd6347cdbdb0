"""The options of `tcp` sources as ports of this machine at which an app may listen."""

from __future__ import annotations

from ...sources.tcp_source import TcpPlace
from ..config.grants import Grants
from .typed_options import OptionValues


def make_tcp_place(o: OptionValues, grants: Grants, channel: str) -> TcpPlace:
    """The address at which a source listens, as far as `grants` allow. `channel`: of a source without a `context`."""
    port = o.number("port")
    grants.check_server("tcp", f"localhost:{port}", f"{o.what} listens at")
    return TcpPlace("127.0.0.1", port, o.text("context") if o.has("context") else channel)
