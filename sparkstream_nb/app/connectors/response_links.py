"""Sinks and sources of an app that belong together: calls and their responses, requests and what answers them, and
topics of messages."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from urllib.parse import quote

from ...connections.call_responses import Desks
from ...connections.message_topics import MessageTopics
from ...connections.service_requests import Services
from ...errors import SiddhiBindError, Span, shown
from ...plan.connectors.incoming import SERVICES, incoming_sources
from ...plan.connectors.outside import SERVICE_RESPONSES, SOURCE_ID, outside_sinks
from ...plan.nodes import Plan
from ...plan.query_parts import IN_MEMORY
from .call_desks import desks_of
from .typed_options import OptionValues


@dataclass(frozen=True)
class ResponseLinks:
    """`desks`: responses to the calls of sinks, for sources. `services`: requests to sources, for sinks. `topics`:
    messages of sinks, for sources."""

    desks: Desks = field(default_factory=Desks)
    services: Services = field(default_factory=Services)
    topics: MessageTopics = field(default_factory=MessageTopics)


def response_links(plan: Plan) -> ResponseLinks:
    """The links of an app. Raises SiddhiBindError, at the annotation, for a `sink.id` or `source.id` that the other
    end does not have."""
    _check_services(plan)
    return ResponseLinks(desks_of(plan), Services(), _message_topics(plan))


def _message_topics(plan: Plan) -> MessageTopics:
    sources: dict[str, list[str]] = {}
    for source in incoming_sources(plan):
        if source.type == IN_MEMORY:
            option_values = OptionValues.of("source", source.type, source.options, f"stream '{source.stream}'")
            sources.setdefault(option_values.raw("topic"), []).append(quote(source.name, safe=""))
    return MessageTopics(sources)


def _check_services(plan: Plan) -> None:
    sources = [(s.options[SOURCE_ID].strip(), s) for s in incoming_sources(plan) if s.type in SERVICES]
    sinks = [
        (options[SOURCE_ID].strip(), s)
        for s in outside_sinks(plan)
        if s.type in SERVICE_RESPONSES
        for options in s.destinations
    ]
    source_ids, answered_ids = {id_ for id_, _ in sources}, {id_ for id_, _ in sinks}
    for id_, sink in sinks:
        if id_ not in source_ids:
            what = f"the sink of stream '{sink.stream}': no source of type 'http-service'"
            raise _error(plan, sink.span, what, id_, source_ids)
    for id_, source in sources:
        if id_ not in answered_ids:
            what = f"the source of stream '{source.stream}' has no answers: no sink of type 'http-service-response'"
            raise _error(plan, source.span, what, id_, answered_ids)


def _error(plan: Plan, span: Span, what: str, id_: str, ids: Collection[str]) -> SiddhiBindError:
    others = f"there are {', '.join(sorted(ids))}" if ids else "there is none"
    error = SiddhiBindError(f"{what} has {SOURCE_ID}={shown(id_)}; {others}", span)
    if plan.text:
        error.with_source(plan.text)
    return error
