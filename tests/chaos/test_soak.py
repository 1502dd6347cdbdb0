"""The short form of the soak: three batches a second for most of a minute, with limits that are reached in it."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import pytest

from sparkstream_nb.app import deploy
from sparkstream_nb.journal import inbox
from sparkstream_nb.outputs import merging

from .soak import APP, Sample, soak

SECONDS = 45.0


@pytest.mark.rotates
@pytest.mark.timeout(200)
def test_what_an_app_holds_does_not_grow(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "SEGMENT_BYTES", 50_000)
    monkeypatch.setattr(merging, "TOGETHER", 8)
    app = deploy(APP, name="soak", home=tmp_path / "home", nodes=2, retention="recording=200KB,outputs=50KB")
    samples: list[Sample] = []
    kept: list[tuple[int, int]] = []

    def tell(sample: Sample) -> None:
        samples.append(sample)
        disk = app.stats().disk
        folder = app.home / f"life-{app.runtime.app_run.run}"
        files = [f for part in ("inbox", "outputs") for f in (folder / part).rglob("*")]
        kept.append((disk.recording + disk.outputs, len(files)))

    soak(app, SECONDS, 3.0, tell)
    app.stop()
    third = len(samples) // 3
    assert third >= 3
    middle, last = samples[third : 2 * third], samples[-third:]
    assert max(s.descriptors for s in last) <= max(s.descriptors for s in middle) + 10
    assert max(s.processes for s in last) <= max(s.processes for s in middle) + 2
    driver = [statistics.median(s.driver_mb for s in part) for part in (middle, last)]
    assert driver[1] <= driver[0] + 60
    jvm = [min(s.jvm_mb for s in part) for part in (middle, last)]
    assert jvm[1] <= jvm[0] + 300  # its heap grows until it is collected
    latency = [statistics.median(s.latency_ms for s in part) for part in (middle, last)]
    assert latency[1] <= 2 * latency[0]
    assert max(b for b, _ in kept[-third:]) < 2_000_000
    assert max(n for _, n in kept[-third:]) < 400
    assert sum(app.stats().disk.dropped.values()) > 0
