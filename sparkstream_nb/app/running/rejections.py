"""Rows and events that an app could not take, and sending them once more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from ...engine.state.node_batch import InputBatch
from ...errors import SparkStreamError
from ...ingest.value_formats import ValueFormat
from ..results.answers import Errors
from ..results.rejected import ReplayContext, Replayed, errors_of, select_errors, to_events
from .runtime import AppRuntime


class Rejections:
    """The errors of an app."""

    def __init__(self, app: AppRuntime) -> None:
        self._app = app

    @property
    def errors(self) -> Errors:
        """Rows and events that the app could not take, each with its reason."""
        app = self._app
        app.check_open()
        return replace(errors_of(app.name, app.store), dropped=app.progress.dropped_errors, away=app.connections.away)

    def replay(
        self,
        errors: pd.DataFrame | Sequence[int] | None = None,
        *,
        decimal: str | None = None,
        missing: Sequence[str] | None = None,
    ) -> Replayed:
        """Sends rows, events and messages of `errors` once more, and takes them off the list.

        `errors`: their ids, or rows of `errors.frame`, whose values and timestamps may have been edited; by default all
        that came in on a stream. An event keeps its time; one without gets the time of the app's clock, which the
        answer says. Values that are texts are read as by a feed with `decimal` and `missing`. Those whose values do not
        fit their stream stay on the list, and the answer says why. Raises `Misuse`, before anything is sent, for an id
        that is not there, and a timestamp or values of another kind. Where the process ends in between, they are sent
        and still on the list.
        """
        app = self._app
        app.check_open()
        value_format = ValueFormat.of(decimal, missing)
        with app.lock:
            selection = select_errors(self.errors, errors, app.schemas)
            sources = app.deployment.connections.sources
            messages_of = (lambda name: None) if sources is None else sources.messages_of
            clock = app.inbox.position.clock if app.clock.wall is None else None
            now = app.clock.now() if clock is None else clock
            given_again = ReplayContext(now, app.clock.latest_time(), app.deployment.limits, messages_of, value_format)
            events: dict[int, InputBatch] = {}
            left: dict[int, str] = {}
            for error in selection:
                try:
                    events[error.id] = to_events(error, app.schemas[error.stream], given_again)
                except SparkStreamError as e:
                    left[error.id] = str(e)
            if events:
                app.start()
                app.append([app.inbox.batch(e, app.routing) for e in events.values()])
                app.store.forget_errors(app.name, list(events))
        timeless = sum(error.at is None for error in selection if error.id in events)
        return Replayed(app.name, len(events), left, timeless, now)
