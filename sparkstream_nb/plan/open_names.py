"""Names in an app's text that only a deployment gives a value: `${NAME}`, `ref='...'`, data sources. An app that is
only checked may leave them open: each is a note, and all else is checked."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from ..errors import SiddhiBindError, SiddhiError, Span, nearest
from ..lang import tree
from ..lang.parser import parse
from ..lang.source_text import variables_in
from . import compile_app
from . import nodes as n
from .query_parts import UNKNOWN_REF, configured_options, connector_options

_TAKEN = "1"
"""Placeholder value of `${NAME}`: valid as a number, and within quotes as a text."""


@dataclass(frozen=True)
class OpenName:
    """A name without a value, at its first place."""

    kind: Literal["variable", "ref", "data source"]
    name: str
    span: Span

    def note(self, lines_before: int = 0) -> str:
        """The name in words, with its line, which counts the `lines_before` the text, and where its value may come
        from."""
        line = f"line {self.span.line + lines_before}"
        if self.kind == "variable":
            return f"${{{self.name}}} ({line}) has no value and is taken as {_TAKEN}: --param {self.name}=VALUE"
        return f"{self.kind} '{self.name}' ({line}) is of a deployment file, and none is given: --conf FILE"


def compile_open(
    text: str, properties: Mapping[str, str], variables: Mapping[str, str]
) -> tuple[n.Plan, tuple[OpenName, ...]]:
    """The plan of a text, as `compile_app`, and its names without a value, in the order of the text. Raises as
    `compile_app`; where the text is wrong at a `${NAME}` without a value, the error asks for the value."""
    values = {name: span for name, span in reversed(variables_in(text)) if name not in variables}
    all_variables = {**variables, **dict.fromkeys(values, _TAKEN)}
    try:
        refs = _refs(parse(text, all_variables), properties)
        placeholder_properties = {f"{name}.{UNKNOWN_REF}": "" for name in refs}
        plan = compile_app(text, {**properties, **placeholder_properties}, all_variables)
    except SiddhiError as error:
        if any(_overlap(error.span, span) for name, span in variables_in(text) if name in values):
            parse(text, variables)  # raises
        raise error.with_source(text) from None
    open_names = [OpenName("variable", name, span) for name, span in values.items()]
    open_names += [OpenName("ref", name, span) for name, span in refs.items()]
    for store, source in _data_sources(plan):
        if not any(x.kind == "data source" and x.name == source for x in open_names):
            open_names.append(OpenName("data source", source, store.span))
    return plan, tuple(sorted(open_names, key=lambda x: x.span.start))


def with_placeholders(variables: Mapping[str, str], names: Collection[OpenName]) -> dict[str, str]:
    """The variables, with placeholder values for `names`."""
    return {**variables, **{x.name: _TAKEN for x in names if x.kind == "variable"}}


def check_data_sources(plan: n.Plan, defined_sources: Collection[str]) -> None:
    """Raises SiddhiBindError, with the text, for a `@store` whose data source is not among the `defined_sources`."""
    for store, source in _data_sources(plan):
        if source not in defined_sources:
            e = next((e for e in store.elements if (e.key or "").lower() == "datasource"), None)
            message = nearest(f"the deployment file has no data source '{source}'", source, defined_sources)
            raise SiddhiBindError(message, store.span if e is None else e.span).with_source(plan.text)


def _overlap(one: Span, two: Span) -> bool:
    return one.start < max(two.end, two.start + 1) and two.start < max(one.end, one.start + 1)


def _refs(app: tree.App, properties: Mapping[str, str]) -> dict[str, Span]:
    """The `ref`s that nothing defines, each at its first place."""
    out: dict[str, Span] = {}
    for d in app.definitions:
        for a in _walk_annotations(getattr(d, "annotations", ())):
            name = a.get("ref") if a.name.lower() in ("source", "sink", "store", "destination") else None
            if name is not None and not configured_options(name, properties):
                out.setdefault(name, a.span)
    return out


def _walk_annotations(annotations: tuple[tree.Annotation, ...]) -> Iterator[tree.Annotation]:
    for a in annotations:
        yield a
        yield from _walk_annotations(a.nested)


def _data_sources(plan: n.Plan) -> Iterator[tuple[tree.Annotation, str]]:
    """The `@store`s that name a data source, with its name."""
    holders = [d.annotations for d in plan.tables.values()] + [d.annotations for d in plan.aggregations.values()]
    for annotations_ in holders:
        store = tree.find_annotation(annotations_, "store")
        options = {} if store is None else {k.lower(): v for k, v in connector_options(store, plan.properties).items()}
        if store is not None and "datasource" in options:
            yield store, options["datasource"]
