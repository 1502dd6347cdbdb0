"""What a person reads when a text does not parse: message, place, way out."""

from __future__ import annotations

import pytest

from sparkstream_nb.errors import SiddhiSyntaxError
from sparkstream_nb.lang.fixits import FIXITS
from sparkstream_nb.lang.parser import parse, parse_expression, parse_on_demand
from sparkstream_nb.lang.tree import Variable
from sparkstream_nb.masking import mask_passwords
from sparkstream_nb.plan import compile_app

S = "define stream S (k string, v int);\n"


def refused(text: str, how=parse) -> SiddhiSyntaxError:
    with pytest.raises(SiddhiSyntaxError) as caught:
        how(text)
    assert caught.value.source == mask_passwords(text)
    return caught.value


def test_an_error_shows_the_place_the_line_and_the_way_out() -> None:
    assert str(refused(S + "form S select k insert into O;")) == (
        "line 2, column 1: found 'form', expected a definition, a query or the end of the text\n"
        "   2 | form S select k insert into O;\n"
        "     | ^^^^\n"
        "Did you mean 'from'?"
    )


# text, line, column (from 1), part of the message, part of the hint
SYNTAX = [
    ("define stream A (Station Name string);", 1, 26, "name is one word", "backticks: `Station Name` string. Or"),
    ("define stream A (a int, Dauer (min) int);", 1, 31, "name is one word", '--map dauer="Dauer (min)"'),
    ("define stream A (Fahrrad-Nr string);", 1, 25, "name is one word", "`Fahrrad-Nr` string"),
    ("define stream A (Preis € double);", 1, 24, "name is one word", "`Preis €`"),
    (S + "from S select case when v > 5 then 1 else 2 end as c insert into O;", 2, 15, "'case when'", "ifThenElse("),
    (S + "from S select cast(v as string) as c insert into O;", 2, 22, "'cast(x as type)'", "convert(x, 'string'), or"),
    (S + "from S select cast(v as integer) as c insert into O;", 2, 22, "'cast(x as type)'", "convert(x, 'int')"),
    (S + "from S select k || k as c insert into O;", 2, 17, "'|' is not SiddhiQL", "str:concat(a, b)"),
    (S + "from S[k IS NOT NULL] select k insert into O;", 2, 10, "'is not null' is not", "Write 'not k is null'."),
    (S + "from S[k like 'a%'] select k insert into O;", 2, 10, "'like' is not SiddhiQL", "str:contains(text, 'part')"),
    (S + "from S[k not like 'a%'] select k insert into O;", 2, 10, "'not like' is not", "Put not (...) around it."),
    (S + "from S[v in (1, 2)] select k insert into O;", 2, 10, "'in (...)' is not SiddhiQL", "'v == a or v == b'"),
    (S + "from S[v between 1 and 2] select k insert into O;", 2, 10, "'between' is not", "'v >= a and v <= b'"),
    (S + "from S select distinct k insert into O;", 2, 15, "'distinct' is not", "'select k group by k'"),
    (S + "from S select count(distinct k) as n insert into O;", 2, 21, "'distinct' is not", "distinctCount(k)"),
    (S + "from S select k partition by k insert into O;", 2, 17, "'partition by'", "partition with (k of S)"),
    (S + "from S select sum(v) over (partition by k) as s insert into O;", 2, 22, "'over'", "#window.length(10)"),
    ("", 1, 1, "found the end of the text, expected a definition or a query", None),
    ("@app:name('x')", 1, 15, "found the end of the text", None),
    (S + "from S select k insert into O; define stream Z (a int);", 2, 32, "cannot follow a query", "Move it"),
    ("from S select k insert into O;", 1, 1, "begins with a definition", "define stream"),
    ("@x @app:name('y') define stream S (a int);", 1, 4, "at the start of the app", None),
    ("define stream S (a int; from S select a insert into O;", 1, 23, "found ';', expected ',' or ')'", None),
    ("define stream S ();", 1, 18, "found ')', expected a name", None),
    ("define stream S (a integer);", 1, 20, "expected a type (string, int,", "Did you mean 'int'?"),
    ("define stream S (a boolean);", 1, 20, "expected a type", "Did you mean 'bool'?"),
    ("define stream S (a int, a string);", 1, 25, "'a' is already defined", None),
    ("define stream #S (a int);", 1, 15, "an inner stream cannot be defined", "Leave out '#'"),
    ("define steam S (a int);", 1, 8, "expected 'aggregation', 'function', 'stream'", "Did you mean 'stream'?"),
    ("@x define trigger T at 'start';", 1, 1, "a trigger takes no annotations", None),
    ("define trigger select at 'start';", 1, 16, "found 'select', expected a name", None),
    ("@PrimaryKey() define table T (a int);", 1, 12, "an annotation with empty parentheses", "Leave them out"),
    ("@x(a=5) define stream S (a int);", 1, 6, "found '5', expected a quoted string", None),
    (S + "from S selct k insert into O;", 2, 8, "found 'selct', expected", "Did you mean 'select'?"),
    (S + "from S select k;", 2, 16, "expected ',', an operator, 'insert into', 'update' or 'delete'", None),
    (S + "from S select v + 1 insert into O;", 2, 21, "found 'insert', expected 'as' or an operator", None),
    (S + "from S select k insert into O$;", 2, 30, "found '$', expected ';'", None),
    (S + "from S#window select k insert into O;", 2, 15, "found 'select', expected '.'", None),
    (S + "from S#window.time(5 sec 1 min) select k insert into O;", 2, 28, "'min' cannot follow 'sec'", "years down"),
    (S + "from S select 99999999999 as n insert into O;", 2, 15, "does not fit in an int", "123L"),
    (S + "from S select 99999999999999999999L as n insert into O;", 2, 15, "does not fit in a long", None),
    (S + "from S select k limit 1 + 1 insert into O;", 2, 23, "'limit' takes an integer constant", None),
    (S + "from S select k offset 'x' insert into O;", 2, 24, "'offset' takes an integer constant", None),
    (S + "from S select k, v update T;", 2, 28, "expected 'for', 'on' or 'set'", None),
    (S + "from S select k, v update #T on k;", 2, 27, "'update' works on tables", None),
    (S + "from S join S outer join S select k insert into O;", 2, 15, "found 'outer', expected", None),
    (S + "from S outer join S as t select k insert into O;", 2, 8, "needs its side", "left outer join"),
    (S + "partition with (k of S) begin end;", 2, 31, "found 'end', expected a query", None),
    (
        S + "partition with (k of S) begin from S insert into O;",
        2,
        52,
        "the end of the text, expected a query or 'end'",
        None,
    ),
    (S + "from every every a=S -> b=S insert into O;", 2, 18, "found 'a'", "'every' is read as a name here"),
    (S + "from every (every a=S) insert into O;", 2, 6, "cannot contain another", None),
    (S + "from a=S -> b=S, c=S insert into O;", 2, 16, "',' in a chain that began with '->'", "sequence by ','"),
    (S + "from a=S+ -> b=S insert into O;", 2, 6, "'+' counts events in a sequence only", "<1:>"),
    (S + "from a=S and b=S and c=S insert into O;", 2, 18, "joins exactly two events", None),
    (S + "from a=S -> not S insert into O;", 2, 13, "needs a waiting time", "not S for 5 sec"),
    (S + "from a=S, every b=S insert into O;", 2, 11, "only before the first event", None),
    (S + "from S#window.length(1)#window.length(2) insert into O;", 2, 24, "takes only one window", None),
    (S + "from a=S#window.length(1) -> b=S insert into O;", 2, 9, "takes no window", None),
    (
        S + "from S#window.length(1)[v > 1] as x join S as y insert into O;",
        2,
        24,
        "nothing follows a stream's window",
        None,
    ),
    (S + "define aggregation A from S select k aggregate every week;", 2, 54, "cannot aggregate per 'week'", None),
    (S + "define aggregation A from S#window.length(1) select k aggregate every sec;", 2, 28, "takes no window", None),
]


@pytest.mark.parametrize(("text", "line", "column", "message", "hint"), SYNTAX)
def test_syntax_errors(text: str, line: int, column: int, message: str, hint: str | None) -> None:
    error = refused(text)
    assert message in error.message
    assert (error.span.line, error.span.column + 1) == (line, column)
    if hint is not None:
        assert hint in (error.hint or "")


# What people paste from the manuals, and what they are told to type.
PASTED = {
    "smart quotes": ("@info(name=‘query-1') define stream S (a int);", 1, 12, "typographic quote", "straight"),
    "stray comma": (
        "define stream S (quantity long, ;timestamp long);",
        1,
        33,
        "a ';' in the list",
        "',' only",
    ),
    "driver without its key": (
        '@store(type=\'rdbms\', password="root" ,"com.mysql.jdbc.Driver")\ndefine table T (a int);',
        1,
        39,
        "this driver has no key",
        'jdbc.driver.name="com.mysql.jdbc.Driver"',
    ),
    "missing ; after every": (
        S + "define aggregation A from S select sum(v) as s aggregate every sec ... year\nfrom S insert into O;",
        3,
        1,
        "';' is missing before 'from'",
        "with ';'",
    ),
    "missing ; after a query": (
        S + "from S insert into O\n@info(name='q') from S insert into P;",
        3,
        1,
        "';' is missing before '@'",
        "with ';'",
    ),
    "truncated annotation": (
        "@Sink(type='x', @distribution(strategy='partitioned', partitionKey='k',\ndefine stream S (a int);",
        2,
        8,
        "an annotation above is not closed",
        "cut off",
    ),
    "annotation to the end": ("@sink(type='x', ", 1, 16, "an annotation above is not closed", "cut off"),
    "doubled commas": ("define stream S (a string,, b int);", 1, 27, "two commas in a row", "one out"),
    "@distribution without a comma": (
        "@sink(type='x', @map(type='json') @distribution(strategy='roundRobin')) define stream S (a int);",
        1,
        35,
        "',' is missing before '@distribution'",
        "Put ','",
    ),
    "hour and minutes": (
        S + "from S#window.time(1 hour and 25 minutes) insert into O;",
        2,
        20,
        "not times",
        "1 hour 25 minutes",
    ),
    "typographic arrow": (S + "from every a=S → b=S insert into O;", 2, 16, "typographic character", "'->'"),
}
PASTED_ON_DEMAND = {
    "; before select": ("from T on roomNo >= 10; select roomNo", 1, 23, "ends the query too early", "Leave it out"),
    "per without quotes": (
        "from T within '2020-**-** **:**:**' per days select k",
        1,
        41,
        "needs quotes",
        "per 'days'",
    ),
}


@pytest.mark.parametrize(("text", "line", "column", "message", "hint"), PASTED.values(), ids=PASTED)
def test_pasted_apps(text: str, line: int, column: int, message: str, hint: str) -> None:
    error = refused(text)
    assert (error.span.line, error.span.column + 1) == (line, column)
    assert message in error.message
    assert hint in (error.hint or "")


@pytest.mark.parametrize(("text", "line", "column", "message", "hint"), PASTED_ON_DEMAND.values(), ids=PASTED_ON_DEMAND)
def test_pasted_on_demand_queries(text: str, line: int, column: int, message: str, hint: str) -> None:
    error = refused(text, parse_on_demand)
    assert (error.span.line, error.span.column + 1) == (line, column)
    assert message in error.message
    assert hint in (error.hint or "")


# Habits of other languages.
FOREIGN = [
    ("v = 3", "'=' does not compare", "'=='"),
    ("v > 1 && v < 3", "'&' is not SiddhiQL", "'and'"),
    ("v > 1 || v < 3", "'|' is not SiddhiQL", "'or'"),
    ("!(v > 1)", "'!' does not negate", "'not'"),
    ("v <> 1", "'<>' is not SiddhiQL", "'!='"),
    ("-v", "only before a number", "0 - v"),
    ("'x", "is not closed on its line", "Close it with '"),
    ("'say \"x\"'", "is not closed on its line", '"""'),
    ("v\u00a0> 1", "U+00A0", "plain space"),
    ("v > 5days", "'5d' is read as a separate number", "'5 days'"),
    ("v // old", "does not start a comment", "--"),
]


@pytest.mark.parametrize(("text", "message", "hint"), FOREIGN)
def test_habits_of_other_languages(text: str, message: str, hint: str) -> None:
    error = refused(text, parse_expression)
    assert message in error.message
    assert hint in (error.hint or "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (S + "from S select k, insert into O;", "'insert' is read as a name here"),
        (S + "from S select v + 1 as insert into O;", "'insert' is read as the name after 'as'"),
        (S + "from S where v > 1 insert into O;", "'where' is not SiddhiQL"),
        ("define function f[js] return int { return 1; ;", "this body is not closed"),
    ],
)
def test_other_advice(text: str, message: str) -> None:
    assert message in refused(text).message


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("SELECT k FROM S;", "a query begins with the stream", "Write 'from STREAM select ... insert into OUTPUT;'."),
        (S + "select v from S", "a query begins with the stream", "from STREAM select"),
        ("INSERT INTO O SELECT v FROM S;", "a query begins with the stream", "insert into OUTPUT"),
        ("CREATE STREAM S (v INT);", "'create' is not SiddhiQL", "Write 'define stream NAME"),
        ("WITH a AS (SELECT 1) SELECT * FROM a", "'with' is not SiddhiQL", "a second query read it"),
        (S + "from S#window.time(10 m) select v insert into O;", "'m' is not a unit of time", "Write '10 min'."),
        (S + "from S#window.time(10s) select v insert into O;", "'s' is not a unit of time", "Write '10 sec'."),
        ("import pandas as pd", "this is Python, not SiddhiQL", "without %%siddhi"),
        ("apps/trades.siddhi", "this is the name of a file, not its text", "pathlib.Path('app.siddhi').read_text()"),
        ("/trades.siddhi", "this is the name of a file, not its text", "pathlib.Path('app.siddhi').read_text()"),
        ("df = pd.read_csv('x')", "this is Python, not SiddhiQL", "without %%siddhi"),
        ("app.send('S', [1])", "this is Python, not SiddhiQL", "without %%siddhi"),
        ("@Plan:name('x') define stream S (v int);", "'@Plan:name' is Siddhi 3", "Write '@app:name(...)'."),
        ("@Plan:trace('true') define stream S (v int);", "'@Plan:trace' is Siddhi 3", "Leave it out."),
        ("define partition p by S.k;", "'define partition' is of former versions", "partition with (k of S) begin"),
        (S + "from S select k insert expired-events into O;", "'expired-events' is of", "'insert expired events into'"),
        (S + "from S select k insert O;", "'into' is missing behind 'insert'", "'insert into O'"),
        (S + "from S select k insert into O for all-events;", "'for ... events' behind", "'insert all events into O'"),
        (S + "from S select k insert into O partition by p;", "'partition by' is no part", "partition with (p of S)"),
        (S + "from S insert into O select k;", "'select' stands before", "'select ... insert into O;'"),
        (S + "%siddhi feed T.S frame", "a notebook's command", "a cell of its own, without %%siddhi"),
        (S + "from S#window.time(interval '10' minute) select v insert into O;", "'interval' is", "Write '10 min'."),
        (S + "from a=S -> b=S within interval 5 second select a.k insert into O;", "'interval' is", "Write '5 sec'."),
        (S + "from S#window.time(500 ms) select v insert into O;", "'ms' is not a unit", "Write '500 millisec'."),
        (
            S + "from S select k, sum(v) as s group by tumble(v, 1) insert into O;",
            "'tumble(...)' is no part of 'group by'",
            "from S#window.timeBatch(1 min) select ... group by ...",
        ),
        (
            S + "from S select k, sum(v) as s group by S.k, hop(v, 1, 2) insert into O;",
            "'hop(...)' is no part",
            "from S#window.time(1 min)",
        ),
        (
            S + "from S select sum(v) as s group by k, str:lower(k) insert into O;",
            "'group by' takes attributes only",
            "from S select *, str:lower(...) as x",
        ),
        (
            S + "from S select sum(v) as s group by lower(k) insert into O;",
            "'group by' takes attributes only",
            "from S select *, lower(...) as x insert into T;",
        ),
        (S + "from S as s select s.k insert into O;", "only a join has names for its streams", "Leave 'as s' out."),
        (S + "from S s select s.k insert into O;", "only a join has names for its streams", "Leave 's' out."),
        (
            S + "from S.win:time(10 sec) select k insert into O;",
            "behind '#window.'",
            "Write 'from S#window.time(...)'.",
        ),
        (S + "from S.window(length(5)) select k insert into O;", "behind '#window.'", "from S#window.length(...)"),
    ],
)
def test_texts_of_other_systems(text: str, message: str, hint: str) -> None:
    error = refused(text)
    assert message in error.message
    assert hint in (error.hint or "")


@pytest.mark.parametrize(
    "pattern",
    [
        "every (a=S or b=S) and c=S",
        "a=S and b=S and c=S",
        "a=S -> b=S[v > 1 and v < 5] or c=S or d=S",
        "(a=S and b=S or c=S)",
    ],
)
def test_a_third_event_of_a_logical_state(pattern: str) -> None:
    error = refused(S + f"from {pattern} select a.v as v insert into O;")
    assert error.message.startswith("a logical state joins exactly two events, and this ")
    assert error.hint is not None
    assert "insert into AB" in error.hint
    assert error.span.line == 2


def test_an_and_of_two_states_that_is_no_third() -> None:
    error = refused(S + "from a=S[v > 1 and v < 5] b=S and select a.v as v insert into O;")
    assert "exactly two" not in error.message


def test_fixits_have_names_of_their_own() -> None:
    assert len({name for name, _ in FIXITS}) == len(FIXITS)


def test_an_unknown_variable_is_named_with_its_place() -> None:
    error = refused(
        "define stream S (a int);\nfrom S[a > ${LIMIT}] insert into O;", lambda t: parse(t, {"LIMITS": "5"})
    )
    assert (error.span.line, error.span.column + 1) == (2, 12)
    assert error.message == "no value is given for '${LIMIT}'"
    assert error.hint == "Did you mean 'LIMITS'?"


def test_the_environment_is_never_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "1")
    assert "SECRET" in refused("define stream S (a int); from S[a > ${SECRET}] insert into O;").message


def test_of_a_long_line_the_part_around_the_error_is_shown() -> None:
    app = "define stream S (k string, v int); from S select k insert into O; " * 3
    app += "from S selekt k insert into P; " * 4
    shown, carets = str(refused(app)).splitlines()[1:3]
    assert len(shown) <= 120
    assert shown[carets.index("^") :].startswith("selekt")
    assert shown.removeprefix("   1 | ").startswith("… ")
    assert shown.endswith(" …")


def test_values_of_variables_stay_out_of_messages() -> None:
    error = refused("@x(a=${PASSWORD}) define stream S (a int);", lambda t: parse(t, {"PASSWORD": "hunter2"}))
    assert "hunter2" not in str(error)
    assert "'${PASSWORD}'" in error.message


def test_deep_nesting_is_an_error_of_the_text() -> None:
    assert "nested too deeply" in refused("not " * 5000 + "a", parse_expression).message
    assert parse_expression("(" * 5000 + "a" + ")" * 5000) == Variable("a")


@pytest.mark.parametrize("text", ["SELECT * FROM T", "select k, v from T where v > 1"])
def test_sql_on_demand(text: str) -> None:
    """It was "found 'FROM', expected 'group', 'having', ...", where a cell had the right answer."""
    error = refused(text, parse_on_demand)
    assert error.message == "a query begins with the store that it reads"
    assert error.hint == "Write 'from T select ...', and a condition between the two: 'on ...'."


def test_the_ways_out_are_siddhiql() -> None:
    for expression in (
        "ifThenElse(v > 5, 1, 2)", "convert(v, 'string')", "str:concat(k, k)", "not k is null", "v >= 1 and v <= 2",
        "str:contains(k, 'part')", "regex:matches('pattern', k)", "v == 1 or v == 2", "distinctCount(k)", "avg(v)",
        "time:extract(eventTimestamp(), 'HOUR')", "time:extract(eventTimestamp(), 'SECOND')", "coalesce(v, 1)",
    ):  # fmt: skip
        compile_app(S + f"from S select {expression} as c insert into O;")
    compile_app("define stream S (`Station Name` string); from S select `Station Name` insert into O;")
