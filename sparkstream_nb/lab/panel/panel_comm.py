"""The channel between JupyterLab's side panel and this kernel: one comm, which all pages share.

No page opens it and nothing is sent before a page asks, so that a front end without the panel notices nothing. A page
finds it by `comm_info_request`, and says that it is there. Pages see its messages by its id. They belong to no cell, so
that ipykernel handles a page's next message in the page's own subshell, and not behind the cell that runs.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from ..plain_data import without_controls
from .panel_server import PanelServer

TARGET = "sparkstream.panel"
"""The comm's target name, by which a page finds it."""
SUBSHELLS = ":subshells"
"""The end of the comm's id in a kernel that handles messages while a cell runs."""


class PanelComm:
    """The comm, as ipykernel's comm manager has it."""

    target_name = TARGET

    def __init__(self, kernel: Any) -> None:
        self.comm_id = TARGET + (SUBSHELLS if getattr(kernel, "_supports_kernel_subshells", False) else "")
        self._kernel = kernel
        self._server = PanelServer(self.send, _LateControl(kernel.shell.user_ns))

    def send(self, data: Mapping[str, Any], buffers: Sequence[bytes] = ()) -> None:
        """Sends a message to all pages. Its texts have no control characters."""
        kernel = self._kernel
        kernel.session.send(
            kernel.iopub_socket,
            "comm_msg",
            {"comm_id": self.comm_id, "data": without_controls(data)},
            parent={},
            ident=f"comm-{self.comm_id}".encode(),
            buffers=list(buffers),
        )

    def handle_msg(self, message: Mapping[str, Any]) -> None:
        """Handles a page's message."""
        self._server.receive(message["content"]["data"])

    def handle_close(self, message: Mapping[str, Any]) -> None:
        """Nothing: a page that goes says so by a message."""

    def close(self, **how: Any) -> None:
        """Nothing: it ends with the kernel."""


class _LateControl:
    """The control of this process's apps, loaded when an app is deployed: a page that only looks loads nothing."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self._namespace = namespace

    def state(self) -> Mapping[str, Any]:
        apps = getattr(sys.modules.get("sparkstream_nb.app.deploying"), "apps", None)
        if apps is None or not apps():
            return {"apps": [], "variables": []}
        state: Mapping[str, Any] = self._control().state()
        return state

    def __getattr__(self, name: str) -> Any:
        return getattr(self._control(), name)

    def _control(self) -> Any:
        return import_module(".panel_control", __package__).AppControl(self._namespace)


def offer_panel(kernel: Any) -> None:
    """Lets pages of JupyterLab find the apps of a kernel. Again without effect."""
    manager = getattr(kernel, "comm_manager", None)
    if manager is not None and not any(c.target_name == TARGET for c in list(manager.comms.values())):
        comm = PanelComm(kernel)
        manager.register_comm(comm)
        comm.send({"type": "hello"})
