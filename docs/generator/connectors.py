"""Reference pages of sources, sinks and mappings, from the table `plan/connectors/connector_options.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from sparkstream_nb.plan.connectors import incoming, outside
from sparkstream_nb.plan.connectors.connector_options import FORMER_TYPES, TABLES
from sparkstream_nb.plan.connectors.kafka_client_settings import CONFIGURATION, CONSUMER, PRODUCER
from sparkstream_nb.plan.connectors.option_spec import End, Options, OptionSpec

from .markdown import code, name_anchor, table


def options_that_run(options: Options) -> dict[str, OptionSpec]:
    """The options of a type without those that are refused by name."""
    return {name: spec for name, spec in options.items() if spec.runs}


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
    out = [
        "# Message formats and their options",
        "",
        "`@map(type='json', ...)` of a source says how messages become events; of a sink, how events become messages. "
        "[Mappings](../mappings.md) has the rules, such as what null looks like in each format.",
        "",
    ]
    for type_ in TABLES["source-mapping"]:
        out += [f"## {type_}", ""]
        for end, words in ends:
            options = options_that_run(TABLES[end][type_])
            out += [f"Options {words}:" if options else f"It has no options {words}.", ""]
            rows = [(code(name), spec.help_line) for name, spec in sorted(options.items())]
            out.append(table(["option", "meaning"], rows))
    return "\n".join(out)


def _page(end: Literal["source", "sink"], title: str, text: str, configuration: str) -> str:
    found = TABLES[end]
    promise = incoming.delivery_guarantee if end == "source" else outside.promise
    rows = [(f"[{code(t)}](#{name_anchor(t)})", promise(t)[:1].upper() + promise(t)[1:] + ".") for t in found]
    out = [f"# {title}", "", text, "", table(["type", "promise"], rows)]
    for type_, options in found.items():
        out += [f"## {type_}", ""]
        former = FORMER_TYPES[end].get(type_)
        if former is not None:
            out += [f"The former name of [{code(former)}](#{name_anchor(former)}), with the same options.", ""]
            continue
        out += [_option_rows(options_that_run(options)), *([configuration, ""] if CONFIGURATION in options else [])]
    return "\n".join(out)


def _option_rows(options: Mapping[str, OptionSpec]) -> str:
    """The options of a type as rows, those that are needed first."""
    alternatives = {spec.alternative: spec.name for spec in options.values() if spec.alternative}
    dynamic = any(spec.dynamic for spec in options.values())
    rows = []
    for name, spec in options.items():
        one_of_both = bool(spec.alternative) or name in alternatives
        needed = "one of both" if one_of_both else "yes" if spec.required else ""
        depends = ["yes" if spec.dynamic else ""] if dynamic else []
        rows.append((not needed, name, (code(name), needed, *depends, spec.help_line)))
    head = ["option", "needed", *(["may depend on the event"] if dynamic else []), "meaning"]
    return table(head, [row for _, _, row in sorted(rows)])


def _configuration(known: Mapping[str, type]) -> str:
    names = ", ".join(code(n) for n in sorted(known))
    return f"Settings that {code(CONFIGURATION)} takes: {names}."
