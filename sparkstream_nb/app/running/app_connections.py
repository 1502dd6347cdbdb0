"""The sources and sinks of a running app: the threads that read them and deliver to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...journal.result_codec import error_lines, errors_of
from ...sinks.delivery import DeliverySource
from ...sinks.target import OutputPlace
from ...sources.intake import Entrance, Intakes, IntakeSetup, SourceThread
from ...stores.store_protocol import BatchKey, ErrorRow
from ..connectors.sinks import Deliveries
from .app_files import AppDefinition, AppFiles
from .undelivered import FaultStreams

_TRIED_SECONDS = 0.5
"""The longest wait of a deployment for its sources (s)."""


class AppConnections:
    """The sources and sinks of the app that `definition` describes, whose files are `files`.

    `entrance`: the way in for events of sources, and of sinks that could not deliver.
    """

    def __init__(self, definition: AppDefinition, files: AppFiles, entrance: Entrance) -> None:
        self._definition, self._files, self._entrance = definition, files, entrance
        self.sinks = self._open_sinks()
        self.intakes = self._open_sources()

    def _open_sinks(self) -> Deliveries:
        """The sinks of the app, which continue where they were. New ones begin with the next micro-batch."""
        d, way_in = self._definition, self._entrance
        sinks = d.deployment.connections.sinks
        run = d.app_run.run
        last_batch = self._files.store.last_committed(d.deployment.name, run) if sinks else -1
        begin = max(way_in.progress.batch, last_batch) + 1
        fault = FaultStreams(way_in.lock, way_in.inbox, d.app_run, way_in.route)
        source = DeliverySource(self._files.outputs, way_in.progress, self._keep_errors, fault, d.folder / "sinks")
        return Deliveries(sinks.setups(run) if sinks else [], source, begin)

    def _open_sources(self) -> Intakes:
        """The sources of the app, which continue from their positions in the inbox."""
        sources = self._definition.deployment.connections.sources
        return Intakes(sources.setups(self._entrance.latest) if sources else [], self._entrance)

    def _keep_errors(self, sink: str, place: OutputPlace, errors: Sequence[Sequence[Any]]) -> None:
        """Keeps the events that a sink could not deliver. The ledger names those that were kept before a crash."""
        rows = [ErrorRow(*fields) for fields in errors_of(error_lines(errors))]
        app, run, progress = self._definition.deployment.name, self._definition.app_run.run, self._entrance.progress
        if self._files.store.commit(BatchKey(app, f"{run}/{sink}", place.batch << 32 | place.row), {}, rows):
            with progress.changed:
                progress.errors += len(rows)
                progress.faulty.update(r.stream for r in rows)
            self._files.error_limit.count_added(len(rows))

    def add_source(self, setup: IntakeSetup) -> SourceThread:
        """Adds a source to the running app, in place of one of its name. It starts with the app."""
        with self._entrance.lock:
            return self.intakes.add(setup)

    def remove_source(self, name: str) -> None:
        """Ends a source that was added."""
        with self._entrance.lock:
            self.intakes.remove(name)

    def start_sources(self) -> None:
        """Starts to read."""
        self.intakes.start()

    def stop_sources(self) -> None:
        """Reads nothing more."""
        self.intakes.stop()

    def start_sinks(self) -> None:
        """Starts to deliver."""
        self.sinks.start()

    def stop_sinks(self) -> None:
        """Delivers nothing more until the next start."""
        self.sinks.stop()

    def drain_sinks(self, seconds: float) -> int:
        """Waits until the sinks have delivered all outputs, for `seconds` at most; the number still to be sent."""
        return self.sinks.drain(seconds)

    def drain_topics(self, seconds: float) -> int:
        """Waits until the sinks of topics within the app have delivered all outputs, for `seconds` at most; the number
        of all that they have delivered."""
        return self.sinks.drain_topics(seconds)

    def wait_tried(self) -> None:
        """Waits a little until it is known which sources are away."""
        self.intakes.wait_tried(_TRIED_SECONDS)

    def close(self) -> None:
        """Ends the threads of sources and sinks."""
        self.stop_sources()
        self.sinks.close()

    @property
    def away(self) -> list[str]:
        """The sources that cannot be read and the sinks that could not deliver last, each with the reason."""
        sources, sinks = self.intakes.figures(), self.sinks.figures()
        sentences = [f"Source {s.name} ({s.origin}) is away: {s.last_error}." for s in sources if s.last_error]
        return sentences + [f"Sink {s.name} ({s.target}): {s.last_error}." for s in sinks if s.last_error]
