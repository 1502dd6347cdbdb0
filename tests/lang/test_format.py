"""Formatting: every app means what it meant and keeps its comments; a second time changes nothing."""

from __future__ import annotations

import random
import re
from functools import cache

import pytest

from profiles import a_third
from sparkstream_nb.errors import SiddhiSyntaxError
from sparkstream_nb.lang import line_breaking as layout
from sparkstream_nb.lang.format import format_text, read_tokens
from sparkstream_nb.lang.parser import parse

from .test_cases import texts_of_cases

COMMENT = re.compile(r"""(--[^\r\n]*|/\*(?s:.*?)(?:\*/|\Z))|\"\"\"(?s:.*?)\"\"\"|'[^'\n]*'|"[^"\n]*\"""")


def comments(text: str) -> list[str]:
    return [m[1].rstrip() for m in COMMENT.finditer(text) if m[1]]


@cache
def texts() -> list[str]:
    """The distinct apps that the parser takes."""
    out = []
    apps, _ = texts_of_cases()
    for text in sorted({text for _, text, refused in apps if not refused}):
        try:
            parse(text)
        except SiddhiSyntaxError:
            continue
        out.append(text)
    return out


def formatted(text: str) -> str:
    """The formatted text, of which all is as it should be."""
    once = format_text(text)
    assert parse(once) == parse(text), once
    assert comments(once) == comments(text), once
    assert format_text(once) == once
    assert all(line == line.rstrip() for line in once.splitlines() if "{" not in text and '"""' not in text)
    return once


@pytest.mark.parametrize("part", a_third(range(3)))
def test_every_app_of_the_cases(part: int) -> None:
    assert len(texts()) > 500
    for text in texts()[part::3]:
        formatted(text)


NOTES = (" -- c%d\n", "\n-- o%d\n", " /* b%d */ ", "\n/* n%d */ ", "/* m%d\n x */", "/*e%d*/\n", "\n\n-- p%d\n\n")


@pytest.mark.parametrize("width", [15, 60])
def test_comments_anywhere_and_short_lines(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "WIDTH", width)
    some = random.Random(width)
    for text in some.sample(texts(), 120):
        starts = [t.start_pos or 0 for t in read_tokens(text)]
        noted = text
        for place in sorted(some.sample(starts, min(len(starts), 5)), reverse=True):
            noted = noted[:place] + some.choice(NOTES) % place + noted[place:]
        formatted(noted)


WRITTEN = """-- All trades.

@app:name('Trades')   @app:description("x")
@source(type='inMemory', topic='a.b', @map(type='passThrough'))
define stream TradeStream (symbol string,price double,quantity long,timestamp long); -- trades
/* a table */ @PrimaryKey('symbol') define table T(symbol string, price double);
define function f[javascript] return int { var x = 1;  -- not a comment
   return x; };
define aggregation A from TradeStream[price > -1.0 and not(symbol is null)] select symbol, avg(price) as avgPrice
group by symbol aggregate by timestamp every sec ... year;
@info(name='rise')
from every e1=TradeStream[price>10.0]<2:5> -> e2=TradeStream[e2.price > e1[last].price + 10 and
e2.symbol == e1[0].symbol and
e2.quantity > 100L or e2.quantity < 5L and e1[last-1].price > 7.0] -> not TradeStream for 5 sec within 1 min
select e1[0].symbol as symbol, e2.price as price,   -- the price
 ifThenElse(e2.price > 10.0, 'a very long text it is', 'another very long text') as t1, count(*) as n
having n == 1 output last every 5 sec insert all events into Rises;
from TradeStream#window.length(5) as t join T as u on t.symbol == u.symbol select t.symbol insert into J;
from every e1=TradeStream, e2=TradeStream*, e3=#X select e1.symbol insert into Q;
partition with (symbol of TradeStream, price<5.0 as 'low' of TradeStream) begin
from TradeStream#log('x') select symbol insert into #I -- inner
;
-- own
from #I select symbol update or insert into T set T.price = ${FACTOR} on T.symbol == symbol end;
from TradeStream#window.time(${N} sec)[price > ${MIN}] select * limit ${LIMIT} insert into ${OUT}"""
FORMATTED = """-- All trades.

@app:name('Trades')
@app:description("x")

@source(type='inMemory', topic='a.b', @map(type='passThrough'))
define stream TradeStream (symbol string, price double, quantity long, timestamp long); -- trades

/* a table */
@PrimaryKey('symbol')
define table T (symbol string, price double);

define function f[javascript] return int { var x = 1;  -- not a comment
   return x; };

define aggregation A
from TradeStream[price > -1.0 and not (symbol is null)]
select symbol, avg(price) as avgPrice
group by symbol
aggregate by timestamp every sec ... year;

@info(name='rise')
from every e1=TradeStream[price > 10.0]<2:5>
    -> e2=TradeStream[
        e2.price > e1[last].price + 10 and e2.symbol == e1[0].symbol and e2.quantity > 100L
        or e2.quantity < 5L and e1[last - 1].price > 7.0
    ]
    -> not TradeStream for 5 sec
    within 1 min
select
    e1[0].symbol as symbol,
    e2.price as price, -- the price
    ifThenElse(e2.price > 10.0, 'a very long text it is', 'another very long text') as t1,
    count(*) as n
having n == 1
output last every 5 sec
insert all events into Rises;

from TradeStream#window.length(5) as t join T as u on t.symbol == u.symbol
select t.symbol
insert into J;

from every e1=TradeStream, e2=TradeStream*, e3=#X
select e1.symbol
insert into Q;

partition with (symbol of TradeStream, price < 5.0 as 'low' of TradeStream)
begin
    from TradeStream#log('x')
    select symbol
    insert into #I; -- inner

    -- own
    from #I
    select symbol
    update or insert into T set T.price = ${FACTOR} on T.symbol == symbol;
end;

from TradeStream#window.time(${N} sec)[price > ${MIN}]
select *
limit ${LIMIT}
insert into ${OUT};
"""


def test_how_it_looks() -> None:
    assert format_text(WRITTEN) == FORMATTED
    assert format_text(FORMATTED) == FORMATTED
    assert comments(FORMATTED) == comments(WRITTEN)


def test_values_of_variables_do_not_matter() -> None:
    values = {"FACTOR": "2", "N": "5", "MIN": "1.0", "LIMIT": "3", "OUT": "O"}
    assert parse(FORMATTED, values) == parse(WRITTEN, values)
    odd = "define stream ${A}(a ${BB});@x(y='${C}')from ${A}[b==${D}]select ${D} as d,${E} as e insert into O -- ${F}\n"
    assert format_text(odd) == (
        "define stream ${A} (a ${BB});\n\n@x(y='${C}')\nfrom ${A}[b == ${D}]\nselect ${D} as d, ${E} as e\n"
        "insert into O; -- ${F}\n"
    )
    with pytest.raises(SiddhiSyntaxError, match=r"found '\$\{UNTIL\}'"):
        format_text("define stream S (a int); from S select a ${UNTIL} into O;")


def test_a_wrong_text_is_an_error_with_its_place() -> None:
    with pytest.raises(SiddhiSyntaxError, match="line 2, column 1") as raised:
        format_text("define stream S (a int);\nfr S select a insert into O;")
    assert raised.value.source is not None
