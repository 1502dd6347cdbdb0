"""Converts Lark's parse tree to the syntax tree of `tree.py`: definitions, queries, partitions, apps and on-demand
queries."""

from __future__ import annotations

from typing import Any, Literal, cast

from lark import Token, Tree

from ..errors import SHALLOWER, TOO_DEEP
from ..types import Type
from . import tree as t
from .build import Branch, Builder, name_of, parts, string_of, sub, tok
from .build_patterns import Chain, ChainGroup, ChainLink, state_stream
from .fixits import THIRD_EVENT, TWO_EVENTS, refuse_driver_without_key, refuse_per_without_quotes
from .keywords import UNIT_SPELLINGS
from .source_text import SourceText


class QueryBuilder(Builder):
    """Builds whole apps, queries and on-demand queries. `may_begin_with_query`: streams are defined elsewhere."""

    def __init__(self, source: SourceText, *, may_begin_with_query: bool = False) -> None:
        super().__init__(source)
        self.may_begin_with_query = may_begin_with_query

    # -------------------------------------------------------------------------------------------------- app

    def app(self, b: Branch) -> t.App:
        app_annotations: list[t.Annotation] = []
        definitions: list[t.Definition] = []
        elements: list[t.Query | t.Partition] = []
        for i in range(len(parts(b))):
            statement = sub(b, i)
            if i == 0:
                app_annotations = self._take_app_annotations(sub(statement, 0))
            try:
                part = self.build(statement)
            except RecursionError:
                self.fail(statement, TOO_DEEP, SHALLOWER)
            self.active.clear()
            if not isinstance(part, t.Definition):
                elements.append(part)
            elif elements:
                self.fail(statement, "a definition cannot follow a query", "Move it before the first query.")
            else:
                definitions.append(part)
            if not definitions and not self.may_begin_with_query:
                self.fail(
                    statement, "an app begins with a definition, not a query", "Put 'define stream ...;' before it."
                )
        return t.App(tuple(app_annotations), tuple(definitions), tuple(elements), span=self.span(b))

    def _take_app_annotations(self, b: Branch) -> list[t.Annotation]:
        """Builds the leading `@app:...` annotations and takes them out of `b`."""
        out = []
        while parts(b) and sub(b, 0).data == "app_annotation":
            out.append(self.build(sub(b, 0)))
            parts(b).pop(0)
        return out

    def only_expression(self, b: Branch) -> t.Expression:
        return cast(t.Expression, self.build(sub(b, 0)))

    def only_on_demand(self, b: Branch) -> t.OnDemandQuery:
        return cast(t.OnDemandQuery, self.build(sub(b, 0)))

    # ------------------------------------------------------------------------------------------ definitions

    def define_stream(self, b: Branch) -> t.StreamDefinition:
        annotations = self.annotations(sub(b, 0))
        return t.StreamDefinition(
            self._defined_name(sub(b, 1), "stream"), self._attributes(sub(b, 2)), annotations, span=self.span(b)
        )

    def define_table(self, b: Branch) -> t.TableDefinition:
        annotations = self.annotations(sub(b, 0))
        refuse_driver_without_key(annotations)
        return t.TableDefinition(
            self._defined_name(sub(b, 1), "table"), self._attributes(sub(b, 2)), annotations, span=self.span(b)
        )

    def define_window(self, b: Branch) -> t.WindowDefinition:
        return t.WindowDefinition(
            self._defined_name(sub(b, 1), "window"),
            self._attributes(sub(b, 2)),
            self.build(sub(b, 3)),
            self._optional(b, 4),
            self.annotations(sub(b, 0)),
            span=self.span(b),
        )

    def define_trigger(self, b: Branch) -> t.TriggerDefinition:
        self._no_annotations(sub(b, 0), "trigger")
        at = parts(b)[2]
        if isinstance(at, Tree):
            return t.TriggerDefinition(name_of(tok(b, 1)), every=self.build(at), span=self.span(b))
        return t.TriggerDefinition(name_of(tok(b, 1)), at=string_of(at), span=self.span(b))

    def define_function(self, b: Branch) -> t.FunctionDefinition:
        self._no_annotations(sub(b, 0), "function")
        _, name, language, returns, script = parts(b)
        return t.FunctionDefinition(
            name_of(name),
            name_of(language),
            Type(str(returns).lower()),
            str(script)[1:-1],
            span=self.span(b),
        )

    def define_aggregation(self, b: Branch) -> t.AggregationDefinition:
        _, name, source, select, group_by, by, durations = parts(b)
        annotations = self.annotations(sub(b, 0))
        refuse_driver_without_key(annotations)
        stream = self.build(source)
        selection = self._selection(b, select, group_by)
        duration_list = self._durations(durations)
        return t.AggregationDefinition(
            name_of(name),
            stream,
            selection,
            self.optional(by),
            duration_list,
            durations.data == "duration_range",
            annotations,
            span=self.span(b),
        )

    def aggregation_input(self, b: Branch) -> t.StandardStream:
        source, handlers = (
            self._in_sight(sub(b, 0)),
            self._handlers(sub(b, 1), windows=0, where="an aggregation's input"),
        )
        return t.StandardStream(source, handlers, span=self.span(b))

    def _durations(self, b: Branch) -> tuple[t.Duration, ...]:
        out: list[t.Duration] = []
        for unit in parts(b):
            kind = UNIT_SPELLINGS.get(unit.lower())
            if kind in ("sec", "min", "hour", "day", "month", "year"):
                out.append(cast(t.Duration, kind))
            elif unit.type == "UNIT":
                self.fail(
                    unit, f"an aggregation cannot aggregate per '{unit}'", "Use sec, min, hour, day, month, year."
                )
        return tuple(out)

    def _defined_name(self, b: Branch, what: str) -> t.SourceName:
        name = cast(t.SourceName, self.build(b))
        if name.inner or name.fault:
            kind = "an inner" if name.inner else "a fault"
            self.fail(b, f"{kind} stream cannot be defined as a {what}", f"Leave out '{str(name)[0]}'.")
        return name

    def _attributes(self, b: Branch) -> tuple[t.AttributeDefinition, ...]:
        out = cast("tuple[t.AttributeDefinition, ...]", self.build(b))
        names: set[str] = set()
        for child, attribute in zip(parts(b), out, strict=True):
            if attribute.name in names:
                self.fail(child, f"the attribute '{attribute.name}' is already defined")
            names.add(attribute.name)
        return out

    def _no_annotations(self, b: Branch, what: str) -> None:
        if parts(b):
            self.fail(b, f"a {what} takes no annotations", "Leave them out.")

    # ------------------------------------------------------------------------------------------- partitions

    def partition(self, b: Branch) -> t.Partition:
        annotations, *rest = parts(b)
        keys = tuple(self.build(r) for r in rest if r.data != "query")
        self.active.clear()
        queries = tuple(self.build(r) for r in rest if r.data == "query")
        return t.Partition(keys, queries, self.annotations(annotations), span=self.span(b))

    def value_key(self, b: Branch) -> t.ValuePartition:
        stream = name_of(tok(b, 1))
        self.active = {stream}
        return t.ValuePartition(self.build(sub(b, 0)), stream, span=self.span(b))

    def range_key(self, b: Branch) -> t.RangePartition:
        stream = name_of(tok(b, -1))
        self.active = {stream}
        cases = [c for c in parts(b) if isinstance(c, Tree)]
        ranges = tuple((self.build(sub(c, 0)), string_of(tok(c, 1))) for c in cases)
        return t.RangePartition(ranges, stream, span=self.span(b))

    # --------------------------------------------------------------------------------------------- queries

    def query(self, b: Branch) -> t.Query:
        annotations, stream, selection, rate, output = parts(b)
        query = t.Query(
            self.build(stream),
            t.Selection() if selection is None else self.build(selection),
            self.build(output),
            self.optional(rate),
            self.annotations(annotations),
            span=self.span(b),
        )
        self.active.clear()
        return query

    def anonymous(self, b: Branch) -> t.AnonymousStream:
        outer, self.active = self.active, set()
        stream, selection, rate, event_type = parts(b)
        assert stream is not None
        query = t.Query(
            self.build(stream),
            t.Selection() if selection is None else self.build(selection),
            t.Return(self.optional(event_type)),
            self.optional(rate),
            span=self.span(b),
        )
        self.active = outer
        return t.AnonymousStream(query, span=self.span(b))

    def inner_anonymous(self, b: Branch) -> t.AnonymousStream:
        return cast(t.AnonymousStream, self.build(sub(b, 0)))

    def _in_sight(self, b: Branch) -> t.SourceName:
        name = cast(t.SourceName, self.build(b))
        self.active.add(str(name))
        return name

    def _handlers(self, b: Branch, *, windows: int, where: str, last: bool = False) -> tuple[t.Handler, ...]:
        windows_so_far = 0
        for child in parts(b):
            if last and windows_so_far:
                self.fail(child, "in a join, nothing follows a stream's window", "Put the window last.")
            windows_so_far += child.data == "window"
            if windows_so_far > windows:
                one = "only one window" if windows else "no window"
                self.fail(child, f"{where} takes {one}")
        return tuple(self.build(c) for c in parts(b))

    def filter(self, b: Branch) -> t.Filter:
        return t.Filter(self.build(sub(b, 0)), span=self.span(b))

    def stream_function(self, b: Branch) -> t.StreamFunction:
        return t.StreamFunction(self.build(sub(b, 0)), span=self.span(b))

    def window(self, b: Branch) -> t.Window:
        return t.Window(self.build(sub(b, 0)), span=self.span(b))

    # ------------------------------------------------------------------------------------------------ joins

    def join(self, b: Branch) -> t.JoinStream:
        left, kind, right, one_way, on, within, per = parts(b)
        return self._join(b, (left, kind, right), "right" if one_way else None, (on, within, per))

    def join_from_left(self, b: Branch) -> t.JoinStream:
        left, _, kind, right, on, within, per = parts(b)
        return self._join(b, (left, kind, right), "left", (on, within, per))

    def _join(
        self,
        b: Branch,
        sides: tuple[Any, Any, Any],
        one_way: Literal["left", "right"] | None,
        clauses: tuple[Any, Any, Any],
    ) -> t.JoinStream:
        left, kind, right = sides
        on, within, per = clauses
        if kind.data == "outer_join_alone":
            self.fail(kind, "an outer join needs its side", "Write 'left outer join', or 'right', or 'full'.")
        return t.JoinStream(
            self.build(left),
            self.build(right),
            _JOIN_KINDS[kind.data],
            one_way,
            self.optional(on),
            self.optional(within) or (),
            self.optional(per),
            span=self.span(b),
        )

    def join_side(self, b: Branch) -> t.JoinSide:
        source = self._in_sight(sub(b, 0))
        alias = parts(b)[2]
        if alias is not None:
            self.active.discard(str(source))
            self.active.add(name_of(alias))
        handlers = self._handlers(sub(b, 1), windows=1, where="a side of a join", last=True)
        return t.JoinSide(source, handlers, None if alias is None else name_of(alias), span=self.span(b))

    def on(self, b: Branch) -> t.Expression:
        return cast(t.Expression, self.build(sub(b, 0)))

    def within(self, b: Branch) -> tuple[t.Expression, ...]:
        return tuple(self.build(c) for c in parts(b) if c is not None)

    def per(self, b: Branch) -> t.Expression:
        out = cast(t.Expression, self.build(sub(b, 0)))
        refuse_per_without_quotes(out)
        return out

    # -------------------------------------------------------------------------------- patterns and sequences

    def states(self, b: Branch) -> t.StandardStream | t.StateStream:
        chain_branch, within = sub(b, 0), parts(b)[1]
        only = sub(chain_branch, 0)
        if within is None and len(chain_branch.children) == 1 and only.data == "state":
            source, handlers = (
                self._in_sight(sub(only, 0)),
                self._handlers(sub(only, 1), windows=1, where="a query's input"),
            )
            return t.StandardStream(source, handlers, span=self.span(b))
        return state_stream(self.chain(chain_branch), self.optional(within), self.span(b))

    def chain(self, b: Branch) -> Chain:
        links = tuple(self._link(c) for c in parts(b) if isinstance(c, Tree))
        return Chain(links, tuple((str(c), self.span(c)) for c in parts(b) if isinstance(c, Token)))

    def _link(self, b: Branch) -> ChainLink:
        inner = sub(b, 0) if b.data == "every" else b
        suffix = str(inner.children[1]) if inner.data == "count_suffix" else None
        unit: Any = (
            ChainGroup(self.chain(sub(inner, 0)), self.span(inner)) if inner.data == "group" else self.build(inner)
        )
        return ChainLink(unit, b.data == "every", self.span(b), suffix)

    def state(self, b: Branch) -> t.StreamState:
        source = self._in_sight(sub(b, 0))
        handlers = self._handlers(sub(b, 1), windows=0, where="an event of a pattern or sequence")
        return t.StreamState(source, None, handlers, span=self.span(b))

    def named_state(self, b: Branch) -> t.StreamState:
        ref = name_of(tok(b, 0))
        self.active.add(ref)
        source = self._in_sight(sub(b, 1))
        handlers = self._handlers(sub(b, 2), windows=0, where="an event of a pattern or sequence")
        if str(source) != ref:
            self.active.discard(str(source))
        return t.StreamState(source, ref, handlers, span=self.span(b))

    def absent(self, b: Branch) -> t.AbsentState:
        source = self._in_sight(sub(b, 0))
        handlers = self._handlers(sub(b, 1), windows=0, where="an event of a pattern or sequence")
        state = t.StreamState(source, None, handlers, span=self.span(sub(b, 0)))
        return t.AbsentState(state, self.optional(parts(b)[2]), span=self.span(b))

    def _count(self, b: Branch, least: int, most: int) -> t.CountState:
        return t.CountState(self.build(sub(b, 0)), least, most, span=self.span(b))

    def count_between(self, b: Branch) -> t.CountState:
        return self._count(b, self.small(tok(b, 1)), self.small(tok(b, 2)))

    def count_at_least(self, b: Branch) -> t.CountState:
        return self._count(b, self.small(tok(b, 1)), t.UNBOUNDED)

    def count_at_most(self, b: Branch) -> t.CountState:
        return self._count(b, 0, self.small(tok(b, 1)))

    def count_exactly(self, b: Branch) -> t.CountState:
        return self._count(b, self.small(tok(b, 1)), self.small(tok(b, 1)))

    def count_suffix(self, b: Branch) -> t.CountState:
        least, most = {"*": (0, t.UNBOUNDED), "+": (1, t.UNBOUNDED), "?": (0, 1)}[str(parts(b)[1])]
        return self._count(b, least, most)

    def logical(self, b: Branch) -> t.LogicalState:
        if len(parts(b)) > 3:
            self.fail(tok(b, 3), TWO_EVENTS.format(tok(b, 3)), THIRD_EVENT)
        left, right = self.build(sub(b, 0)), self.build(sub(b, 2))
        op: Literal["and", "or"] = "and" if tok(b, 1).type == "AND" else "or"
        open_ended = [s for s in (left, right) if isinstance(s, t.AbsentState) and s.wait is None]
        both_absent = isinstance(left, t.AbsentState) and isinstance(right, t.AbsentState)
        if open_ended and (op == "or" or both_absent):
            self.fail(
                b,
                "this absent event needs a waiting time",
                f"Write 'not {open_ended[0].state.source} for 5 sec'.",
            )
        return t.LogicalState(op, left, right, span=self.span(b))

    # -------------------------------------------------------------------------------------------- selection

    def selection(self, b: Branch) -> t.Selection:
        select, *clauses = parts(b)
        return self._selection(b, select, *clauses)

    def _selection(self, b: Branch, select: Any, *clauses: Any) -> t.Selection:
        """`clauses`: group by, having, order by, limit and offset, of which the last ones may be missing."""
        group_by, having, order_by, limit, offset = (*clauses, *[None] * 5)[:5]
        star = select.data == "select_all"
        return t.Selection(
            () if star else tuple(self.build(c) for c in select.children),
            star,
            self._all(group_by),
            None if having is None else self.build(having.children[0]),
            self._all(order_by),
            self._constant(limit, "limit"),
            self._constant(offset, "offset"),
            span=self.span(b) if b.data == "selection" else self.span(select),
        )

    def _all(self, b: Branch | None) -> tuple[Any, ...]:
        return () if b is None else tuple(self.build(c) for c in parts(b))

    def _constant(self, b: Branch | None, clause: str) -> t.Expression | None:
        if b is None:
            return None
        out = cast(t.Expression, self.build(sub(b, 0)))
        is_integer = isinstance(out, t.Constant) and out.type in (Type.INT, Type.LONG)
        if not (is_integer or isinstance(out, t.TimeConstant)):
            self.fail(sub(b, 0), f"'{clause}' takes an integer constant")
        return out

    def output_attribute(self, b: Branch) -> t.OutputAttribute:
        name = name_of(tok(b, 1)) if len(parts(b)) == 2 else None
        return t.OutputAttribute(self.build(sub(b, 0)), name, span=self.span(b))

    def order_item(self, b: Branch) -> t.OrderBy:
        order = parts(b)[1]
        return t.OrderBy(self.build(sub(b, 0)), isinstance(order, Token) and order.type == "DESC", span=self.span(b))

    # ----------------------------------------------------------------------------------------------- output

    def rate_by_time(self, b: Branch) -> t.OutputRate:
        return t.OutputRate(_rate_kind(parts(b)[0]), time=self.build(sub(b, 1)), span=self.span(b))

    def rate_by_events(self, b: Branch) -> t.OutputRate:
        return t.OutputRate(_rate_kind(parts(b)[0]), events=self.small(tok(b, 1)), span=self.span(b))

    def rate_snapshot(self, b: Branch) -> t.OutputRate:
        return t.OutputRate("snapshot", time=self.build(sub(b, 0)), span=self.span(b))

    def all_events(self, b: Branch) -> t.EventType:
        return "all"

    def expired_events(self, b: Branch) -> t.EventType:
        return "expired"

    def current_events(self, b: Branch) -> t.EventType:
        return "current"

    def insert_into(self, b: Branch) -> t.QueryOutput:
        return t.InsertInto(self.build(sub(b, 1)), self._optional(b, 0), span=self.span(b))

    def delete_from(self, b: Branch) -> t.QueryOutput:
        return t.DeleteFrom(
            self._table(sub(b, 0), "delete"), self._optional(b, 1), self._optional(b, 2), span=self.span(b)
        )

    def update_table(self, b: Branch) -> t.QueryOutput:
        return self._update(t.UpdateTable, b, 0)

    def update_or_insert(self, b: Branch) -> t.QueryOutput:
        return self._update(t.UpdateOrInsert, b, 1)

    def _update(self, kind: type[t.UpdateTable] | type[t.UpdateOrInsert], b: Branch, at: int) -> t.QueryOutput:
        """An update whose table is the part number `at`."""
        return kind(
            self._table(sub(b, at), "update"),
            self.build(sub(b, at + 3)),
            self._optional(b, at + 1),
            self._optional(b, at + 2),
            span=self.span(b),
        )

    def return_events(self, b: Branch) -> t.QueryOutput:
        return t.Return(self._optional(b, 0), span=self.span(b))

    def set_clause(self, b: Branch) -> tuple[t.SetAssignment, ...]:
        return tuple(t.SetAssignment(self.build(sub(a, 0)), self.build(sub(a, 1)), span=self.span(a)) for a in parts(b))

    def _optional(self, b: Branch, i: int) -> Any:
        return self.optional(cast("Branch | None", parts(b)[i]))

    def _table(self, b: Branch, what: str) -> t.SourceName:
        name = cast(t.SourceName, self.build(b))
        if name.inner or name.fault:
            self.fail(b, f"'{what}' works on tables, and '{name}' is a stream")
        return name

    # ------------------------------------------------------------------------------------ on-demand queries

    def find(self, b: Branch) -> t.OnDemandQuery:
        return t.OnDemandQuery(self.build(sub(b, 0)), self._optional(b, 1), span=self.span(b))

    def store_input(self, b: Branch) -> t.StoreInput:
        name, alias, on, within, per = parts(b)
        return t.StoreInput(
            name_of(name),
            None if alias is None else name_of(alias),
            self.optional(on),
            self.optional(within) or (),
            self.optional(per),
            span=self.span(b),
        )

    def store_insert(self, b: Branch) -> t.OnDemandQuery:
        target = self._table(sub(b, 1), "insert into")
        return t.OnDemandQuery(
            None, self.build(sub(b, 0)), t.InsertInto(target, span=self.span(sub(b, 1))), span=self.span(b)
        )

    def store_upsert(self, b: Branch) -> t.OnDemandQuery:
        selection, _, target, assignments, on = parts(b)
        table = self._table(target, "update or insert into")
        output = t.UpdateOrInsert(table, self.build(on), None, self.optional(assignments), span=self.span(b))
        return t.OnDemandQuery(None, self.build(selection), output, span=self.span(b))

    def store_delete(self, b: Branch) -> t.OnDemandQuery:
        output = t.DeleteFrom(self._table(sub(b, 1), "delete"), None, self._optional(b, 2), span=self.span(b))
        return t.OnDemandQuery(None, self._optional(b, 0), output, span=self.span(b))

    def store_update(self, b: Branch) -> t.OnDemandQuery:
        selection, target, assignments, on = parts(b)
        table = self._table(target, "update")
        output = t.UpdateTable(table, self.build(on), None, self.optional(assignments), span=self.span(b))
        return t.OnDemandQuery(None, self.optional(selection), output, span=self.span(b))


_JOIN_KINDS: dict[str, Literal["inner", "left outer", "right outer", "full outer"]] = {
    "inner_join": "inner",
    "left_join": "left outer",
    "right_join": "right outer",
    "full_join": "full outer",
}


def _rate_kind(token: object) -> Literal["all", "first", "last"]:
    if not isinstance(token, Token):
        return "all"
    return "first" if token.type == "FIRST" else "last" if token.type == "LAST" else "all"
