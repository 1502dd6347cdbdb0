"""Recordings of an app's sources: `sparkstream record`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..option_values import attribute_and_share, positive
from ..options import add, read_text
from .app_texts import compile_plan, many
from .commands import Commands
from .results import format_source_stats
from .running import follow


def add_record(commands: Commands) -> None:
    """Add `sparkstream record`."""
    c = commands.add(
        "record",
        record_app,
        "Record what an app's sources read into a file, without computing anything.",
        "trades.siddhi --into kept --mask card --allow kafka=localhost:9092",
    )
    c.add_argument("app", metavar="APP.siddhi", help="the app's text; - is standard input")
    c.add_argument("--into", metavar="FOLDER", required=True, help="the folder for the recording")
    c.add_argument(
        "--sample",
        action="append",
        default=[],
        type=attribute_and_share,
        metavar="ATTRIBUTE=SHARE",
        help="only a share of an attribute's values, each with all of its events, such as card=1%%",
    )
    c.add_argument(
        "--mask",
        action="append",
        default=[],
        metavar="ATTRIBUTE",
        help="replace an attribute's values by a hash under a key that is made and forgotten; equal ones stay equal",
    )
    c.add_argument("--seconds", type=positive, metavar="N", help="how long (default: until Ctrl-C or SIGTERM)")
    add(c, "--name", "--param", "--allow", "--allow-env")


def record_app(options: Any) -> int:
    """`sparkstream record`. The recording is written at the end, with the time in its name."""
    from ..app import deploy
    from ..app.running.recorder import sources_only
    from ..journal.temporary import temporary_folder
    from ..lab import connect

    connect()
    file = Path("app" if options.app == "-" else options.app)
    text = read_text(options.app)
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
    print(f"{path}: {many(events, 'event')}")
    return 0
