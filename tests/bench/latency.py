"""How long a person waits: a kernel, its cells and events sent by hand, as a notebook's front end drives them."""

from __future__ import annotations

import tempfile
import time

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import start_new_kernel

_APP = """%%siddhi {name} --fresh
define stream Trades (symbol string, price double, quantity long);
from Trades[quantity > 10]#window.time(5 sec) select symbol, sum(price) as total group by symbol insert into Out;
"""
_SEND = "%siddhi send {name}.Trades '[\"wso2\", 10.5, {quantity}]' --at 2024-06-01T10:00:{second:02}"
_LOOK = "%siddhi output {name}.Out"


class _Kernel:
    def __init__(self, client: BlockingKernelClient) -> None:
        self.client = client

    def run(self, cell: str) -> str:
        """What the cell shows as text; raises RuntimeError where it fails."""
        shown: list[str] = []

        def note(message: dict) -> None:  # type: ignore[type-arg]
            kind, content = message["msg_type"], message["content"]
            if kind == "error":
                raise RuntimeError(f"{content['ename']}: {content['evalue']}")
            if kind in ("execute_result", "display_data"):
                shown.append(content["data"].get("text/plain", ""))

        self.client.execute_interactive(cell, output_hook=note, timeout=120)
        return "\n".join(shown)

    def first_result(self, name: str) -> None:
        """Deploys an app, sends it an event and shows what came out."""
        self.run(_APP.format(name=name))
        self.run(_SEND.format(name=name, quantity=20, second=1))
        self.look(name, "10.5")

    def look(self, name: str, result: str) -> None:
        """Raises RuntimeError where the app's output does not show the result."""
        shown = self.run(_LOOK.format(name=name))
        if result not in shown:
            raise RuntimeError(f"{result} is not shown: {shown}")


def waits() -> dict[str, float]:
    """Seconds: from the start of a kernel to the first result, of a second app to its first, and for one more event."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        manager, client = start_new_kernel(cwd=folder)
        try:
            kernel = _Kernel(client)
            kernel.run("%load_ext sparkstream_nb")
            kernel.first_result("First")
            found["a cold start: kernel, Spark, first app, first result"] = time.perf_counter() - began
            began = time.perf_counter()
            kernel.first_result("Second")
            found["a running kernel: `%%siddhi`, one event, its result"] = time.perf_counter() - began
            took = []
            for i in range(5):
                began = time.perf_counter()
                kernel.run(_SEND.format(name="Second", quantity=30, second=2 + i))
                kernel.look("Second", f"{10.5 * min(i + 2, 5):.1f}")
                took.append(time.perf_counter() - began)
            found["one event sent by hand, until its result is shown (the slowest of five)"] = max(took)
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
    return found


if __name__ == "__main__":
    for what, seconds in waits().items():
        print(f"{seconds:.2f} s  {what}")
