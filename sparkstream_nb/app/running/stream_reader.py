"""The events of an app's streams, as they were committed."""

from __future__ import annotations

from typing import Literal

from ... import argument_checks
from ...errors import Misuse, nearest, shown
from ...outputs.arrivals import InboxReader
from ...types import Type
from ..results.answers import Events, InputCounts
from ..results.stream_ends import ArrivalEnds, OutputEnds
from ..results.stream_tail import StreamEnds, Tail, TailShape
from .runtime import AppRuntime

ARRIVALS = 1_000
"""Default number of events of an input stream that `App.output` reads."""


class StreamReader:
    """Outputs of derived streams, and the last events of input streams."""

    def __init__(self, app: AppRuntime) -> None:
        self._app = app

    def output(self, stream: str, *, last: int | None = None, limit: int | None = None) -> Events:
        """See `App.output`."""
        app = self._app
        argument_checks.optional_int("last", last, 0)
        argument_checks.optional_int("limit", limit, 0)
        if self._only_comes_in(stream):
            found = self._arrivals().last(stream, ARRIVALS if last is None else last)
            return Events(app.name, stream, found.frame, limit, InputCounts(found.total, found.gone))
        if app.state == "running":
            app.settle_briefly()
        arrived = app.inbox.arrived
        waiting = arrived.total - arrived.through(app.progress.last)
        with app.outputs.tidying:
            frame = app.outputs.frame(stream, app.schema_of(stream).names, app.progress.batch, last)
            gone = 0 if last is not None and len(frame) >= last else app.outputs.dropped_events.get(stream, 0)
        return Events(app.name, stream, frame, limit, dropped=gone, waiting=waiting)

    def tail(
        self,
        stream: str,
        *,
        last: int = 20,
        latest: str | None = None,
        number: str | None = None,
        newest: Literal["first", "last"] = "first",
    ) -> Tail:
        """See `App.tail`."""
        app = self._app
        app.check_open()
        argument_checks.optional_int("last", last, 1)
        schema = app.schema_of(stream)
        if latest is not None and number is not None:
            raise Misuse("a tail shows the latest event of each key or one number: give latest or number, not both")
        if newest not in ("first", "last"):
            raise Misuse(f"newest is 'first' or 'last', not {shown(newest)}")
        for what, name in (("latest", latest), ("number", number)):
            if name is not None and name not in schema.names:
                raise Misuse(nearest(f"{what}: {app.name}.{stream} has no attribute '{name}'", name, schema.names))
        if latest is not None and schema.types[schema.names.index(latest)] is Type.OBJECT:
            raise Misuse(f"latest: '{latest}' of {app.name}.{stream} is an object: give an attribute of another type")
        ends: StreamEnds
        if self._only_comes_in(stream):
            ends = ArrivalEnds(self._arrivals, stream, lambda: app.inbox.position.events.get(stream, 0))
        else:
            ends = OutputEnds(lambda: app.outputs, app.progress, stream, schema.names)
        shape = TailShape(last, newest, latest, number)
        return Tail(app.name, stream, shape, ends, app.on_commit, app.view_state)

    def _arrivals(self) -> InboxReader:
        app = self._app
        return InboxReader(app.inbox.folder, app.schemas, app.life.shards, app.life.began, app.life.entries)

    def _only_comes_in(self, stream: str) -> bool:
        """True if a stream has only events that are sent to it."""
        app = self._app
        written = {q.output.target.id for q in app.plan.queries}
        app.schema_of(stream)
        return app.plan.streams[stream].kind == "defined" and stream not in written
