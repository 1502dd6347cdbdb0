"""`sparkstream trace`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...app.tracing.tracing import TraceOptions, trace_plan
from ...errors import Misuse
from ...lab.display import text as text_form
from ...lab.traces_shown import trace_svg
from ...options import reading_of
from ...plan.open_names import compile_open
from ..app_texts import text_of
from ..printed_plans import write_picture
from ..surroundings import NODE


def run(options: Any) -> int:
    """`sparkstream trace`."""
    if not options.feed or any(not stream for stream, _ in options.feed):
        raise Misuse("sparkstream trace: name the events to trace the app with: --feed STREAM=FILE")
    how = TraceOptions.of(reading_of(options), options.start, options.until, options.limit, labels=options.labels)
    with text_of(options.app) as text:
        plan, _ = compile_open(text, NODE, dict(options.param))
        feed = {stream: Path(file) for stream, file in options.feed}
        plan_trace = trace_plan(plan, options.query, feed, how, allow_scripts=options.allow_scripts)
    if options.svg is not None:
        write_picture(options.svg, trace_svg(plan_trace))
    else:
        print(text_form(plan_trace))
    return 0
