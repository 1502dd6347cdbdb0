"""Reference pages of SiddhiQL's windows, functions, aggregators and stream functions, from the binder's signatures.

Each entry has the signatures, the line of help that tooltips show, and an example with what the engine makes of it
(`examples.toml`, run while the page is made).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sparkstream_nb.plan.signatures import aggregators as aggregate_signatures
from sparkstream_nb.plan.signatures import scalars, streams
from sparkstream_nb.plan.signatures import windows as window_signatures
from sparkstream_nb.plan.signatures.help import Kind, help_of
from sparkstream_nb.plan.signatures.signature import Overload, Signature

from . import examples
from .markdown import code, fence, name_anchor, table
from .trace_blocks import drawing

NAMESPACES = {
    "built-in": "Built-in functions",
    "str": "Text functions (str)",
    "time": "Date and time functions (time)",
    "math": "Mathematical functions (math)",
    "regex": "Regular expressions (regex)",
    "map": "Map functions (map)",
    "list": "List functions (list)",
    "json": "JSON functions (json)",
    "unitconversion": "Unit conversions (unitconversion)",
    "geo": "Geography (geo)",
    "coordination": "The nodes of an app (coordination)",
}
"""The title of the page of each namespace of functions."""
_MODES = {
    "slide": "Sliding: events leave one by one.",
    "batch": "Batch: events are collected and come out together, as one chunk.",
    "group": "Groups of events expire together.",
    "replace": "Sliding: an event of a key takes the place of the one before. Without expired events in the output, "
    "`min` and `max` know only the best value so far, and show the new one when that leaves, as in Siddhi.",
}
_RETAINED = {
    "clock": "the clock alone",
    "start": "the clock, once the batches have a `start.time`; else also the first event",
    "key": "the events of its key",
    "unique key": "the events of its key, and the clock if there is a time",
    "events": "the events that the window gets",
}


def windows() -> str:
    """The page of all windows."""
    declared = window_signatures.BUILT_IN
    out = [
        "# Windows",
        "",
        "A window keeps events of a stream: `from S#window.NAME(...)`. An event that enters is CURRENT, one that "
        "leaves is EXPIRED; `insert all events into` passes both on. Types of parameters: `number` is int, long, float "
        "or double; `constant` means that only a constant is accepted. Times are written as `5 sec`, `1 min 30 sec`, "
        "or in milliseconds. In the tables below, the time is that of the event, and the order is that in which events "
        "leave the query: a batch window puts out the events that leave the window before those of the new batch. "
        "The drawings have a bar for each event, from its arrival to the moment at which it leaves; "
        "`sparkstream_nb.trace` draws the windows of every app likewise.",
        "",
        _contents(declared, "windows"),
        "## The input of the examples",
        "",
        "All examples have the same input, one event each at these times:",
        "",
        fence(examples.WINDOW_STREAM, "siddhi"),
        examples.feed_table(examples.WINDOW_FEED),
    ]
    for name, d in declared.items():
        app = examples.window_app(name)
        out += [
            f"## {name}",
            "",
            help_of("windows", name),
            "",
            _signatures(window_signatures.TABLE[name], show_result=False),
            f"{_MODES[d.processing_mode]} What decides when an event leaves: {_RETAINED[d.retained_by]}.",
            "",
            "Example: the window, what it holds over time, and what it puts out for "
            "[the input above](#the-input-of-the-examples).",
            "",
            fence(app, "siddhi"),
            drawing(examples.window_trace(name)),
            examples.window_table(name),
        ]
    return "\n".join(out)


def aggregators() -> str:
    """The page of all aggregators."""
    known = aggregate_signatures.TABLE
    out = [
        "# Aggregators",
        "",
        "An aggregator is a function over the events that a window holds, by group: "
        "`from S#window.length(4) select symbol, sum(price) as total group by symbol insert into T`. Without a window, "
        "over all events so far. Nulls are ignored, but `count` counts every event, and `distinctCount` counts null as "
        "a value.",
        "",
        _contents(known, "aggregators"),
        "## The input of the examples",
        "",
        "Each example is the value after the last of these events, without a group:",
        "",
        fence(examples.AGGREGATE_STREAM, "siddhi"),
        examples.feed_table(examples.AGGREGATE_FEED),
    ]
    calls = [examples.call_of("aggregators", name) for name in known]
    for (name, signature), call, value in zip(known.items(), calls, examples.aggregates(calls), strict=True):
        stored = "" if name not in aggregate_signatures.INCREMENTAL else " `define aggregation` accepts it too."
        out += [
            f"## {name}",
            "",
            help_of("aggregators", name) + stored,
            "",
            _signatures(signature),
            f"Example: {code(call)} is {code(examples.shown(value))}.",
            "",
        ]
    return "\n".join(out)


def stream_functions() -> str:
    """The page of all stream functions and stream processors."""
    out = [
        "# Stream functions",
        "",
        "A stream function stands behind a stream: `from S#str:tokenize(text, ',') select token insert into T`. It "
        "adds attributes to an event, makes several events of one, or changes their order.",
        "",
        _contents(streams.TABLE, "stream_functions"),
    ]
    for name, function in streams.TABLE.items():
        app, feed, end = examples.stream_function_app(name)
        out += [
            f"## {name}",
            "",
            help_of("stream_functions", name),
            "",
            _signatures(function.signature, show_result=False),
            "Example:",
            "",
            fence(app, "siddhi"),
            "Input:",
            "",
            examples.feed_table(feed),
            "Output:",
            "",
            examples.output_table(examples.run(app, feed, end)),
        ]
    return "\n".join(out)


def functions() -> Mapping[str, examples.Page]:
    """The page of each namespace of functions, by the name of its file."""
    return {namespace: examples.Page(_functions_of, namespace) for namespace in NAMESPACES}


def _functions_of(namespace: str) -> str:
    known = {k: s for k, s in scalars.TABLE.items() if (k.partition(":")[0] if ":" in k else "built-in") == namespace}
    out = [
        f"# {NAMESPACES[namespace]}",
        "",
        "Functions of single values, for `select`, filters and conditions. `number` is int, long, float or double; "
        "`any` is every type, `prim` every type but object; `constant` means that only a constant is accepted.",
        "",
        _contents(known, "functions"),
    ]
    calls = [examples.call_of("functions", name) for name in known]
    for (name, signature), call, value in zip(known.items(), calls, examples.values(calls), strict=True):
        out += [f"## {name}", "", help_of("functions", name), "", _signatures(signature)]
        if call in examples.CHANGING:
            out += [f"Example: {code(call)}, {examples.CHANGING[call]}.", ""]
        else:
            out += [f"Example: {code(call)} is {code(examples.shown(value))}.", ""]
    return "\n".join(out)


def _contents(names: Iterable[str], kind: Kind) -> str:
    return table(["name", "meaning"], [(f"[{code(n)}](#{name_anchor(n)})", help_of(kind, n)) for n in names])


def _signatures(signature: Signature, show_result: bool = True) -> str:
    lines = [f"{signature.key}{o}" + (_result(o, signature) if show_result else "") for o in signature.overloads]
    return fence("\n".join(lines), "text")


def _result(overload: Overload, signature: Signature) -> str:
    if overload.result == "$1":
        return " → the type of the first argument"
    if overload.result == "?":
        return {
            "cast": " → the named type",
            "convert": " → the named type",
        }.get(signature.key, " → the type of the arguments")
    return f" → {overload.result}"
