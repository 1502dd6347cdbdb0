"""`sparkstream manager`."""

from __future__ import annotations

from typing import Any

from ...app.manager.manager_command import ManagerOptions, run_manager


def run(options: Any) -> int:
    """`sparkstream manager`."""
    o = options
    return run_manager(ManagerOptions(o.conf, o.host, o.port, o.tls_cert, o.tls_key, o.watch, o.allow_env))
