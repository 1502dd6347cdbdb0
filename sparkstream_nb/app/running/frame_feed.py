"""Streaming DataFrames that an app follows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from ...errors import Misuse
from ...journal.visible_folder import check_visible
from ...sources.frame_stream import FrameStreamReader, check_stream
from ...sources.intake import IntakeSetup, SourceFigures, SourceThread
from ..results.frontend import Displayed

if TYPE_CHECKING:
    from ...sources.feeds import Shape
    from .runtime import AppRuntime

FOLDER = "frames"
"""The folder of an app's run in which Spark writes the rows of the frames that it follows, and their checkpoints."""


class FrameFeed(Displayed):
    """A streaming DataFrame that feeds a stream of an app. Made by `App.feed`.

    It is a source of the app: it stops and starts with it, and each of Spark's micro-batches is taken once. After the
    app was attached or deployed again, feed the frame again: it continues where it was.
    """

    def __init__(self, app: AppRuntime, thread: SourceThread) -> None:
        self._app, self._thread = app, thread
        self._stopped = False

    @property
    def state(self) -> Literal["running", "away", "paused", "stopped"]:
        """The state of the feed: "away" if Spark's query over it fails and is tried again."""
        if self._stopped:
            return "stopped"
        if self._thread.paused or self._app.stopped:
            return "paused"
        return "running" if self.figures.last_error is None else "away"

    @property
    def figures(self) -> SourceFigures:
        """The numbers of rows received, taken and rejected, and why it is away."""
        return self._thread.figures()

    @property
    def events(self) -> int:
        """The number of events taken."""
        return self.figures.events

    def pause(self) -> None:
        """Stops Spark's query over the frame, until `resume`. Raises `Misuse` if the feed was stopped."""
        self._check()
        self._thread.paused = True
        self._thread.join()

    def resume(self) -> None:
        """Continues a paused feed where it was. Raises `Misuse` if the feed was stopped."""
        self._check()
        self._thread.paused = False
        self._app.start()

    def stop(self) -> None:
        """Ends the feed. The same frame, fed again, continues where it was."""
        if not self._stopped:
            self._stopped = True
            self._app.connections.remove_source(self._thread.setup.name)

    def summary(self) -> str:
        f = self.figures
        error = "" if f.last_error is None else f": {f.last_error}"
        rejected_part = f", {f.rejected:,} rejected" if f.rejected else ""
        return f"Feed of {f.stream} from a streaming frame, {self.state}{error}: {f.events:,} events{rejected_part}"

    def _check(self) -> None:
        if self._stopped:
            raise Misuse("the feed was stopped: feed the frame again")


def follow_frame(app: AppRuntime, frame: Any, shape: Shape) -> FrameFeed:
    """Follows a streaming frame, in place of one that the stream was fed before; and continues from there.

    Raises `Misuse` for a frame without a column that the stream needs, and SparkUnavailable if Spark does not see the
    app's folder.
    """
    shape = check_stream(frame, shape)
    folder = app.app_run.folder(app.home) / FOLDER / shape.stream
    ways_out = "Feed what the stream has so far as a batch (toPandas()), or put siddhi() on the frame"
    check_visible(frame.sparkSession, folder, ways_out)
    for note in shape.describe_guesses():
        app.progress.say(note)
    name = f"frame:{shape.stream}"
    app.connections.remove_source(name)
    reader = FrameStreamReader(frame, folder, shape, app.clock.latest_time)
    setup = IntakeSetup(name, shape.stream, "spark", "a streaming frame", shape.schema, reader)
    thread = app.connections.add_source(setup)
    app.start()
    return FrameFeed(app, thread)
