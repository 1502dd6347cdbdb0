"""The line `%siddhi trace`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import Any

from ..app import App, PatternTrace, WindowTrace, get
from ..app.tracing.tracing import TraceOptions, subjects, trace_plan
from ..errors import Misuse
from ..options import reading_of


def trace_feed(o: Namespace, apps: Mapping[str, App], source_of: Callable[[str], Any]) -> WindowTrace | PatternTrace:
    """The trace that a line asks for; `source_of` finds a variable or a file. Raises `Misuse` without a source, and
    what `App.trace` raises."""
    name, query = split_name(o.query, apps)
    app = get(name)
    if o.source is not None and o.sources:
        raise Misuse(f"%siddhi trace: '{o.source}' is one word too many beside --from")
    if o.source is None and not o.sources:
        raise Misuse(
            f"%siddhi trace {o.query} SOURCE: the events are missing, a variable or a file, or --from STREAM=SOURCE"
        )
    feed = source_of(o.source) if o.source is not None else {s: source_of(source) for s, source in o.sources}
    scripts = app.deployment.request.allow_scripts
    options = TraceOptions.of(reading_of(o), o.start, o.until, o.limit, labels=o.labels)
    return trace_plan(app.plan, query, feed, options, allow_scripts=scripts)


def split_name(full_name: str, apps: Mapping[str, App]) -> tuple[str, str | None]:
    """`App.query` as the app's name and the query's; the query is None where only an app is named."""
    owner = next((n for n in sorted(apps, key=len, reverse=True) if f"{full_name}.".startswith(f"{n}.")), None)
    if owner is None:
        name, _, query = full_name.partition(".")
        return name, query or None
    return owner, full_name[len(owner) + 1 :] or None


def traceable(apps: Mapping[str, App]) -> list[str]:
    """All that can be traced of the apps, as `App.query`, for completion."""
    return [f"{name}.{query}" for name, app in apps.items() for query in subjects(app.plan)]
