"""`define window`: a window that queries share. What enters comes out to all its readers, as the definition says."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..plan import nodes
from ..types import Type
from .arrays import grown
from .columns import Array, Column
from .rows import CURRENT, ENTER, EXPIRED, LEAVE, RESET, Clock, Rows
from .services import Services
from .steps import make_window
from .windows import changes, for_joins
from .windows.log import EventLog


class NamedWindow:
    """One named window of one node (Siddhi's `io.siddhi.core.window.Window`).

    Its rows carry a serial number as their last column, so that joins know which row leaves. `published` are the kinds
    that readers get.
    """

    def __init__(self, definition: nodes.WindowDef, services: Services, scheduler: int) -> None:
        self.definition, self.services = definition, services
        self.id = definition.source.id
        self.types = definition.source.schema.types
        expired = definition.output != "current"
        self.published = {"current": (CURRENT,), "expired": (EXPIRED,), "all": (CURRENT, EXPIRED)}[definition.output]
        attrs = list(range(len(self.types)))
        self.window = make_window(
            definition.window, (*self.types, Type.LONG), scheduler, expired, True, attrs,
            schema=definition.source.schema, services=services, query=self.id, stream=self.id,
        )  # fmt: skip
        self.serial = 0
        self._log = EventLog((*self.types, Type.LONG))
        self._alive = np.zeros(0, np.bool_)

    def run(self, rows: Rows, clock: Clock) -> Rows:
        """Takes rows into the window and lets its timers fire; CURRENT and EXPIRED rows come out, and for joins ENTER
        and LEAVE rows where the window has them."""
        serial = np.arange(self.serial, self.serial + len(rows), dtype=np.int64)
        self.serial += len(rows)
        out = self.window.run(rows.with_columns([*rows.columns, Column(Type.LONG, serial)]), clock, 1, None)
        out.part = None
        if out.kind is not None:
            out = out.take(np.flatnonzero((out.kind <= EXPIRED) | (out.kind > RESET)))
        out = for_joins(out, self.window)
        self._track(out)
        return self._published(out)

    def _published(self, rows: Rows) -> Rows:
        """What the definition does not put out only changes what joins find: it makes no join look."""
        if len(self.published) == 2:
            return rows
        hidden, silent = (EXPIRED, LEAVE) if self.published == (CURRENT,) else (CURRENT, ENTER)
        rows = rows.take(np.flatnonzero((rows.kinds() != hidden) | (rows.columns[-1].values >= 0)))
        kind = rows.kinds().copy()
        kind[kind == hidden] = silent
        rows.kind = kind
        return rows

    def readable(self, rows: Rows) -> Rows:
        """The rows that queries other than joins see, without the serial number."""
        rows = rows.with_columns(rows.columns[:-1])
        return rows.take(np.flatnonzero(np.isin(rows.kinds(), self.published)))

    def _track(self, rows: Rows) -> None:
        """Keeps what the window holds at this moment, for on-demand queries."""
        if not len(rows):
            return
        serial = rows.columns[-1].values
        fresh, left = changes(rows)
        entering = rows.take(fresh)
        at = self._log.append(entering)
        self._alive = grown(self._alive, len(self._log.ts), False)
        self._alive[at : at + len(entering)] = True
        held = self._log.column(len(self.types), np.arange(self._log.end)).values
        gone = serial[left]
        if len(gone):
            self._alive[: self._log.end] &= ~np.isin(held, gone)
        if self._log.end > 2048 and 2 * np.count_nonzero(self._alive[: self._log.end]) < self._log.end:
            keep = np.flatnonzero(self._alive[: self._log.end])
            self._log.compact(keep)
            self._alive = np.ones(len(keep), np.bool_)

    def contents(self) -> list[Column]:
        """What the window holds, in the order of entry."""
        return self._log.columns(np.flatnonzero(self._alive[: self._log.end]))[: len(self.types)]

    def state(self) -> dict[str, Any]:
        live: Array = np.flatnonzero(self._alive[: self._log.end])
        return {"window": self.window.state(), "serial": self.serial, "held": self._log.state(live)}

    def load(self, state: dict[str, Any]) -> None:
        self.window.load(state["window"])
        self.serial = state["serial"]
        self._log.load(state["held"])
        self._alive = np.ones(self._log.end, np.bool_)

    @property
    def bytes(self) -> int:
        return self.window.bytes + self._log.bytes
