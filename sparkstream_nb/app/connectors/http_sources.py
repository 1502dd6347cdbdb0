"""The options of `http` sources as addresses of this machine at which an app may listen."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from ...errors import Misuse
from ...journal.private import private_folder, write_private
from ...plan.connectors.incoming import refused_place
from ...sources.http_source import HttpListener
from ...system import put_in_place, to_disk
from ..config.grants import Grants, Url
from .typed_options import OptionValues

_TOKEN = 24
"""Bytes of chance in a token."""


@dataclass(frozen=True)
class ListenerToken:
    """The secret of a listener, in a file that only its owner reads; made when it is first asked for."""

    file: Path

    def __call__(self) -> str:
        token = self.file.read_text(encoding="ascii").strip() if self.file.exists() else ""
        if len(token) < _TOKEN:  # none yet, or what a crash left of one
            private_folder(self.file.parent)
            new, token = self.file.with_suffix(".new"), secrets.token_urlsafe(_TOKEN)
            write_private(new, token.encode())
            to_disk(new)
            put_in_place(new, self.file)
        return token


def make_listener(o: OptionValues, grants: Grants, token: ListenerToken) -> tuple[HttpListener, str]:
    """(the listener, its address as it may be shown), as far as `grants` allow. Raises `Misuse` for options that are
    wrong."""
    where = f"{o.what} listens at"
    url = Url.of(o.text("receiver.url"), where)  # first: a grant for another host would not help
    if (objection := refused_place(url.scheme, url.host, url.port)) is not None:
        raise Misuse(f"{o.what}: {objection}")
    grants.check_url(o.text("receiver.url"), where)
    o.number("worker.count")
    seconds = o.number("socket.idle.timeout") / 1000
    path = "/" + "/".join(quote(segment) for segment in url.path)
    return HttpListener("127.0.0.1", url.port, path, seconds, token), f"{url.base}{path}, token in {token.file}"
