"""The view of a feed in the background: its bar, and buttons to play, pause, step and restart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ...app import Feed
from ...app.results.listeners import Followed
from .. import display
from ..results_shown import feed_bar, position_words
from .following import FollowingView
from .view_scripts import read_script

SPEEDS = (1, 10, 60, 600, 3_600)
"""Speeds to choose from: event time relative to this machine's."""
RATES = (1, 10, 100, 1_000, 10_000)
"""Rates to choose from for a feed without event times: events a second."""
_MOST_STEPS = 1_000_000


@dataclass(frozen=True)
class PaceChoice:
    """A pace to choose: its `value` by the menu's kind, 0 for as fast as possible."""

    value: float
    label: str


@dataclass(frozen=True)
class PaceMenu:
    """The paces of a feed by `kind`, "speed" or "rate", and the present `value`."""

    kind: str
    choices: Sequence[PaceChoice]
    value: float


def pace_menu(feed: Feed) -> PaceMenu:
    """The paces to choose from: speeds of event time, or rates where it has one, or events have no times."""
    pace = feed.pace
    kind = "speed" if feed.has_times and pace.rate is None else "rate"
    value = (pace.speed if kind == "speed" else pace.rate) or 0
    values: tuple[float, ...] = SPEEDS if kind == "speed" else RATES
    values = values if not value or value in values else (*values, value)
    unit = " ×" if kind == "speed" else "/s"
    choices = [PaceChoice(0, "as fast as possible"), *(PaceChoice(v, f"{v:,}{unit}") for v in values)]
    return PaceMenu(kind, choices, value)


def control_feed(feed: Feed, message: Mapping[str, Any]) -> None:
    """Carries out a page's request: `do` is "pause", "resume", "restart", "stop", "step" or "pace"."""
    do = message["do"]
    if do == "step":
        feed.step(max(1, min(int(message["events"]), _MOST_STEPS)), wait=False)
    elif do == "pace":
        kind, value = str(message["kind"]), float(message["value"])
        feed.set_pace(**({} if not value else {"speed": value} if kind == "speed" else {"rate": value}))
    elif do in ("pause", "resume", "restart", "stop"):
        getattr(feed, do)()


class FeedView(FollowingView):
    """A feed that is controlled while the kernel lives; its last state, or its report, is saved."""

    def __init__(self, feed: Feed) -> None:
        target = Followed(feed.app, lambda callback: feed.watch(lambda: callback(0)), lambda: "")
        super().__init__(target, read_script("feed.js"))
        self.feed = feed

    def read(self) -> None:
        """The state is read as it is drawn."""

    def act(self, message: Mapping[str, Any]) -> None:
        control_feed(self.feed, message)

    def state(self) -> dict[str, Any]:
        """`bar` is HTML whose texts are escaped; the script puts all else into the page as texts."""
        feed = self.feed
        return {
            "bar": feed_bar(feed),
            "position": position_words(feed),
            "feed_state": feed.state,
            "active": feed.active,
            **asdict(pace_menu(feed)),
        }

    def static(self) -> dict[str, str]:
        return display.bundle(self.feed)

