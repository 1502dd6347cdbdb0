"""Reference pages and tables of errors, metrics, and of what WSO2's extensions have and this build does not."""

from __future__ import annotations

import inspect

from sparkstream_nb import errors as error_module
from sparkstream_nb.app.results.prometheus_text import METRICS
from sparkstream_nb.engine.aggregators import AGGREGATORS
from sparkstream_nb.engine.windows import WINDOWS
from sparkstream_nb.options import CannotRead
from sparkstream_nb.plan.connectors.incoming import INCOMING
from sparkstream_nb.plan.connectors.mappings import MAPPED
from sparkstream_nb.plan.connectors.outside import OUTSIDE
from sparkstream_nb.plan.extensions import Kind, extensions, types
from sparkstream_nb.plan.gaps import GAPS
from sparkstream_nb.plan.signatures import scalars, streams

from .markdown import code, table

INSTEAD = {
    "source": "Let the system write to [a broker, a file, HTTP or TCP](sources.md), or feed a data frame.",
    "sink": "Publish to [a broker, HTTP, TCP, a file or mail](sinks.md), or read the output in Python.",
    "source-mapping": "Use [json, csv, text, keyvalue, xml, binary or avro](message-formats.md).",
    "sink-mapping": "Use [json, csv, text, keyvalue, xml, binary or avro](message-formats.md).",
    "store": "Use `rdbms`: PostgreSQL, MySQL, MariaDB, SQLite or DuckDB.",
    "script": "Write the function in JavaScript.",
}
"""What an app can use in place of a type that is not included, by kind."""


def errors() -> str:
    """The page of the classes of errors."""
    found = [
        c
        for _, c in inspect.getmembers(error_module, inspect.isclass)
        if issubclass(c, error_module.SparkStreamError)
    ]
    found = sorted([*found, CannotRead], key=lambda c: (len(c.__mro__), c.__name__))
    rows = [
        (code(c.__name__), "" if c.__base__ is Exception else code(c.__base__.__name__), _first(c)) for c in found
    ]
    gaps = [(code(name), what) for name, what in GAPS.items()]
    return "\n".join(
        [
            "# Errors",
            "",
            "An error that a user can cause is one short message: what is wrong, where, and what to do. An error of a "
            "text begins with line and column (of a file: `FILE:LINE:COLUMN:`), shows the line with a caret below it, "
            "and ends with a suggestion. Any other exception is a bug in the package.",
            "",
            table(["class", "derived from", "meaning"], rows),
            "## Errors of the app",
            "",
            "An event or message that cannot be taken while the app runs does not stop it: it becomes an *error of the "
            "app*, with its values and the reason. `%siddhi errors NAME` lists them, and `--replay` sends them again. "
            "[When an event fails](../guides/errors.md) says how to mend and resend them.",
            "",
            "## Declared gaps",
            "",
            "Valid SiddhiQL that this build cannot run is refused as `NotInThisBuild` with the name of a gap:",
            "",
            table(["gap", "what it is"], gaps),
            "[What is not included](not-included.md) lists the names, and what to use instead.",
            "",
        ]
    )


def metrics() -> str:
    """The table of the metrics for Prometheus."""
    rows = [(code(f"sparkstream_{m.name}"), m.type, ", ".join(map(code, m.labels)), m.help) for m in METRICS.values()]
    return table(["metric", "type", "labels besides `app`", "meaning"], rows)


def not_included() -> str:
    """The page of names of WSO2's extensions that this build does not have."""
    known = {*scalars.TABLE, *streams.TABLE, *AGGREGATORS, *WINDOWS}
    lowered = {n.lower() for n in known}
    missing: dict[str, list[str]] = {}
    for name, extension in extensions().names.items():
        if name.lower() not in lowered:
            missing.setdefault(extension, []).append(name)
    out = [
        "# Extensions of WSO2 that are not included, and what to do instead",
        "",
        "The names below are known: an app that uses one is refused with the name and the extension, and a misspelt "
        "name is told apart from it. `sparkstream check` says so before anything runs.",
        "",
        "## Functions, windows and stream processors",
        "",
        "In place of one, write a [script function](../wso2/script-functions.md), compute the value before the events "
        "are sent, or [add the function to the package](../development/contributing.md#how-to-add).",
        "",
    ]
    for extension, names in sorted(missing.items()):
        out += [f"### {extension}", "", ", ".join(code(n) for n in sorted(names)), ""]
    out += ["## Sources, sinks, formats, stores and scripts", ""]
    run: dict[Kind, frozenset[str]] = {
        "source": INCOMING | {"inMemory"},
        "sink": OUTSIDE | {"inMemory", "log"},
        "source-mapping": MAPPED,
        "sink-mapping": MAPPED,
        "store": frozenset({"rdbms"}),
        "script": frozenset({"javascript", "js"}),
    }
    rows = [
        (kind, code(type_), connector.extension, INSTEAD[kind])
        for kind, have in run.items()
        for type_, connector in sorted(types(kind).items())
        if type_.lower() not in {h.lower() for h in have}
    ]
    out.append(table(["kind", "type", "extension", "instead"], rows))
    return "\n".join(out)


def _first(c: type) -> str:
    return " ".join((inspect.getdoc(c) or "").partition("\n\n")[0].split())
