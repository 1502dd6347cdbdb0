"""Generated events on the command line: `sparkstream generate`, and `--random` of `sparkstream run`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import Misuse, nearest
from ..option_values import number, positive
from ..options import CannotRead, add, add_seed
from .app_texts import many, text_of
from .commands import Commands

if TYPE_CHECKING:
    import pandas as pd

    from ..plan import Plan
    from ..synthetic.events import GeneratedEvents

_SEEDED = ("ha", "scalable", "distributed")
"""Modes whose deployments follow a seed."""
_FORMATS = (".csv", ".parquet")


def add_generate(commands: Commands) -> None:
    """Add `sparkstream generate`."""
    what = "Generate events of a stream by a seed, and write them into a file."
    c = commands.add("generate", generate_file, what, "t.siddhi --stream Prices --rows 10000 --seed 7 --out prices.csv")
    c.add_argument("app", metavar="APP.siddhi", help="the app's text; - is standard input")
    c.add_argument("--stream", metavar="STREAM", help="the stream (default: the app's only one)")
    c.add_argument("--rows", type=positive, metavar="N", required=True, help="the number of events")
    c.add_argument("--out", metavar="FILE", required=True, help="the .csv or .parquet file to write")
    add_seed(c)
    c.add_argument("--rate", type=number, metavar="N", help="events a second of event time (default: 10)")
    c.add_argument("--start", metavar="TIME", help="the first event time: ms since 1970, or a time in UTC (2024-01-01)")
    c.add_argument("--arrivals", default="poisson", metavar="HOW", help="poisson, steady or bursts (default: poisson)")
    c.add_argument("--time", metavar="COLUMN", help="the column of event times (default: by name, else timestamp)")
    c.add_argument("--like", metavar="PROFILE.json", help="imitate the frame of a profile that Python has saved")
    add(c, "--param")


def generate_file(options: Any) -> int:
    """`sparkstream generate`: writes a file of generated events."""
    from ..app.generating import generate, stream_in_plan
    from ..plan.open_names import compile_open

    out = Path(options.out)
    if out.suffix not in _FORMATS:
        raise Misuse(f"--out: {options.out} is neither a .csv nor a .parquet file")
    with text_of(options.app) as text:
        plan, _ = compile_open(text, {"shardId": "node-1"}, dict(options.param))
    start = options.start
    stream: Any = stream_in_plan(plan, options.stream)
    frame = generate(
        stream,
        n=options.rows,
        seed=options.seed or 0,
        rate=options.rate,
        start=int(start) if start is not None and start.isdecimal() else start,
        arrivals=options.arrivals,
        time=options.time,
        like=options.like,
    )
    _write_frame(frame, out)
    print(f"{options.out}: {many(len(frame), 'event')}")
    return 0


def _write_frame(frame: pd.DataFrame, out: Path) -> None:
    """Writes a frame as CSV or parquet. Raises `CannotRead`."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    table = pa.Table.from_pandas(frame, preserve_index=False)
    try:
        if out.suffix == ".csv":
            pyarrow.csv.write_csv(table, out)
        else:
            pyarrow.parquet.write_table(table, out)
    except OSError as e:
        raise CannotRead(f"{out} cannot be written: {e.strerror or e}") from None


def generate_feeds(plan: Plan, options: Any) -> dict[str, GeneratedEvents]:
    """The events of each stream that `--random` names. Raises `Misuse` for an unknown stream, and one that is named
    twice or fed from a file too."""
    _check_streams(plan, options.random, options.feed)
    if not options.random:
        return {}
    from ..app.generating import generate_usual, stream_in_plan

    return {s: generate_usual(stream_in_plan(plan, s), n, options.seed, options.rate) for s, n in options.random}


def _check_streams(plan: Plan, random: Sequence[tuple[str, int]], feeds: Sequence[tuple[str, str]]) -> None:
    feed_by_stream = {stream: f"--feed {stream}={path}" for stream, path in feeds}
    for stream, n in random:
        if stream not in plan.streams:
            raise Misuse(nearest(f"--random: {plan.name or 'the app'} has no stream '{stream}'", stream, plan.streams))
        if stream in feed_by_stream:
            raise Misuse(f"--random {stream}={n} and {feed_by_stream[stream]} both feed {stream}: leave one out")
        feed_by_stream[stream] = f"--random {stream}={n}"


def deployment_seed(options: Any) -> int:
    """The deployment's part of `--seed`: 0 where it was given for `--random`, and the mode has no use for a seed."""
    if not options.random or options.mode in _SEEDED:
        return int(options.seed)
    if options.mode is None and options.conf:
        from ..app.config.conf import node_files
        from ..app.config.secrets import References
        from ..app.deployment.grouping import mode_of_files

        references = References(dict(options.param), tuple(options.allow_env))
        if mode_of_files(node_files(options.conf, ("", *_SEEDED), references)) in _SEEDED:
            return int(options.seed)
    return 0


def times_of(events_by_stream: Mapping[str, GeneratedEvents]) -> dict[str, str]:
    """The column of event times of each stream."""
    return {stream: events.time for stream, events in events_by_stream.items()}
