"""`sparkstream record`: recordings of an app's sources."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ...app import deploy
from ...app.running.recorder import sources_only
from ...charts.value_texts import format_count
from ...journal.temporary import temporary_folder
from ...lab import connect
from ...siddhi_process import read_app
from ..compiling import compile_plan
from ..results import format_source_stats
from ..running import follow


def run(options: Any) -> int:
    """`sparkstream record`. The recording is written at the end, with the time in its name."""
    connect()
    file = Path("app" if options.app == "-" else options.app)
    text = read_app(options.app)
    name = options.name or compile_plan(options, text).name or file.stem
    folder = Path(options.into)
    folder.mkdir(parents=True, exist_ok=True)
    with temporary_folder("record") as home:
        app = deploy(
            sources_only(text, dict(options.param)), name=name, home=home, master="inline",
            retention="recording=1TB", allow=options.allow, allow_env=options.allow_env,
        )  # fmt: skip
        try:
            follow(app, options.seconds)
            app.flush()
            moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
            path = folder / f"{name}-{moment}.parquet"
            events = app.recording.save(path, sample=dict(options.sample), mask=options.mask)
            for source in app.stats().sources:
                print(format_source_stats(source))
        finally:
            app.stop()
            app.close()
    print(f"{path}: {format_count(events, 'event')}")
    return 0
