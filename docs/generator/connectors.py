"""Reference pages of sources, sinks and mappings, from the tables of options in `plan/connectors/`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sparkstream_nb.plan.connectors import incoming, mappings, outside
from sparkstream_nb.plan.connectors.help import End, option_help
from sparkstream_nb.plan.connectors.kafka import CONFIGURATION, CONSUMER, PRODUCER

from .markdown import code, table

FORMER = {"http-request": "http-call", "http-response": "http-call-response"}
"""Types that are other names."""


@dataclass(frozen=True)
class OptionTable:
    """The options of one type: their names; those that must be given, with an example, or one of several; those that
    may depend on the event; and the promise in words."""

    names: frozenset[str]
    needed: Mapping[str, str]
    dynamic: frozenset[str] = frozenset()
    promise: str = ""


def option_tables(end: End) -> dict[str, OptionTable]:
    """The options of every type of an end. The one place that knows how the package keeps them."""
    if end == "source":
        return {
            type_: OptionTable(
                frozenset(names),
                {n: incoming._EXAMPLE[group[0]] for group in incoming._NEEDED[type_] for n in group},
                promise=incoming.taken(type_),
            )
            for type_, names in incoming.INCOMING_OPTIONS.items()
        }
    if end == "sink":
        return {
            type_: OptionTable(
                frozenset(names), outside._NEEDED[type_], outside._DYNAMIC[type_], outside.promise(type_)
            )
            for type_, names in outside.OUTSIDE_OPTIONS.items()
        }
    of = mappings._SOURCE_OPTIONS if end == "source-mapping" else mappings._SINK_OPTIONS
    more = {"text": ("regex.A",)} if end == "source-mapping" else {}
    return {type_: OptionTable(frozenset((*names, *more.get(type_, ()))), {}) for type_, names in of.items()}


def sources() -> str:
    """The page of all types of sources."""
    return _page(
        "source",
        "Sources and their options",
        "A `@source` above a stream reads messages from outside; its `@map` makes events of them. What an app may "
        "reach is granted when it is deployed (`--allow`). An option that is not listed is refused by name, unless it "
        "has its default or a value that switches it off. [Sources](../sources.md) says how each type behaves, "
        "[reading from outside](../guides/sources.md) how to begin, and [message formats](message-formats.md) has the "
        "options of `@map`.",
        _configuration(CONSUMER),
    )


def sinks() -> str:
    """The page of all types of sinks."""
    return _page(
        "sink",
        "Sinks and their options",
        "A `@sink` above a stream publishes its events outside; its `@map` makes messages of them. What an app may "
        "reach is granted when it is deployed (`--allow`). An option that is not listed is refused by name, unless it "
        "has its default or a value that switches it off. An option that may depend on the event takes `{{attribute}}`"
        ". [Publishing results](../guides/sinks.md) says how each type behaves, and "
        "[message formats](message-formats.md) has the options of `@map`.",
        _configuration(PRODUCER),
    )


def mappings_page() -> str:
    """The page of all types of mappings."""
    ends: tuple[tuple[End, str], ...] = (("source-mapping", "of a source"), ("sink-mapping", "of a sink"))
    tables = {end: option_tables(end) for end, _ in ends}
    out = [
        "# Message formats and their options",
        "",
        "`@map(type='json', ...)` of a source says how messages become events; of a sink, how events become messages. "
        "[Mappings](../mappings.md) has the rules, such as what null looks like in each format.",
        "",
    ]
    for type_ in tables["source-mapping"]:
        out += [f"## {type_}", ""]
        for end, words in ends:
            names = sorted(tables[end][type_].names)
            out += [f"Options {words}:" if names else f"It has no options {words}.", ""]
            out.append(table(["option", "meaning"], [(code(n), option_help(end, type_, n)) for n in names]))
    return "\n".join(out)


def _page(end: Literal["source", "sink"], title: str, text: str, configuration: str) -> str:
    found = option_tables(end)
    rows = [(f"[{code(t)}](#{t})", o.promise[:1].upper() + o.promise[1:] + ".") for t, o in found.items()]
    out = [f"# {title}", "", text, "", table(["type", "promise"], rows)]
    for type_, options in found.items():
        out += [f"## {type_}", ""]
        if type_ in FORMER:
            out += [f"The former name of [{code(FORMER[type_])}](#{FORMER[type_]}), with the same options.", ""]
            continue
        dynamic = bool(options.dynamic)
        head = ["option", "needed", *(["may depend on the event"] if dynamic else []), "meaning"]
        rows_ = []
        for name in sorted(options.names, key=lambda n: (n not in options.needed, n)):
            needed = "yes" if name in options.needed else ""
            if type_ == "file" and end == "source" and needed:
                needed = "one of both"
            rows_.append(
                (
                    code(name),
                    needed,
                    *(["yes" if name in options.dynamic else ""] if dynamic else []),
                    option_help(end, type_, name),
                )
            )
        out.append(table(head, rows_))
        if CONFIGURATION in options.names:
            out += [configuration, ""]
    return "\n".join(out)


def _configuration(known: Mapping[str, type]) -> str:
    names = ", ".join(code(n) for n in sorted(known))
    return f"Settings that {code(CONFIGURATION)} takes: {names}."
