"""`define window`: a window shared by queries. Its output goes to all its readers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...plan import nodes
from ...types import Type
from ..columnar.column_data import Column
from ..columnar.rows import CURRENT, ENTER, EXPIRED, LEAVE, RESET, Clock, Rows
from ..joins.join_contents import Contents, Lookups
from ..select.steps import WindowNeeds, make_window
from ..state.declared import DeclaredState, part, plain_value
from ..state.saving import Form
from ..state.services import Services
from ..windows import Window, entering_rows, for_joins, rows_held


class NamedWindow(DeclaredState):
    """One named window of one node (Siddhi's `io.siddhi.core.window.Window`).

    Its rows carry a serial number as their last column, so that joins know which row leaves. `published_kinds` are the
    event types that readers receive.
    """

    window: Window = part()
    serial: int = plain_value(0)

    def __init__(self, definition: nodes.WindowDef, services: Services, scheduler: int) -> None:
        self.definition, self.services = definition, services
        self.id = self.name = definition.source.id
        self.types = definition.source.schema.types
        wants_expired = definition.output != "current"
        self.published_kinds = {"current": (CURRENT,), "expired": (EXPIRED,), "all": (CURRENT, EXPIRED)}[
            definition.output
        ]
        self.window = make_window(
            definition.window, (*self.types, Type.LONG), scheduler, WindowNeeds(wants_expired, findable=True),
            dict(enumerate(definition.source.schema.names)), services=services, query=self.id, stream=self.id,
        )  # fmt: skip
        self.serial = 0
        self.is_ordered = self.window.is_ordered
        self._contents = Contents([self.types])

    def run(self, rows: Rows, clock: Clock) -> Rows:
        """Adds rows to the window and lets its timers fire; returns CURRENT and EXPIRED rows, and for joins ENTER and
        LEAVE rows if the window has them."""
        serial = np.arange(self.serial, self.serial + len(rows), dtype=np.int64)
        self.serial += len(rows)
        out = self.window.run(rows.with_columns([*rows.columns, Column(Type.LONG, serial)]), clock, 1, None)
        out = Rows(out.columns, out.ts, out.order_key, out.chunk, out.kind)
        if out.kind is not None:
            out = out.where((out.kind <= EXPIRED) | (out.kind > RESET))
        out = for_joins(out, self.window)
        self._track(out)
        return self._publish_rows(out)

    def next_due(self) -> int | None:
        """The earliest time (ms) at which the clock alone changes the window's contents; None if no time does.
        On-demand queries see the contents, whether or not expired events are wanted.
        """
        return self.window.next_due()

    def _publish_rows(self, rows: Rows) -> Rows:
        """Rows of types that the definition does not emit become ENTER or LEAVE: they change the contents for joins,
        but make no join look.
        """
        if len(self.published_kinds) == 2:
            return rows
        hidden_kind, silent = (EXPIRED, LEAVE) if self.published_kinds == (CURRENT,) else (CURRENT, ENTER)
        rows = rows.where((rows.kinds() != hidden_kind) | (rows.columns[-1].values >= 0))
        kind = rows.kinds().copy()
        kind[kind == hidden_kind] = silent
        rows.kind = kind
        return rows

    def readable(self, rows: Rows) -> Rows:
        """The rows that queries other than joins see, without the serial number."""
        rows = rows.with_columns(rows.columns[: len(self.types)])
        kinds = rows.kinds()
        return rows.where(kinds <= EXPIRED if len(self.published_kinds) == 2 else kinds == self.published_kinds[0])

    def looked_into(self) -> None:
        """Records that a join or an on-demand query read the window's contents."""
        self._contents.looked_into()

    def _track(self, rows: Rows) -> None:
        """Updates the contents to the current ones. If they were read, some rows keep their own time, and some do not
        expire (see `JoinOp._keep_times`)."""
        n = len(rows)
        if n == 0:
            return
        contents, width = self._contents, len(self.types)
        contents.compact(0)
        fresh = rows.take(entering_rows(rows))
        rank = fresh.columns[width].values if self.is_ordered else None
        contents.add(0, fresh.with_columns(fresh.columns[:width]), rank)
        slot = contents.slots(0, rows.columns[-1].values)
        side, key, instance, probes = np.zeros(n, np.int8), np.full(n, -1), np.zeros(n, np.int64), np.full(n, -1)
        stamps = self.window.stamps
        off, loses = np.zeros(2, np.bool_), np.array([stamps == CURRENT, False])
        rows.kind = rows.kinds().copy()
        for _ in contents.run(Lookups(side, rows.kind, key, slot, instance, off, loses, probes), 0, 1):
            pass
        if stamps is not None and (probes >= 0).any():
            at = probes if stamps == EXPIRED else np.append(-1, probes[:-1])
            late = np.flatnonzero((at >= 0) & (rows.kind == stamps))
            rows.ts[late] = contents.logs[0].ts[at[late]]

    def contents(self) -> list[Column]:
        """The window's contents, in order."""
        return self._contents.logs[0].columns(self._contents.held(0))

    def _state(self, form: Form) -> dict[str, Any]:
        return {**super()._state(form), "held": self._contents.state(0)}

    def load(self, state: dict[str, Any]) -> None:
        super().load(state)
        self._contents = Contents([self.types])
        self._contents.load(0, state["held"], 0, 1)

    @property
    def bytes(self) -> int:
        """Bytes held."""
        return self.window.bytes + self._contents.bytes

    @property
    def rows(self) -> int | None:
        """Events that the window holds."""
        return rows_held(self.window)
