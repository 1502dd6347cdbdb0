"""Events that a sink could not deliver, on their way to the fault stream of their app."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ...engine.columnar.error_routing import ErrorObject, fault_stream
from ...engine.state.node_batch import InputBatch, StreamRows
from ...journal.inbox import Inbox
from ...sinks.delivery import SinkSetup
from ...sinks.sink_messages import attribute_columns
from ...sinks.target import OutputPlace
from ..deployment.app_folder import AppRun

_PATIENCE = 0.2
"""Seconds for which a sink waits for the app, before it looks whether it is to end."""


@dataclass(frozen=True)
class FaultStreams:
    """Puts events into the app's inbox, for the node that put them out; `lock` is the inbox's.

    An entry of the journal has the sink and the place of its events, and the journal's position the last place of each
    sink. So a sink that was cut off between the entry and the note of its own position, and does the same again, finds
    that they are in.
    """

    lock: threading.RLock
    inbox: Inbox
    app_run: AppRun
    routing: str

    def __call__(self, setup: SinkSetup, place: OutputPlace, events: pa.Table, reason: str) -> bool:
        """A `FaultSender`. Raises SparkStreamError if the journal cannot be written."""
        # Who holds the lock may be waiting for the sink to end.
        if not self.lock.acquire(timeout=_PATIENCE):
            return False
        try:
            last = (place.batch, place.row)
            if self.inbox.position.sinks.get(setup.name, (-1, 0)) < last:
                ts = events.column(2).to_numpy()
                columns = [*attribute_columns(events), [ErrorObject(reason)] * len(ts)]
                rows = StreamRows(np.zeros(len(ts), np.int64), ts, columns)
                batch = InputBatch(ts[-1:], {fault_stream(setup.stream): rows})
                entry = self.inbox.batch(batch, self._route(events.column(0)[0].as_py()))
                # No request: whether a sink fails must not decide whose turn the next event from outside is.
                self.inbox.append([replace(entry, requests=0, sink=setup.name, place=last)])
        finally:
            self.lock.release()
        return True

    def _route(self, node: int) -> str:
        """The route to a node of the run; the app's routing, if that node takes no more events."""
        over = list(self.app_run.over or range(self.app_run.began))
        return f"node:{over.index(node) + 1}" if node in over else self.routing
