"""The options that NATS sources and sinks share: servers and logins."""

from __future__ import annotations

from .option_spec import OptionSpec

NATS_LOGIN = (
    OptionSpec("server.urls", "The servers.", "servers", default="nats://localhost:4222"),
    OptionSpec("bootstrap.servers", "Another name of `server.urls`.", "servers"),
    OptionSpec("client.id", "Accepted, and without effect.", effect=False),
    OptionSpec("auth.type", "`user` or `token`.", "choice", values=("user", "token")),
    OptionSpec("username", "The user name, with `auth.type='user'`."),
    OptionSpec("password", "The password, by reference, with `auth.type='user'`.", secret=True),
    OptionSpec("token", "The token, by reference, with `auth.type='token'`.", secret=True),
)
