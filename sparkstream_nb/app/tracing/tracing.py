"""`trace`: runs an app's text over a feed, without a deployment, and shows what a query's windows or pattern hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from ...argument_types import explain_arguments
from ...errors import Misuse, nearest, shown
from ...plan import nodes
from ...plan.open_names import compile_open
from ..deployment.deployment import milliseconds
from ..results.traces import PatternTrace, WindowTrace
from . import pattern_traces, trace_feed, traced_node, window_traces

MOST_EVENTS = 200
"""Events of a feed that a trace uses unless it is told otherwise."""
_MOST_LIMIT = 2_000


@explain_arguments
def trace(
    text: str,
    query: str | None = None,
    feed: Any = None,
    *,
    time: str | Mapping[str, str] | None = None,
    start: int | str | datetime | None = None,
    until: int | str | datetime | None = None,
    limit: int = MOST_EVENTS,
    labels: str | Sequence[str] | None = None,
    variables: Mapping[str, str] | None = None,
    allow_scripts: bool = False,
) -> WindowTrace | PatternTrace:
    """Runs an app's text over a feed, and shows what a window holds over time, or the partial matches of a pattern.

    Nothing is deployed: one node runs in this process, without sources, sinks and databases, and its clock goes from
    one event to the next, and stops at each moment at which a timer is due.

    `query`: a query with a window, a pattern or a sequence, or a named window (default: the only one). `feed`: a list
    of events `(stream, time, values)`, where the stream may be left out if the query reads one, and a list of lists of
    values is sent at once; or a frame or file for the query's stream; or a dict of these by stream. `time`: the column
    of event times of frames and files, for all or by stream; without it, events are 1 s apart. `start`: when the clock
    starts (default: with the first event). `until`: when the trace ends (default: when the window is empty, or no timer
    is awaited). `limit`: only this many events. `labels`: an attribute, or several, for the labels of
    events (default: all but one that repeats the event's time). `variables`: values of `${NAME}`.

    Raises `SiddhiError` if the text is wrong, `Misuse` for an unknown query, one without a window or pattern, and a
    feed that does not fit.
    """
    options = TraceOptions.of({"time": time}, start, until, limit, labels=labels)
    plan, _ = compile_open(text, {"shardId": "node-1"}, dict(variables or {}))
    return trace_plan(plan, query, feed, options, allow_scripts=allow_scripts)


@dataclass(frozen=True)
class TraceOptions:
    """The other arguments of `trace`: how its feed is read (as `readings_of` takes it), the start of the clock and the
    end (ms), bounds, and the attributes that labels show."""

    reading: Mapping[str, Any]
    start: int | None = None
    until: int | None = None
    limit: int = MOST_EVENTS
    labels: tuple[str, ...] = ()

    @staticmethod
    def of(
        reading: Mapping[str, Any],
        start: int | str | datetime | None = None,
        until: int | str | datetime | None = None,
        limit: int | None = None,
        *,
        labels: str | Sequence[str] | None = None,
    ) -> TraceOptions:
        """The options as `trace` takes them. Raises `Misuse` for times that are none, and a limit out of range."""
        most = MOST_EVENTS if limit is None else limit
        if not isinstance(most, int) or isinstance(most, bool) or not 1 <= most <= _MOST_LIMIT:
            raise Misuse(f"limit is a number of events from 1 to {_MOST_LIMIT:,}, not {shown(most)}")
        first = None if start is None else milliseconds(start, "start")
        last = None if until is None else milliseconds(until, "until")
        label_names = (labels,) if isinstance(labels, str) else tuple(labels or ())
        return TraceOptions(reading, first, last, most, label_names)


def trace_plan(
    plan: nodes.Plan, query: str | None, feed: Any, options: TraceOptions, *, allow_scripts: bool = False
) -> WindowTrace | PatternTrace:
    """`trace` of a plan. Raises what that does."""
    subject = find_subject(plan, query)
    if feed is None:
        raise Misuse(f"{subject.name}: give the events to trace it with, such as feed=[(time, values), ...]")

    steps = trace_feed.steps_of(plan, feed, options.reading, subject.streams[0] if len(subject.streams) == 1 else "")
    if not steps:
        raise Misuse(f"{subject.name}: the feed has no events: there is nothing to trace")
    event_count = sum(len(s.rows) for s in steps)
    limited_feed = trace_feed.TraceFeed(steps[: options.limit], event_count, options.start, options.until)
    _check_labels(options.labels, plan, subject)
    node = traced_node.TracedNode(
        plan, subject.operator, subject.name, start=options.start, allow_scripts=allow_scripts
    )
    if subject.is_pattern:
        partials = pattern_traces.trace_pattern(node, subject.name, limited_feed)
        return replace(partials, feed=replace(partials.feed, labels=options.labels))
    stays = window_traces.trace_windows(node, subject.name, limited_feed)
    return replace(stays, feed=replace(stays.feed, labels=options.labels))


def _check_labels(labels: Sequence[str], plan: nodes.Plan, subject: Subject) -> None:
    """Raises `Misuse` for a label that is no attribute of the subject's inputs and outputs."""
    read = [plan.streams[s].source.schema for s in subject.streams]
    output_schemas = [q.select.schema for q in plan.queries if q.name == subject.name]
    attributes = dict.fromkeys(name for schema in (*read, *output_schemas) for name in schema.names)
    for label in labels:
        if label not in attributes:
            raise Misuse(nearest(f"labels: {subject.name} has no attribute '{label}'", label, attributes))


@dataclass(frozen=True)
class Subject:
    """The query or named window that is traced: its `name`, its `operator` to watch, and the streams that it reads."""

    name: str
    operator: str
    streams: tuple[str, ...]
    is_pattern: bool = False


def subjects(plan: nodes.Plan) -> dict[str, Subject]:
    """All that can be traced, by name: queries in the order of the text, then named windows."""
    by_query = {q.name: subject for q in plan.queries if (subject := _subject_of(plan, q)) is not None}
    return by_query | {id_: Subject(id_, id_, _streams_into(plan, id_)) for id_ in plan.windows}


def _subject_of(plan: nodes.Plan, query: nodes.Query) -> Subject | None:
    """The query as a subject; None without a window or pattern."""
    source = query.input
    if isinstance(source, nodes.StateInput):
        return Subject(query.name, query.name, tuple(dict.fromkeys(s.source.id for s in source.slots)), True)
    sides = (source,) if isinstance(source, nodes.StreamInput) else (source.left, source.right)
    if any(isinstance(step, nodes.WindowStep) for side in sides for step in side.steps):
        streams = dict.fromkeys(s.source.id for s in sides if s.source.kind == "stream")
        return Subject(query.name, query.name, tuple(streams))
    if isinstance(source, nodes.StreamInput) and source.source.kind == "window":
        return Subject(query.name, source.source.id, _streams_into(plan, source.source.id))
    return None


def _streams_into(plan: nodes.Plan, window: str) -> tuple[str, ...]:
    """The streams from which queries insert into a named window."""
    into = [q.input for q in plan.queries if q.output.target.id == window]
    return tuple(dict.fromkeys(i.source.id for i in into if isinstance(i, nodes.StreamInput)))


def find_subject(plan: nodes.Plan, name: str | None) -> Subject:
    """The query or window of that name; None: the only one. Raises `Misuse` for one that cannot be traced."""
    candidates = subjects(plan)
    if name is None:
        if len(candidates) == 1:
            return next(iter(candidates.values()))
        if not candidates:
            raise Misuse("the app has no window, pattern or sequence: there is nothing to trace")
        raise Misuse(f"which query is to be traced? {', '.join(candidates)}")
    if name in candidates:
        return candidates[name]
    if name in {q.name for q in plan.queries}:
        others = f"Traceable: {', '.join(candidates)}" if candidates else "No query of the app has one"
        raise Misuse(f"the query '{name}' has no window, pattern or sequence: there is nothing to trace. {others}")
    raise Misuse(nearest(f"the app has no query or named window '{name}'", name, candidates))
