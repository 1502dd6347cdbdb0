"""The output of a query: streams, windows, tables (Siddhi's `OutputParser`)."""

from __future__ import annotations

from ...errors import SiddhiBindError, Span, did_you_mean
from ...lang import tree
from ...types import Schema, promote
from ..nodes import OUTPUT, TABLE, Delete, Insert, Output, Select, SetItem, Source, StreamDef, Update, Upsert
from .expressions import bind_condition, bind_expression
from .query_inputs import PartitionPlace
from .scope import Scope, VisibleEvent
from .symbols import full_id


def output_id(output: tree.QueryOutput, place: PartitionPlace) -> str:
    """The id of the query's target, before it is looked up."""
    if isinstance(output, tree.Return):
        raise SiddhiBindError(
            "a query of an app cannot use 'return'",
            output.span,
            hint="Write 'insert into ...'; 'return' is for on-demand queries.",
        )
    return full_id(output.target, place.partition)


def bind_output(
    output: tree.QueryOutput, select: Select, place: PartitionPlace, default: tree.EventType = "current"
) -> Output:
    """The output of a query that selects `select`. Defines an undefined target stream.

    `default` is the event type to send if the text names none.
    """
    id_ = output_id(output, place)
    assert not isinstance(output, tree.Return)
    event_type = output.event_type or default
    if isinstance(output, tree.InsertInto):
        return Insert(_insert_target(output, id_, select.schema, place), event_type)
    table = place.symbols.tables.get(id_)
    if table is None:
        source = place.symbols.find(id_)
        message = f"'{id_}' is a {source.kind}, not a table" if source else f"no table '{output.target}' is defined"
        raise SiddhiBindError(message, output.target.span, hint=did_you_mean(id_, place.symbols.tables))
    target = table.source
    scope = table_scope(target, select.schema, place)
    match output:
        case tree.DeleteFrom():
            on = bind_condition(output.on, scope, "'on'") if output.on is not None else None
            return Delete(target, event_type, on)
        case tree.UpdateTable():
            if output.set is None:
                _check_columns(select.schema, target, output.span)
            condition = bind_condition(output.on, scope, "'on'")
            return Update(target, event_type, condition, bind_set(output.set, target, scope))
    _check_columns(select.schema, target, output.span)
    _check_same(select.schema, target, output.span)
    condition = bind_condition(output.on, scope, "'on'")
    return Upsert(target, event_type, condition, bind_set(output.set, target, scope))


def table_scope(target: Source, row: Schema, place: PartitionPlace) -> Scope:
    """The scope of conditions and `set`: the query's output row by bare names, the table's row by its name."""
    entries = (
        VisibleEvent(OUTPUT, None, row, what="output"),
        VisibleEvent(TABLE, target.id, target.schema, what="table"),
    )
    return Scope(place.symbols, entries, "a condition on a table", bare="first")


def bind_set(items: tuple[tree.SetAssignment, ...] | None, target: Source, scope: Scope) -> tuple[SetItem, ...] | None:
    """`set T.a = e, ...`: an attribute of the table, and a value of its type or a number of a narrower one.

    The table converts such a number to the attribute's type. The name before the dot means nothing: Siddhi looks for
    the attribute in the table that is changed (`tests/cases/tables/set_by_name`).
    """
    if items is None:
        return None
    out = []
    for item in items:
        v = item.target
        at = target.schema.find(v.name)
        if at is None:
            hint = did_you_mean(v.name, target.schema.names) or f"It has {', '.join(target.schema.names)}."
            raise SiddhiBindError(f"table '{target.id}' has no attribute '{v.name}'", v.span, hint=hint)
        value = bind_expression(item.value, scope)
        target_type = target.schema[at].type
        if value.type is not target_type and promote(value.type, target_type) is not target_type:
            hint = f"Write convert(..., '{target_type}')."
            raise SiddhiBindError(
                f"'{v.name}' of table '{target.id}' is {target_type}, the value is {value.type}", value.span, hint=hint
            )
        out.append(SetItem(at, value))
    return tuple(out)


def _insert_target(output: tree.InsertInto, id_: str, schema: Schema, place: PartitionPlace) -> Source:
    symbols = place.symbols
    target = symbols.find(id_)
    if target is None:
        if output.target.fault:
            raise symbols.undefined_error(output.target, place.partition, output.target.span)
        source = Source("stream", id_, schema)
        symbols.streams[id_] = StreamDef(source, "inferred")
        return source
    if target.kind == "aggregation":
        raise SiddhiBindError(
            f"'{id_}' is an aggregation, events cannot be inserted into it",
            output.target.span,
            kind="DuplicateDefinitionException",
        )
    _check_same(schema, target, output.target.span)
    return target


def _check_columns(row: Schema, target: Source, span: Span) -> None:
    """`update` without `set` writes every output attribute, so the table must have each, with its type."""
    for a in row:
        if a not in target.schema.attributes:
            at = target.schema.find(a.name)
            what = (
                f"has '{a.name}' as {target.schema[at].type}, not {a.type}" if at is not None else f"has no '{a.name}'"
            )
            raise SiddhiBindError(
                f"table '{target.id}' {what}", span, hint="Select the table's attributes, or use 'set'."
            )


def _check_same(row: Schema, target: Source, span: Span) -> None:
    if row == target.schema:
        return
    if len(row) != len(target.schema):
        what = f"it has {len(target.schema)} attributes, the query gives {len(row)}"
    else:
        i = next(i for i, (a, b) in enumerate(zip(row, target.schema, strict=True)) if a != b)
        what = f"attribute {i + 1} is '{target.schema[i]}', the query gives '{row[i]}'"
    raise SiddhiBindError(
        f"the query does not fit {target.kind} '{target.id}': {what}",
        span,
        hint=f"{target.id} {target.schema}\nquery {row}",
        kind="DuplicateDefinitionException",
    )
