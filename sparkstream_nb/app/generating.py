"""Generated events for the streams of apps: `generate("App.Stream", n=1000, seed=7)`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..argument_types import explain_arguments
from ..columns import choice
from ..errors import Misuse, nearest, shown
from ..plan.nodes import Plan
from ..plan.open_names import compile_open
from ..synthetic.arrivals import ArrivalProcess, arrivals_of
from ..synthetic.column import GeneratedColumn, Seed
from ..synthetic.events import USUAL_RATE, USUAL_START, EventRequest, GeneratedEvents, generate_events
from ..synthetic.profile import Profile
from ..types import Schema
from .deploying import apps, get
from .deployment.deployment import milliseconds
from .running.app import App

if TYPE_CHECKING:
    import pandas as pd

_ONE_NODE = {"shardId": "node-1"}


@dataclass(frozen=True)
class StreamSchema:
    """The schema of a stream, with its name, which is empty where a schema alone is given."""

    schema: Schema
    name: str = ""


@explain_arguments
def generate(
    source: Schema | str | App | tuple[App, str],
    *,
    stream: str | None = None,
    n: int = 1000,
    seed: int = 0,
    rate: float | None = None,
    start: int | str | datetime | None = None,
    arrivals: str | ArrivalProcess = "poisson",
    columns: Mapping[str, GeneratedColumn | Sequence[Any]] | None = None,
    time: str | None = None,
    like: pd.DataFrame | Profile | str | Path | None = None,
) -> pd.DataFrame:
    """Generates `n` events of a stream by a seed: the same on every machine, with every version of Python and numpy.

    `source` says which stream: `"App.Stream"` or `(app, "Stream")` of a deployed app, the text of a `define stream` or
    of an app, or a schema. `stream` names one of an app that has several. The frame has the stream's attributes in
    order, and its rows are in the order of their event times, ms since 1970: the first attribute of type long whose
    name says so (`timestamp`, `time`, `ts`, `at`, `eventTime`, ...), else a further column `timestamp`; `time` names
    another one.

    `columns` gives generators by attribute (`sparkstream_nb.columns`), or lists of values to choose from; others get
    the usual values of an attribute of their name and type. `like`: a frame, its `columns.Profile`, or the file of one;
    its columns are imitated. `rate`: events a second of event time (default: that of `like`, else 10); `start`: the
    first event time (default: 2024-01-01); `arrivals`: "poisson", "steady" or "bursts". Each column is drawn by itself:
    another `n`, or another generator for a column, leaves the values of the other columns. Streams of different names
    have different events.

    Raises `Misuse` for an unknown stream or column, a generator that does not fit its attribute, and a wrong number.
    """
    stream_schema = find_stream(source, stream)
    profile = _profile_of(like, time)
    if columns is not None and not isinstance(columns, Mapping):
        raise Misuse(f"columns is a dict of generators by attribute, not {shown(columns)}")
    imitated_columns: dict[str, GeneratedColumn] = {}
    for attribute in stream_schema.schema:
        if profile is not None and (like_column := profile.column_of(attribute.name)) is not None:
            imitated_columns[attribute.name] = like_column
    for name, column in (columns or {}).items():
        imitated_columns[name] = column if isinstance(column, GeneratedColumn) else _choose_from(name, column)
    known_rate = None if profile is None else profile.rate
    request = EventRequest(
        n=n,
        seed=Seed(seed, stream_schema.name),
        rate=rate if rate is not None else known_rate if known_rate is not None else USUAL_RATE,
        start=USUAL_START if start is None else milliseconds(start, "start"),
        arrivals=arrivals_of(arrivals),
        columns=imitated_columns,
        time=time,
    )
    return generate_events(stream_schema.schema, request).frame


def generate_usual(stream: StreamSchema, n: int, seed: int | None, rate: float | None) -> GeneratedEvents:
    """Events with the usual values, for options of magics and of the command line: `--random`, `--seed`, `--rate`."""
    request = EventRequest(n, Seed(seed or 0, stream.name), USUAL_RATE if rate is None else rate)
    return generate_events(stream.schema, request)


def find_stream(source: Any, stream: str | None = None) -> StreamSchema:
    """The stream that the arguments of `generate` name. Raises `Misuse` for an unknown one."""
    if isinstance(source, Schema | StreamSchema):
        if stream is not None:
            raise Misuse("stream names a stream of an app, and a schema is that of one already: leave it out")
        return StreamSchema(source) if isinstance(source, Schema) else source
    if isinstance(source, App):
        return stream_in_app(source, stream)
    if isinstance(source, tuple) and len(source) == 2 and isinstance(source[0], App):
        return stream_in_app(*source)
    if not isinstance(source, str):
        raise Misuse(f"a stream is 'App.Stream', (app, 'Stream'), the text of an app or a schema, not {shown(source)}")
    if len(source.split()) > 1:
        plan, _ = compile_open(source, _ONE_NODE, {})
        return stream_in_plan(plan, stream)
    if source in apps():
        return stream_in_app(get(source), stream)
    owner = max((name for name in apps() if source.startswith(f"{name}.")), key=len, default=None)
    name, _, part = source.partition(".")
    if owner is not None:
        name, part = owner, source[len(owner) + 1 :]
    if not part:
        raise Misuse(f"'{source}' is not a stream of an app: write App.{source}, the app's name first")
    return stream_in_app(get(name), part)


def stream_in_app(app: App, stream: str | None) -> StreamSchema:
    """A stream of a deployed app; without a name its only stream with a definition."""
    return stream_in_plan(app.plan, stream, app.name)


def stream_in_plan(plan: Plan, stream: str | None, name: str | None = None) -> StreamSchema:
    """A stream of an app; without `stream` its only one with a definition. `name` is the app's, for messages."""
    name = name or plan.name or "the app"
    if stream is not None:
        if stream not in plan.streams:
            raise Misuse(nearest(f"{name} has no stream {shown(stream)}", str(stream), plan.streams))
        return StreamSchema(plan.schema(stream), stream)
    defined_streams = [s for s, definition in plan.streams.items() if definition.kind == "defined"]
    if len(defined_streams) != 1:
        streams = ", ".join(sorted(defined_streams)) or "none"
        raise Misuse(f"which stream of {name}? Name it as stream='...'. Its streams: {streams}")
    return StreamSchema(plan.schema(defined_streams[0]), defined_streams[0])


def _choose_from(name: str, values: Any) -> GeneratedColumn:
    """The generator that a list of values is short for."""
    if not isinstance(values, list | tuple):
        raise Misuse(
            f"columns['{name}'] is a generator such as sparkstream_nb.columns.uniform(0, 1), or a list of values to "
            f"choose from, not {shown(values)}"
        )
    return choice(values)


def _profile_of(like: Any, time: str | None) -> Profile | None:
    """The profile that events are like."""
    if like is None or isinstance(like, Profile):
        return like
    if isinstance(like, str | Path):
        return Profile.load(like)
    return Profile.of(like, time=time if time in getattr(like, "columns", ()) else None)
