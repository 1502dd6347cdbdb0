"""The desks of an app: which sources take the responses to which sinks' calls."""

from __future__ import annotations

import re
from urllib.parse import quote

from ...connections.call_responses import Desk, Desks, ResponseSource
from ...errors import SiddhiBindError, shown
from ...plan.connectors.incoming import RESPONSES, IncomingSource, incoming_sources
from ...plan.connectors.outside import CALLS, SINK_ID, outside_sinks
from ...plan.nodes import Plan
from .typed_options import OptionValues


def desks_of(plan: Plan) -> Desks:
    """The desks of the sources of responses in `plan`. Raises SiddhiBindError, at the annotation, for one whose
    `sink.id` no sink has, or whose `http.status.code` is no pattern."""
    sink_ids = {sink.destinations[0][SINK_ID].strip() for sink in outside_sinks(plan) if sink.type in CALLS}
    sources: dict[str, list[ResponseSource]] = {}
    for source in incoming_sources(plan):
        if source.type in RESPONSES:
            sink_id = source.options[SINK_ID].strip()
            if sink_id not in sink_ids:
                has = f"there are {', '.join(sorted(sink_ids))}" if sink_ids else "there is none"
                raise _at(plan, source, f"no sink of type 'http-call' has {SINK_ID}={shown(sink_id)}; {has}")
            headers = frozenset(h for h in source.mapping.headers if h is not None)
            pattern = _pattern(plan, source)
            sources.setdefault(sink_id, []).append(ResponseSource(quote(source.name, safe=""), pattern, headers))
    return Desks({sink_id: Desk(desk_sources) for sink_id, desk_sources in sources.items()})


def _pattern(plan: Plan, source: IncomingSource) -> re.Pattern[str]:
    """`http.status.code`, a regular expression. Examples of siddhi-io-http have its backslashes twice."""
    option_values = OptionValues.of("source", source.type, source.options, f"the source of stream '{source.stream}'")
    text = option_values.trim("http.status.code").replace(r"\\", "\\")
    try:
        return re.compile(text)
    except re.error:
        wrong = rf"http.status.code is a status such as 200, or a pattern such as 2\d+, not {shown(text)}"
        raise _at(plan, source, wrong) from None


def _at(plan: Plan, source: IncomingSource, message: str) -> SiddhiBindError:
    error = SiddhiBindError(f"the source of stream '{source.stream}': {message}", source.span)
    error.with_source(plan.text)
    return error
