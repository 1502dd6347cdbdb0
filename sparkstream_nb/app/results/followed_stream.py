"""Results whose display in a notebook follows a stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import pandas as pd

from .frontend import Displayed
from .listeners import Followed, OnCommit, always_running
from .selection_criteria import SharedSelection
from .stream_cursor import StreamEnds


class StreamSnapshot(Displayed):
    """A display of a stream at a moment."""

    @property
    def frame(self) -> pd.DataFrame:
        """The rows that are shown."""
        raise NotImplementedError


Shape = TypeVar("Shape")
Snapshot = TypeVar("Snapshot", bound=StreamSnapshot)


@dataclass(frozen=True, repr=False, eq=False)
class FollowedStream(Displayed, Generic[Shape, Snapshot]):
    """A display of the stream `stream` of `app`, as `shape` says. `follow` and `state` as in `Followed`."""

    app: str
    stream: str
    shape: Shape
    ends: StreamEnds
    follow: Callable[[OnCommit], Callable[[], None]]
    state: Callable[[], str] = always_running
    selection: SharedSelection | None = None

    @property
    def target(self) -> Followed:
        """The app, as a view follows it."""
        return Followed(self.app, self.follow, self.state, self.selection)

    def snapshot(self) -> Snapshot:
        """The display at this moment."""
        raise NotImplementedError

    def still(self) -> Snapshot:
        return self.snapshot()

    def summary(self) -> str:
        return f"<{type(self).__name__} of {self.app}.{self.stream}>"

    @property
    def frame(self) -> pd.DataFrame:
        """The rows that it would show now."""
        return self.snapshot().frame
