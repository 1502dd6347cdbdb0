"""Definitions and app annotations (Siddhi's `SiddhiAppParser`, `DefinitionParserHelper`)."""

from __future__ import annotations

from dataclasses import replace

from ...errors import SiddhiBindError, Span, did_you_mean
from ...lang import tree
from ...types import Attribute, Schema, Type
from ..nodes import FunctionDef, IdleClock, Source, StreamDef, TableDef, TriggerDef, WindowDef
from ..query_parts import connector_type
from ..signatures.rules import cron_problem
from .annotation_times import parse_time
from .connectors import check_async, check_connectors, check_store, on_error_action
from .query_inputs import bind_window
from .scope import Scope, VisibleEvent
from .single_annotations import single, single_value
from .symbols import Symbols

SCRIPTS = frozenset({"javascript", "js", "r", "scala"})


def bind_app_annotations(annotations: tuple[tree.Annotation, ...]) -> str | None:
    """Checks the `@app:` annotations; the app's name, if they give one."""
    for once in ("statistics", "enforceOrder", "playback"):
        single(annotations, once)
    name = single_value(annotations, "name", None) or single_value(annotations, "name", "name")
    for a in annotations:
        key = a.name.lower()
        if key == "async":
            raise SiddhiBindError(
                "@async belongs to streams, not to the app", a.span, hint="Write @async(...) before 'define stream'."
            )
    return name


def bind_idle_clock(annotations: tuple[tree.Annotation, ...]) -> IdleClock | None:
    """The clock's rule in `@app:playback` for times without events; None if there is none."""
    a = tree.find_annotation(annotations, "playback")
    if a is None:
        return None
    keys = {e.key.lower(): e for e in a.elements if e.key is not None}
    for key, element in keys.items():
        if key not in ("idle.time", "increment"):
            raise SiddhiBindError(
                f"@app:playback has no element '{element.key}'",
                element.span,
                hint="It takes idle.time and increment.",
                kind="SiddhiAppValidationException",
            )
    if len(keys) == 1:
        missing = "increment" if "idle.time" in keys else "idle.time"
        raise SiddhiBindError(
            f"@app:playback has no '{missing}'",
            a.span,
            hint="Give both idle.time and increment, or neither.",
            kind="SiddhiAppValidationException",
        )
    times = {key: parse_time(e.value, e.span, key) for key, e in keys.items()}
    return IdleClock(max(times["idle.time"], 1), times["increment"]) if times else None


def bind_definition(d: tree.Definition, symbols: Symbols) -> None:
    """Adds one definition other than an aggregation to `symbols`."""
    match d:
        case tree.StreamDefinition():
            _stream(d, symbols)
        case tree.TableDefinition():
            _table(d, symbols)
        case tree.WindowDefinition():
            _window(d, symbols)
        case tree.TriggerDefinition():
            _trigger(d, symbols)
        case tree.FunctionDefinition():
            _function(d, symbols)


def _schema(attributes: tuple[tree.AttributeDefinition, ...]) -> Schema:
    types: dict[str, Type] = {}
    for a in attributes:
        if a.name in types:
            raise SiddhiBindError(f"attribute '{a.name}' is defined twice", a.span, kind="SiddhiParserException")
        types[a.name] = a.type
    return Schema(tuple(Attribute(n, t) for n, t in types.items()))


def _claim(id_: str, what: str, symbols: Symbols, span: Span, hint: str = "Rename one of them.") -> None:
    """Raises SiddhiBindError, which shows `hint`, where something is called `id_` already."""
    source = symbols.find(id_)
    if source is not None:
        kind = "trigger" if id_ in symbols.triggers else source.kind
        raise SiddhiBindError(
            f"{what} '{id_}' cannot be defined: '{id_}' is already defined as a {kind}",
            span,
            hint=hint,
            kind="DuplicateDefinitionException",
        )


def _stream(d: tree.StreamDefinition, symbols: Symbols) -> None:
    schema = _schema(d.attributes)
    before = symbols.streams.get(d.id.id)
    if before is not None and before.source.schema == schema and before.annotations == d.annotations:
        symbols.streams[d.id.id] = replace(before, kind="defined")  # the same text twice, or a trigger's definition
        return
    hint = "Rename one of them, or define both alike, with the same attributes and annotations."
    _claim(d.id.id, "stream", symbols, d.span, hint)
    check_async(d.annotations)
    check_connectors(d.annotations, schema, d.id.id, symbols.properties)
    on_error = on_error_action(d.annotations)
    symbols.streams[d.id.id] = StreamDef(Source("stream", d.id.id, schema), "defined", on_error, d.annotations)
    if on_error == "STREAM":
        fault = f"!{d.id.id}"
        fault_schema = Schema((*schema.attributes, Attribute("_error", Type.OBJECT)))
        symbols.streams[fault] = StreamDef(Source("stream", fault, fault_schema), "fault")


def _table(d: tree.TableDefinition, symbols: Symbols) -> None:
    schema = _schema(d.attributes)
    before = symbols.tables.get(d.id.id)
    if before is not None and before.source.schema == schema and before.annotations == d.annotations:
        return  # the same text twice is one table (`SiddhiApp.checkDuplicateDefinition`)
    _claim(d.id.id, "table", symbols, d.span)
    check_store(d.annotations, symbols.properties)
    keys: tuple[int, ...] | None = None
    indexes: list[int] = []
    joint: list[tuple[int, ...]] = []
    store = tree.find_annotation(d.annotations, "store")
    is_stored = store is not None
    elsewhere = store is not None and connector_type(store, symbols.properties) not in ("", "rdbms")
    for a in d.annotations:
        match a.name.lower():
            case "index" | "indexby" if elsewhere:
                continue  # such stores read them in a way of their own
            case "primarykey":
                if keys is not None:
                    raise SiddhiBindError(
                        f"table '{d.id.id}' has two @PrimaryKey",
                        a.span,
                        hint="A key of several attributes is one annotation: @PrimaryKey('a', 'b').",
                        kind="DuplicateAnnotationException",
                    )
                keys = _attributes(a, schema, d.id.id)
            case "index":
                if len(a.elements) > 1 and not is_stored:
                    raise SiddhiBindError(
                        "@Index of a table in memory takes one attribute",
                        a.span,
                        hint="Write one @Index for each attribute.",
                        kind="SiddhiAppValidationException",
                    )
                at, *more = _attributes(a, schema, d.id.id)
                if more:
                    joint.append((at, *more))
                    continue
                if at in indexes:
                    raise SiddhiBindError(
                        f"table '{d.id.id}' has two @Index on '{schema[at].name}'",
                        a.span,
                        hint="Keep one.",
                        kind="SiddhiAppValidationException",
                    )
                indexes.append(at)
            case "indexby":
                raise SiddhiBindError("@IndexBy is not supported any more", a.span, hint="Write @PrimaryKey or @Index.")
    source = Source("table", d.id.id, schema)
    symbols.tables[d.id.id] = TableDef(source, keys or (), tuple(indexes), d.annotations, tuple(joint))


def _attributes(a: tree.Annotation, schema: Schema, table: str) -> tuple[int, ...]:
    out = []
    for e in a.elements:
        at = schema.find(e.value.strip())
        if at is None:
            hint = did_you_mean(e.value, schema.names) or f"It has {', '.join(schema.names)}."
            raise SiddhiBindError(
                f"table '{table}' has no attribute '{e.value}'", e.span, hint=hint, kind="AttributeNotExistException"
            )
        out.append(at)
    if not out:
        raise SiddhiBindError(f"@{a.name} names no attribute", a.span, kind="SiddhiAppValidationException")
    return tuple(out)


def _window(d: tree.WindowDefinition, symbols: Symbols) -> None:
    schema = _schema(d.attributes)
    _claim(d.id.id, "window", symbols, d.span)
    check_async(d.annotations)
    on_error_action(d.annotations)
    source = Source("window", d.id.id, schema)
    scope = Scope(symbols, (VisibleEvent(0, d.id.id, schema, what="window"),), "a window", bare="first")
    step = bind_window(d.window, d.window.span, scope)
    symbols.windows[d.id.id] = WindowDef(source, step, d.output or "all", d.annotations)


_TRIGGERED = Schema.of(("triggered_time", Type.LONG))


def _trigger(d: tree.TriggerDefinition, symbols: Symbols) -> None:
    """A trigger defines a stream. It may share its name with that very stream (`SiddhiApp.defineTrigger`)."""
    stream = symbols.streams.get(d.id)
    if d.id in symbols.triggers or stream is None or stream.source.schema != _TRIGGERED or stream.annotations:
        hint = f"Rename one of them. Only a stream {_TRIGGERED} without annotations may have its name."
        _claim(d.id, "trigger", symbols, d.span, hint)
    if d.every is not None:
        trigger = TriggerDef(d.id, every=d.every.millis)
    elif (d.at or "").strip().lower() == "start":
        trigger = TriggerDef(d.id, start=True)
    else:
        problem = cron_problem(d.at or "")
        if problem is not None:
            raise SiddhiBindError(
                problem, d.span, hint="Write 'start', every 5 sec, or a cron expression of six fields."
            )
        trigger = TriggerDef(d.id, cron=d.at)
    symbols.triggers[d.id] = trigger
    symbols.streams.setdefault(d.id, StreamDef(Source("stream", d.id, _TRIGGERED), "trigger"))


def _function(d: tree.FunctionDefinition, symbols: Symbols) -> None:
    if d.id in symbols.functions:
        raise SiddhiBindError(f"function '{d.id}' is defined twice", d.span, kind="DuplicateDefinitionException")
    if d.language.lower() not in SCRIPTS:
        raise SiddhiBindError(
            f"unknown script language '{d.language}'",
            d.span,
            hint=did_you_mean(d.language, SCRIPTS) or "Known: javascript, r.",
            kind="ExtensionNotFoundException",
        )
    symbols.functions[d.id] = FunctionDef(d.id, d.language, d.returns, d.body)
