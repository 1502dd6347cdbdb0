"""The view of a feed in the background: its bar, and buttons to play, pause, step and restart."""

from __future__ import annotations

from collections.abc import Mapping
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


class FeedView(FollowingView):
    """A feed that is controlled while the kernel lives; its last state, or its report, is saved."""

    def __init__(self, feed: Feed) -> None:
        target = Followed(feed.app, lambda callback: feed.watch(lambda: callback(0)), lambda: "")
        super().__init__(target, read_script("feed.js"))
        self.feed = feed

    def read(self) -> None:
        """The state is read as it is drawn."""

    def act(self, message: Mapping[str, Any]) -> None:
        do, feed = message["do"], self.feed
        if do == "step":
            feed.step(max(1, min(int(message["events"]), _MOST_STEPS)), wait=False)
        elif do == "pace":
            kind, value = str(message["kind"]), float(message["value"])
            feed.set_pace(**({} if not value else {"speed": value} if kind == "speed" else {"rate": value}))
        elif do in ("pause", "resume", "restart", "stop"):
            getattr(feed, do)()

    def state(self) -> dict[str, Any]:
        """`bar` is HTML whose texts are escaped; the script puts all else into the page as texts."""
        feed, pace = self.feed, self.feed.pace
        kind = "speed" if feed.has_times else "rate"
        choices = [{"value": 0, "label": "as fast as possible"}]
        choices += [{"value": v, "label": f"{v:,} ×" if kind == "speed" else f"{v:,}/s"} for v in
                    (SPEEDS if kind == "speed" else RATES)]  # fmt: skip
        value = (pace.speed if kind == "speed" else pace.rate) or 0
        if value not in [c["value"] for c in choices]:
            choices.append({"value": value, "label": str(pace)})
        return {
            "bar": feed_bar(feed),
            "position": position_words(feed),
            "feed_state": feed.state,
            "active": feed.active,
            "kind": kind,
            "choices": choices,
            "value": value,
        }

    def static(self) -> dict[str, str]:
        return display.bundle(self.feed)

