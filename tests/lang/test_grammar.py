"""What texts mean: text → facts of the tree. Doubtful ones were put to Siddhi 5.1.30."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from sparkstream_nb.errors import SiddhiSyntaxError
from sparkstream_nb.lang import tree as t
from sparkstream_nb.lang.keywords import KEYWORDS
from sparkstream_nb.lang.parser import parse, parse_expression, parse_on_demand
from sparkstream_nb.types import Type

A, B, C = t.Variable("a"), t.Variable("b"), t.Variable("c")


def integer(value: int) -> t.Constant:
    return t.Constant(value, Type.INT)


def only_query(text: str) -> t.Query:
    """The query of `text`, read behind a definition, as an app begins with one."""
    (query,) = parse(f"define stream S (a int); {text}").elements
    assert isinstance(query, t.Query)
    return query


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("not a == b", t.Comparison("==", t.Not(A), B)),
        ("not a is null", t.Not(t.IsNull(A))),
        ("a + b * c", t.Arithmetic("+", A, t.Arithmetic("*", B, C))),
        ("a - b - c", t.Arithmetic("-", t.Arithmetic("-", A, B), C)),
        ("a < b == c", t.Comparison("==", t.Comparison("<", A, B), C)),
        ("a == b in T", t.In(t.Comparison("==", A, B), "T")),
        ("a or b and c", t.Or(A, t.And(B, C))),
        ("a and b in T", t.And(A, t.In(B, "T"))),
        ("a in T in U", t.In(t.In(A, "T"), "U")),
        ("a in T == true", t.Comparison("==", t.In(A, "T"), t.Constant(True, Type.BOOL))),
        ("a + b in T * c", t.Arithmetic("*", t.In(t.Arithmetic("+", A, B), "T"), C)),
        ("A AND NoT b", t.And(t.Variable("A"), t.Not(B))),
        ("-5", integer(-5)),
        ("- 5", integer(-5)),
        ("+5", integer(5)),
        ("a -5", t.Arithmetic("-", A, integer(5))),
        ("a - -5", t.Arithmetic("-", A, integer(-5))),
        ("a --5\n", A),
        ("5L", t.Constant(5, Type.LONG)),
        ("1.5f", t.Constant(1.5, Type.FLOAT)),
        ("1e3", t.Constant(1000.0, Type.DOUBLE)),
        (".5", t.Constant(0.5, Type.DOUBLE)),
        ("1.d", t.Constant(1.0, Type.DOUBLE)),
        ("-2147483648", integer(-(2**31))),
        ("TRUE", t.Constant(True, Type.BOOL)),
        ("null", t.Variable("null")),
        ("'a \\n b'", t.Constant("a \\n b", Type.STRING)),
        ('"it\'s"', t.Constant("it's", Type.STRING)),
        ('"""two\n"lines" """', t.Constant('two\n"lines" ', Type.STRING)),
        ("1 min 5 sec", t.TimeConstant(65_000, ((1, "min"), (5, "sec")))),
        ("1 year 2 Months", t.TimeConstant(31_536_000_000 + 2 * 2_592_000_000, ((1, "year"), (2, "Months")))),
        ("e1[0].a", t.Variable("a", t.SourceName("e1"), t.EventIndex(0))),
        ("e1[last].a", t.Variable("a", t.SourceName("e1"), t.EventIndex(0, from_last=True))),
        ("e1[last - 1].a", t.Variable("a", t.SourceName("e1"), t.EventIndex(1, from_last=True))),
        ("#S.a", t.Variable("a", t.SourceName("S", inner=True))),
        ("!S.a", t.Variable("a", t.SourceName("S", fault=True))),
        ("S#fn[0].a", t.Variable("a", t.SourceName("S"), None, "fn", t.EventIndex(0))),
        ("e1[last] is null", t.IsNull(t.StreamReference(t.SourceName("e1"), t.EventIndex(0, from_last=True)))),
        ("#S is null", t.IsNull(t.StreamReference(t.SourceName("S", inner=True)))),
        ("S.a is null", t.IsNull(t.Variable("a", t.SourceName("S")))),
        ("f() is null", t.IsNull(t.FunctionCall(None, "f"))),
        ("str:concat(a, b)", t.FunctionCall("str", "concat", (A, B))),
        ("count(*)", t.FunctionCall(None, "count", star=True)),
        ("`a b`.`select`", t.Variable("select", t.SourceName("a b"))),
        ("a /* none */ + -- to the end\n b", t.Arithmetic("+", A, B)),
        ("((a))", A),
    ],
)
def test_expressions(text: str, tree: t.Expression) -> None:
    assert parse_expression(text) == tree


@pytest.mark.parametrize("word", sorted(KEYWORDS))
def test_every_keyword_may_be_a_name(word: str) -> None:
    app = parse(
        f"define stream {word} ({word} int);"
        f"from {word}[{word} > 1]#window.length(2) select {word}, {word}.{word} as {word} group by {word} "
        f"insert into {word};"
        f"from every {word}={word} -> {word} select {word}.{word} insert into {word};"
    )
    name = t.SourceName(word)
    query, pattern = app.elements
    assert isinstance(query, t.Query)
    assert isinstance(pattern, t.Query)
    assert query.input.source == name
    assert query.select.group_by == (t.Variable(word),)
    if word not in ("true", "false"):  # those stay what they are where a value may stand
        assert query.input.handlers[0] == t.Filter(t.Comparison(">", t.Variable(word), integer(1)))
    every = t.EveryState(t.StreamState(name, word))
    assert pattern.input == t.StateStream("pattern", t.NextState(every, t.StreamState(name)))


@pytest.mark.parametrize(
    ("text", "stream"),
    [
        ("from every select a return", t.StandardStream(t.SourceName("every"))),
        (
            "from not[a > 1] return",
            t.StandardStream(t.SourceName("not"), (t.Filter(t.Comparison(">", A, integer(1))),)),
        ),
        (
            "from every #window.length(2) return",
            t.StandardStream(t.SourceName("every"), (t.Window(t.FunctionCall(None, "length", (integer(2),))),)),
        ),
        (
            "from S#window(2) return",
            t.StandardStream(t.SourceName("S"), (t.StreamFunction(t.FunctionCall(None, "window", (integer(2),))),)),
        ),
        ("from S#[a] return", t.StandardStream(t.SourceName("S"), (t.Filter(A),))),
        (
            "from S#window.ns:w(*) return",
            t.StandardStream(t.SourceName("S"), (t.Window(t.FunctionCall("ns", "w", star=True)),)),
        ),
    ],
)
def test_plain_inputs(text: str, stream: t.StandardStream) -> None:
    assert only_query(text).input == stream


def event(ref: str, source: str = "S") -> t.StreamState:
    return t.StreamState(t.SourceName(source), ref)


def without(source: str, wait: int | None = 1) -> t.AbsentState:
    time = None if wait is None else t.TimeConstant(wait * 1000, ((wait, "sec"),))
    return t.AbsentState(t.StreamState(t.SourceName(source)), time)


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("(S)", t.StreamState(t.SourceName("S"))),
        ("S within 5 sec", t.StreamState(t.SourceName("S"))),
        ("every a=S -> b=S", t.NextState(t.EveryState(event("a")), event("b"))),
        ("every (a=S -> b=S)", t.EveryState(t.NextState(event("a"), event("b")))),
        ("(every (a=S -> b=S)) -> c=S", t.NextState(t.EveryState(t.NextState(event("a"), event("b"))), event("c"))),
        ("(a=S -> b=S) -> c=S", t.NextState(event("a"), t.NextState(event("b"), event("c")))),
        ("a=S -> every b=S", t.NextState(event("a"), t.EveryState(event("b")))),
        ("a=S<2>", t.CountState(event("a"), 2, 2)),
        ("a=S<2:>", t.CountState(event("a"), 2, t.UNBOUNDED)),
        ("a=S<:3>", t.CountState(event("a"), 0, 3)),
        ("a=S and b=R", t.LogicalState("and", event("a"), event("b", "R"))),
        ("not A and b=R", t.LogicalState("and", without("A", None), event("b", "R"))),
        ("not A for 1 sec or not B for 1 sec", t.LogicalState("or", without("A"), without("B"))),
        ("every not A for 1 sec", t.EveryState(without("A"))),
        (
            "a=S -> every (not A for 1 sec -> b=S)",
            t.NextState(event("a"), t.EveryState(t.NextState(without("A"), event("b")))),
        ),
    ],
)
def test_patterns(text: str, state: t.StateElement) -> None:
    stream = only_query(f"from {text} return").input
    assert isinstance(stream, t.StateStream)
    assert (stream.kind, stream.state) == ("pattern", state)


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("a=S, b=S", t.NextState(event("a"), event("b"))),
        ("every a=S, b=S+", t.NextState(t.EveryState(event("a")), t.CountState(event("b"), 1, t.UNBOUNDED))),
        ("a=S*, b=S?", t.NextState(t.CountState(event("a"), 0, t.UNBOUNDED), t.CountState(event("b"), 0, 1))),
        ("every a=S, not B for 1 sec", t.NextState(t.EveryState(event("a")), without("B"))),
        (
            "every not B for 1 sec, a=S, b=S",
            t.NextState(t.EveryState(without("B")), t.NextState(event("a"), event("b"))),
        ),
        (  # every reaches as far as the absent chain does: seen in Siddhi's own tree
            "every a=S, not B for 1 sec, c=S, d=S",
            t.NextState(t.EveryState(t.NextState(event("a"), t.NextState(without("B"), event("c")))), event("d")),
        ),
        (
            "every a=S, (not B for 1 sec, c=S)",
            t.NextState(t.EveryState(event("a")), t.NextState(without("B"), event("c"))),
        ),
    ],
)
def test_sequences(text: str, state: t.StateElement) -> None:
    stream = only_query(f"from {text} return").input
    assert isinstance(stream, t.StateStream)
    assert (stream.kind, stream.state) == ("sequence", state)


@pytest.mark.parametrize(
    "text",
    [
        "every every a=S", "every (every a=S)", "every (a=S -> every b=S)", "a=S -> not B for 1 sec -> not C for 1 sec",
        "not A for 1 sec -> not B for 1 sec", "(not A for 1 sec) -> b=S", "not A", "a=S -> not B", "not A and not B",
        "a=S or not B", "a=S and b=S and c=S", "a=S<2> and b=S", "a=S+ -> b=S", "a=S#window.length(2) -> b=S",
        "a=S -> b=S, c=S", "(a=S -> b=S), c=S", "a=S, every b=S", "a=S, (every b=S)", "(a=S, b=S), c=S", "(a=S, b=S)",
        "every (a=S, b=S), c=S", "every (a=S), b=S", "not A for 1 sec, not B for 1 sec, c=S", "not e=S for 1 sec",
        "e=S for 1 sec", "S#window.length(1)#window.length(2)", "S#window.length(1)[a > 1] join R",
        "S unidirectional join R unidirectional", "S outer join R", "S join R per 'days'", "(from S return)[a > 1]",
    ],
)  # fmt: skip
def test_inputs_that_siddhi_has_not(text: str) -> None:
    with pytest.raises(SiddhiSyntaxError):
        only_query(f"from {text} select a insert into O")


@pytest.mark.parametrize(
    ("condition", "operand"),
    [
        ("e1 is null", t.StreamReference(t.SourceName("e1"))),
        ("R is null", t.Variable("R")),  # named e2, so its own name is out of sight
        ("e3 is null", t.Variable("e3")),
        ("e1[0] is null", t.StreamReference(t.SourceName("e1"), t.EventIndex(0))),
    ],
)
def test_is_null_asks_for_events_in_sight(condition: str, operand: t.Expression) -> None:
    query = only_query(f"from e1=S -> e2=R select a having {condition} insert into O")
    assert query.select.having == t.IsNull(operand)


def test_join() -> None:
    query = only_query(
        "from #S[a]#window.length(1) as l unidirectional left outer join A as r on l.a == r.a "
        "within '2020', '2021' per 'days' return expired events"
    )
    join = query.input
    assert isinstance(join, t.JoinStream)
    assert (join.kind, join.unidirectional, join.left.alias, join.right.alias) == ("left outer", "left", "l", "r")
    assert join.left.source == t.SourceName("S", inner=True)
    assert [type(h) for h in join.left.handlers] == [t.Filter, t.Window]
    assert [e.value for e in join.within if isinstance(e, t.Constant)] == ["2020", "2021"]
    assert join.per == t.Constant("days", Type.STRING)
    assert query.output == t.Return("expired")


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("insert into O", t.InsertInto(t.SourceName("O"))),
        ("insert events into !O", t.InsertInto(t.SourceName("O", fault=True), "current")),
        ("insert all events into #O", t.InsertInto(t.SourceName("O", inner=True), "all")),
        ("delete T", t.DeleteFrom(t.SourceName("T"))),
        ("delete T for expired events on a", t.DeleteFrom(t.SourceName("T"), "expired", A)),
        ("update T on a", t.UpdateTable(t.SourceName("T"), A)),
        ("update or insert into T set T.a = b on c", t.UpdateOrInsert(
            t.SourceName("T"), C, None, (t.SetAssignment(t.Variable("a", t.SourceName("T")), B),))),
        ("update or on a", t.UpdateTable(t.SourceName("or"), A)),
    ],
)  # fmt: skip
def test_outputs(text: str, output: t.QueryOutput) -> None:
    assert only_query(f"from S {text}").output == output


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("output every 3 events", t.OutputRate("all", events=3)),
        ("output first every 3 events", t.OutputRate("first", events=3)),
        ("output last every 2 sec", t.OutputRate("last", time=t.TimeConstant(2000, ((2, "sec"),)))),
        ("output snapshot every 2 sec", t.OutputRate("snapshot", time=t.TimeConstant(2000, ((2, "sec"),)))),
    ],
)
def test_rates(text: str, rate: t.OutputRate) -> None:
    assert only_query(f"from S select * {text} insert into O").rate == rate


def test_selection() -> None:
    query = only_query(
        "from S select a, sum(b) as s group by a, b having s > 1 order by a desc, b asc limit 2 offset 1L return"
    )
    selection = query.select
    assert [item.name for item in selection.attributes] == [None, "s"]
    assert selection.group_by == (A, B)
    assert selection.order_by == (t.OrderBy(A, descending=True), t.OrderBy(B))
    assert (selection.limit, selection.offset) == (integer(2), t.Constant(1, Type.LONG))


def test_definitions() -> None:
    app = parse("""
        @app:name('x') @app:playback
        @Async(buffer.size='8', @nested('v', "odd key"='w')) define stream S (a int, b object);
        define table T (a string);
        define window W (a int) time(1 min) output expired events;
        define trigger P at every 5 min; define trigger Q at 'start';
        define function f[javascript] return int { if (true) { return "}" } };
        define aggregation A from S[a > 1] select a, sum(a) as s group by a aggregate by a every sec ... Years;
        define aggregation B from S select * aggregate every hours, day;
    """)
    assert [(a.name, a.app) for a in app.annotations] == [("name", True), ("playback", True)]
    stream, table, window, every, start, function, by_range, by_list = app.definitions
    assert isinstance(stream, t.StreamDefinition)
    assert isinstance(table, t.TableDefinition)
    assert stream.annotations[0].get("BUFFER.SIZE") == "8"
    assert stream.annotations[0].nested[0].get(None) == "v"
    assert stream.annotations[0].nested[0].get("odd key") == "w"
    assert [(a.name, a.type) for a in stream.attributes] == [("a", Type.INT), ("b", Type.OBJECT)]
    assert isinstance(window, t.WindowDefinition)
    assert (window.window.name, window.output) == ("time", "expired")
    assert every == t.TriggerDefinition("P", every=t.TimeConstant(300_000, ((5, "min"),)))
    assert start == t.TriggerDefinition("Q", at="start")
    assert function == t.FunctionDefinition("f", "javascript", Type.INT, ' if (true) { return "}" } ')
    assert isinstance(by_range, t.AggregationDefinition)
    assert isinstance(by_list, t.AggregationDefinition)
    assert (by_range.by, by_range.durations, by_range.is_range) == (A, ("sec", "year"), True)
    assert (by_list.by, by_list.durations, by_list.is_range) == (None, ("hour", "day"), False)


def test_partition() -> None:
    app = parse(
        "define stream S (a int); @purge(enable='true') partition with (a + 1 of S, a > 1 as 'x' or a < 0 as 'y' of R) "
        "begin from S insert into #I; @info(name='q') from #I insert into O; end"
    )
    (partition,) = app.elements
    assert isinstance(partition, t.Partition)
    value, ranges = partition.keys
    assert value == t.ValuePartition(t.Arithmetic("+", A, integer(1)), "S")
    assert isinstance(ranges, t.RangePartition)
    assert [key for _, key in ranges.ranges] == ["x", "y"]
    assert partition.queries[0].output == t.InsertInto(t.SourceName("I", inner=True))
    assert partition.queries[1].annotations[0].get("name") == "q"


def test_anonymous_stream() -> None:
    query = only_query("from (from S select a return all events) select a insert into O")
    assert isinstance(query.input, t.AnonymousStream)
    assert query.input.query.output == t.Return("all")


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("from T", t.OnDemandQuery(t.StoreInput("T"), None)),
        ("from T as x on a select a;", t.OnDemandQuery(
            t.StoreInput("T", "x", A), t.Selection((t.OutputAttribute(A),)))),
        ("from T within 'a' per 'days' select *", t.OnDemandQuery(
            t.StoreInput("T", within=(t.Constant("a", Type.STRING),), per=t.Constant("days", Type.STRING)),
            t.Selection(star=True))),
        ("select a insert into T", t.OnDemandQuery(
            None, t.Selection((t.OutputAttribute(A),)), t.InsertInto(t.SourceName("T")))),
        ("delete T on a", t.OnDemandQuery(None, None, t.DeleteFrom(t.SourceName("T"), on=A))),
        ("select a update T set b = c on a", t.OnDemandQuery(None, t.Selection((t.OutputAttribute(A),)), t.UpdateTable(
            t.SourceName("T"), A, set=(t.SetAssignment(B, C),)))),
        ("select a update or insert into T on a", t.OnDemandQuery(
            None, t.Selection((t.OutputAttribute(A),)), t.UpdateOrInsert(t.SourceName("T"), A))),
    ],
)  # fmt: skip
def test_on_demand(text: str, tree: t.OnDemandQuery) -> None:
    assert parse_on_demand(text) == tree


def test_spans_point_into_the_text() -> None:
    text = "define stream S (a int);\nfrom S[a > 10]\nselect a insert into Out;"
    (query,) = parse(text).elements
    assert isinstance(query, t.Query)
    (handler,) = query.input.handlers
    assert isinstance(handler, t.Filter)
    span = handler.condition.span
    assert (text[span.start : span.end], span.line, span.column) == ("a > 10", 2, 7)
    target = query.output.target.span
    assert (text[target.start : target.end], target.line, target.column) == ("Out", 3, 21)


def test_variables_are_filled_in_and_spans_stay_true() -> None:
    text = "define stream S (a string);\nfrom S[a == '${X}'] select ${Y}, b insert into O;"
    (query,) = parse(text, {"X": "long value", "Y": "a"}).elements
    assert isinstance(query, t.Query)
    assert query.input.handlers[0] == t.Filter(t.Comparison("==", A, t.Constant("long value", Type.STRING)))
    span = query.select.attributes[1].span
    assert text[span.start : span.end] == "b"
    span = query.select.attributes[0].span
    assert text[span.start : span.end] == "${Y}"


def test_function_bodies_hold_what_looks_like_siddhiql() -> None:
    body = " /* } */ x--; // don't }\n return '}' + \"{\"; "
    app = parse(f"define function f[js] return int {{{body}}}; define stream S (a int);")
    assert app.definitions[0] == t.FunctionDefinition("f", "js", Type.INT, body)


def test_fifty_lines_parse_in_fifty_milliseconds() -> None:
    query = (
        "@info(name='q{i}') from every e1=S[a > 1] -> e2=S[a > e1.a and b != 'x']<2:5> within 5 min\n"
        "select e1.a as a, e2[last].b as b, str:concat(e1.b, 'x') as c insert into O{i};\n"
    )
    text = "define stream S (a int, b string);\n" + "".join(query.format(i=i) for i in range(25))
    parse(text)
    best = counting = 60.0
    for _ in range(40):
        best, counting = min(best, _seconds(lambda: parse(text))), min(counting, _seconds(_counting))
        # Where others use the machine too, all takes longer: then the measure is a loop that took 12 ms where it was
        # alone.
        if best < max(0.05, 4.2 * counting):
            return
    raise AssertionError(f"{best * 1000:.1f} ms, counting {counting * 1000:.1f} ms")


def _counting() -> None:
    n = 0
    for i in range(300_000):
        n += i & 7


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start
