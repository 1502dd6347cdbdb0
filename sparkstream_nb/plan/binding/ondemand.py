"""On-demand queries over tables, named windows and aggregations (Siddhi's `OnDemandQueryParser`)."""

from __future__ import annotations

from ...errors import SiddhiBindError, did_you_mean
from ...lang import tree
from ...types import Schema
from ..nodes import Expr, Output, Plan, Retrieval, Select, Source
from .expressions import bind_condition
from .query_inputs import PartitionPlace, bind_range
from .query_outputs import bind_output
from .scope import Scope, VisibleEvent
from .selection import Selecting, bind_selection
from .symbols import Symbols

_KIND = "OnDemandQueryCreationException"


def bind_retrieval(q: tree.OnDemandQuery, plan: Plan, text: str = "") -> Retrieval:
    """Bind `q` against `plan`. Raises SiddhiBindError with kind `OnDemandQueryCreationException` if it is wrong."""
    try:
        return _bind(q, symbols_of(plan), text)
    except SiddhiBindError as e:
        raise SiddhiBindError(e.message, e.span, hint=e.hint, kind=_KIND) from None


def symbols_of(plan: Plan) -> Symbols:
    """The names that `plan` defines."""
    return Symbols(
        plan.text,
        plan.properties,
        dict(plan.streams),
        dict(plan.tables),
        dict(plan.windows),
        dict(plan.triggers),
        dict(plan.functions),
        dict(plan.aggregations),
    )


def _bind(q: tree.OnDemandQuery, symbols: Symbols, text: str) -> Retrieval:
    selection = q.select or tree.Selection(span=q.span)
    if q.input is not None:
        return _read(q.input, selection, q, symbols, text)
    assert q.output is not None
    place = PartitionPlace(symbols)
    _changed_table(q.output, symbols)
    scope = Scope(symbols, (VisibleEvent(0, None, Schema(())),), "an on-demand query", bare="first")
    if q.select is None or not q.select.attributes:
        select = Select(())
    else:
        select = bind_selection(selection, Selecting(scope, "", False), q.span)
    output: Output = bind_output(q.output, select, place)
    return Retrieval(None, None, (), None, select, output, text, symbols.tables[output.target.id].is_stored)


def _read(
    input_: tree.StoreInput, selection: tree.Selection, q: tree.OnDemandQuery, symbols: Symbols, text: str
) -> Retrieval:
    source = symbols.find(input_.id)
    if source is None or source.kind == "stream":
        stores = (*symbols.tables, *symbols.windows, *symbols.aggregations)
        hint = did_you_mean(input_.id, stores) or (f"This app has: {', '.join(stores)}." if stores else None)
        if source is not None:
            hint = f"A stream keeps no events to query. {hint or ''}".strip()
        raise SiddhiBindError(f"'{input_.id}' is not a table, aggregation or window", input_.span, hint=hint)
    scope = Scope(
        symbols,
        (VisibleEvent(0, input_.id, source.schema, what=source.kind),),
        "an on-demand query",
        bare="first",
    )
    within: tuple[Expr, ...] = ()
    per: Expr | None = None
    if source.kind == "aggregation":
        if not input_.within or input_.per is None:
            raise SiddhiBindError(
                f"reading aggregation '{source.id}' needs 'within ... per ...'",
                input_.span,
                hint="Write within '2024-**-** **:**:**' per 'days'.",
            )
        within, per = bind_range(input_.within, input_.per, source, scope)
    elif input_.within or input_.per is not None:
        raise SiddhiBindError("'within ... per' belongs to aggregations", input_.span)
    on = bind_condition(input_.on, scope, "'on'") if input_.on is not None else None
    select = bind_selection(selection, Selecting(scope, "", False), q.span)
    shared = source.kind == "table" and symbols.tables[source.id].is_stored
    return Retrieval(source, on, within, per, select, None, text, shared)


def _changed_table(output: tree.QueryOutput, symbols: Symbols) -> Source:
    assert not isinstance(output, tree.Return)
    table = symbols.tables.get(str(output.target))
    if table is None:
        raise SiddhiBindError(
            f"'{output.target}' is not a table",
            output.target.span,
            hint=did_you_mean(str(output.target), symbols.tables),
        )
    return table.source
