"""The bar of a running feed: what it displays, changes and leaves behind."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from IPython.utils.capture import capture_output

from sparkstream_nb.app import FeedProgress
from sparkstream_nb.lab.drawings.bars import bar_html
from sparkstream_nb.lab.progress_bar import FeedBar, show_live

from .conftest import unbegun_feed

HALF = FeedProgress("S", 500, 1000, 3, 1, 3.0, 1.0)


def test_words_and_width_of_the_bar() -> None:
    markup = bar_html(HALF, before="<feed 1>")
    assert "S: 500 of 1,000 events · 3 s · 250 events/s · 2 s left · micro-batch 2 · 3 rows refused" in markup
    assert 'aria-valuenow="50.0"' in markup
    assert "width:50.0%" in markup
    assert "&lt;feed 1&gt;" in markup
    assert "<feed" not in markup
    assert "· paused" in bar_html(HALF, state="paused")


def test_the_bar_is_updated_in_its_place_and_leaves_nothing(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [10.0]
    monkeypatch.setattr("sparkstream_nb.lab.progress_bar.time.monotonic", lambda: now[0])
    with capture_output() as captured:
        bar = FeedBar()
        bar.close()
        bar(FeedProgress("S", 0, None, 0, 0, 0.0))
        bar(HALF)  # too early: four times a second is enough
        now[0] += 0.25
        bar(HALF)
        bar.close()
    put_out, first, second, last = captured.outputs
    assert (put_out.update, put_out.data) == (False, {})
    assert all(o.update for o in (first, second, last))
    assert len({o.transient["display_id"] for o in captured.outputs}) == 1
    assert "reading the feed" in first.data["text/html"]
    assert "500 of 1,000" in second.data["text/html"]
    assert last.data == {}


def test_a_feed_in_the_background_is_shown_in_one_place(shell: Any) -> None:
    feed = unbegun_feed()
    with capture_output() as captured:
        show_live(feed)
        feed.pause()
    shown, changed = captured.outputs
    assert (shown.update, changed.update) == (False, True)
    assert shown.transient == changed.transient
    assert 'role="progressbar"' in shown.data["text/html"]


def test_it_needs_no_widgets() -> None:
    program = "import sys; sys.modules['ipywidgets'] = None; import sparkstream_nb.lab.progress_bar"
    subprocess.run([sys.executable, "-c", program], check=True)
