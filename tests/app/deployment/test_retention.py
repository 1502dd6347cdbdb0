"""What an app's folder keeps of the past."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sparkstream_nb.app import App
from sparkstream_nb.errors import Misuse, SparkStreamError
from sparkstream_nb.journal import inbox
from sparkstream_nb.lab.display import text
from sparkstream_nb.outputs import merging

Run = Callable[..., App]
APP = "define stream S (k string, v int); from S#window.length(3) select k, sum(v) as s insert into O;"


@pytest.mark.contract
def test_what_is_too_much_goes_and_the_app_goes_on(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "SEGMENT_BYTES", 1_000)
    monkeypatch.setattr(merging, "MANY", 1)
    limits = "recording=3KB,outputs=8KB"
    app = run(APP, retention=limits)
    for i in range(30):
        app.send("S", ["k", i], at=i)
        app.flush()
    shown: Any = app.output("O")
    assert shown.dropped > 0
    assert len(shown) == 30 - shown.dropped
    assert f"{shown.dropped} earlier events are not kept any more" in text(shown)
    assert app.output("O", last=2).dropped == 0
    came: Any = app.output("S").came
    assert came.total == 30
    assert came.gone > 0
    with pytest.raises(SparkStreamError, match=r"beginning .* no longer kept: deploy .* larger retention"):
        app.divergence()
    disk = app.stats().disk
    assert 0 < disk.recording < 20_000
    assert 0 < disk.outputs < 16_000
    assert disk.dropped == {"O": shown.dropped}
    said = text(app.stats())
    assert "of 3.0 KB · outputs" in said
    assert f"{shown.dropped} outputs dropped" in said
    app.stop()
    app.close()
    again = run(APP, retention=limits)
    assert again.redeployed is not None
    again.send("S", ["k", 30], at=30)
    again.flush()
    assert again.output("O", last=1).frame["s"].tolist() == [28 + 29 + 30]
    assert again.stats().events == 31


def test_limits_that_cannot_be_are_refused(run: Run) -> None:
    with pytest.raises(Misuse, match="retention: outputs cannot be 'much'"):
        run(APP, retention="outputs=much")
