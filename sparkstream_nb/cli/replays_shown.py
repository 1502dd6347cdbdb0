"""Progress of replays on standard error."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from ..app.results.feed_progress import ProgressLine, span
from ..replay.replay_progress import follow_replays

_TICK_SECONDS = 1.0


@contextmanager
def show_replays(text: str) -> Iterator[None]:
    """Shows a text, the share of the replays that is done, and the times passed and left on standard error while the
    block runs: on one line of a terminal, else on a further line now and then."""
    if not sys.stderr.isatty():
        print(text, file=sys.stderr, flush=True)
    line, end_event, began = ProgressLine(), threading.Event(), perf_counter()
    with follow_replays() as progress:

        def tick() -> None:
            line(text)
            while not end_event.wait(_TICK_SECONDS):
                line(f"{text} · {_describe_share(progress.share, perf_counter() - began)}")

        clock = threading.Thread(target=tick, daemon=True)
        clock.start()
        try:
            yield
        finally:
            end_event.set()
            clock.join()
            line.close()


def _describe_share(share: float | None, seconds: float) -> str:
    """`37 % · 12 s · 20 s left`; the time alone as long as no share is known."""
    if share is None:
        return span(seconds)
    return f"{share:.0%} · {span(seconds)} · {span(seconds * (1 - share) / share)} left".replace("%", " %", 1)
