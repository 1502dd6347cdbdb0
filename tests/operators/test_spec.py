"""What `siddhi(...)` refuses before a query starts, with its message; and what it chooses by default."""

from __future__ import annotations

from typing import Any

import pytest

from sparkstream_nb.errors import Misuse, SiddhiError, SparkStreamError
from sparkstream_nb.runners.operator.operator_spec import InputFrame, OperatorRequest, OperatorSpec, plan_operator

COLUMNS = {"at": "timestamp", "card": "string", "amount": "double"}
SPREES = """
    from every a=Payments[amount > 300] -> b=Payments[card == a.card and amount > a.amount] within 10 min
    select a.card as card, a.amount as first, b.amount as then insert into Sprees;
"""


def plan(text: str = SPREES, **given: Any) -> OperatorSpec:
    frame = {"columns": COLUMNS, "time": "at", "key": None, "streaming": False, "watermark": None}
    own = {k: given.pop(k, v) for k, v in frame.items()}
    return plan_operator("id", text, [InputFrame("Payments", **own)], OperatorRequest(**given))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"time": "when"}, "time: the frame of 'Payments' has no column 'when'"),
        ({"time": "card"}, "time: column 'card' of 'Payments' is string. An event time is a timestamp, a date, or"),
        ({"time": "card"}, "milliseconds: frame.withColumn('card', to_timestamp('card'))"),
        ({"key": "crad"}, "key: the frame of 'Payments' has no column 'crad'. Did you mean 'card'?"),
        (
            {"columns": {**COLUMNS, "tags": "array<string>"}},
            "Payments: column 'tags' is array<string>, which SiddhiQL has no type for. Leave it out "
            "(frame.drop('tags')) or convert it: frame.withColumn('tags', frame['tags'].cast('string'))",
        ),
        (
            {"columns": {**COLUMNS, "price": "decimal(10,2)"}},
            "frame.withColumn('price', frame['price'].cast('double'))",
        ),
        ({"columns": {**COLUMNS, "a`b": "int"}}, "SiddhiQL cannot express the column name 'a`b'"),
        (
            {"streaming": True},
            "'Payments' has no watermark, and its rows must be in the order of 'at'. Say how late they may be: "
            "delay='10 seconds', or frame.withWatermark(...). Or take them as they come: order='arrival'",
        ),
        (
            {"columns": {**COLUMNS, "paid": "timestamp"}, "streaming": True, "watermark": "paid"},
            "the watermark of 'Payments' is on column 'paid', and its rows are ordered by 'at'. Use one column",
        ),
        (
            {"streaming": True, "watermark": "at", "delay": "1 second"},
            "delay: 'Payments' has a watermark already, on 'at'. Leave delay out",
        ),
        (
            {"text": "define stream Other (a int); from Other select a insert into A;"},
            "no frame feeds stream 'Other', which the text reads. Frames feed 'Payments'",
        ),
        ({"order": "tiem"}, "order: 'tiem' is neither 'time' nor 'arrival'. Did you mean 'time'?"),
        ({"nodes": 4}, "nodes: several nodes need a key, by which rows are divided among them: key='card'"),
        ({"nodes": 0, "key": "card"}, "nodes: 0 is not a number from 1 to 10,000"),
        (
            {"outputs": ("Spree",)},
            "output: no query writes to 'Spree'. The text writes 'Sprees'. Did you mean 'Sprees'?",
        ),
        ({"outputs": ("Payments",)}, "output: 'Payments' is an input, and no query writes to it"),
        (
            {"text": "from Payments#window.length(5) select sum(amount) as total insert into Sums;", "key": "card"},
            "key: with rows divided by card, query 'query1' does not give what one node would",
        ),
        (
            {"text": "from Payments#window.length(5) select sum(amount) as total insert into Sums;", "key": "card"},
            ". No other key would do: leave the key out (one node), or accept it: unsafe=True",
        ),
        ({"key": "amount"}, "Choose another key (card), leave the key out (one node), or accept it: unsafe=True"),
        (
            {"text": "from Payments select card insert into A; from Payments select amount insert into B;"},
            "output: which one? The text writes 'A', 'B': give output='A', or several in a list",
        ),
        (
            {"text": "from Payments select card as _node insert into A;"},
            "output: 'A' has an attribute '_node', which siddhi() adds. Rename it: as ...",
        ),
        (
            {"text": "define stream Payments (card string, amount int); from Payments select card insert into A;"},
            "'Payments' defines 'amount int', and the frame's column is double. Change the definition, or convert",
        ),
        (
            {"text": "define stream Payments (card string, bank string); from Payments select card insert into A;"},
            "'Payments' has the attribute 'bank', and its frame has no such column",
        ),
        (
            {"text": "@sink(type='log') define stream A (card string); from Payments select card insert into A;"},
            "stream 'A' has a @sink(type='log'): siddhi() takes its events from frames, and gives frames",
        ),
        (
            {
                "text": "@store(type='rdbms', jdbc.url='jdbc:sqlite:x') define table T (card string);"
                "from Payments select card insert into T; from Payments select card insert into A;"
            },
            "table 'T' has a @store(type='rdbms')",
        ),
        (
            {"text": "define stream Other (a int); from Other select a insert into Payments;"},
            "the query does not fit stream 'Payments': it has 3 attributes, the query gives 1",
        ),
    ],
)
def test_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(SparkStreamError) as raised:
        plan(**given)
    assert message in str(raised.value)


def test_a_wrong_text_is_shown_with_its_place() -> None:
    with pytest.raises(SiddhiError, match="line 1, column 28") as raised:
        plan("from Payments select card, amuont insert into A;")
    assert "Did you mean 'amount'?" in str(raised.value)


def test_scripts_run_only_where_they_are_allowed() -> None:
    text = """
        define function twice[javascript] return double { return data[0] * 2; };
        from Payments select twice(amount) as t insert into A;
    """
    with pytest.raises(SiddhiError, match="script"):
        plan(text)
    assert plan(text, allow_scripts=True).scripts


def test_key_that_suits_is_taken_and_divides_among_eight_nodes() -> None:
    assert plan(key="card").nodes == 8
    assert plan().nodes == 1


def test_streams_may_have_keys_of_other_names() -> None:
    text = "from every a=Payments -> b=Blocks[holder == a.card] select a.card as card insert into Both;"
    blocks = {"at": "timestamp", "holder": "string"}

    def both(key: str) -> OperatorSpec:
        frames = [InputFrame("Payments", COLUMNS, "at", "card"), InputFrame("Blocks", blocks, "at", key)]
        return plan_operator("id", text, frames, OperatorRequest())

    assert both("holder").nodes == 8
    with pytest.raises(Misuse, match="does not give what one node would"):
        both("at")


def test_names_that_are_no_words_are_quoted_in_the_text() -> None:
    spec = plan("from Payments select `card no` as card insert into A;", columns={"at": "bigint", "card no": "string"})
    assert [a.name for a in spec.inputs[0].schema] == ["at", "card no"]


def test_only_columns_that_the_text_reads_are_read() -> None:
    spec = plan("from Payments[amount > 1] select card insert into A;", columns={**COLUMNS, "note": "string"})
    assert spec.needed_attributes["Payments"] == {1, 2}
    whole = plan("from Payments[amount > 1] select card insert into A;", all_attributes=True)
    assert whole.needed_attributes["Payments"] == {0, 1, 2}


def test_wider_columns_are_taken() -> None:
    spec = plan(
        "define stream Payments (card string, amount double, n long); from Payments select card, n insert into A;",
        columns={"at": "date", "card": "varchar(20)", "amount": "float", "n": "smallint"},
    )
    assert str(spec.inputs[0].schema) == "(card string, amount double, n long)"


SUMS = """
    define aggregation Sums from Payments select card, sum(amount) as total, count() as n
    group by card aggregate {} every sec...hour;
"""


@pytest.mark.parametrize(
    ("text", "given", "message"),
    [
        ("", {"outputs": ("Sums.days",)}, "output: the rows of aggregation 'Sums' are 'Sums.sec', 'Sums.min',"),
        ("", {"outputs": ("Sums",)}, "output: the rows of aggregation 'Sums' are 'Sums.sec', 'Sums.min',"),
        ("by paid", {"outputs": ("Sums.sec",)}, "output: aggregation 'Sums' goes by another time than its frame's"),
        ("", {"outputs": ("Sums.sec",), "order": "arrival"}, "output: rows of aggregation 'Sums' are complete by time"),
        ("", {"outputs": ("Sums.sec",), "key": "bank"}, "each node would have its own rows of aggregation 'Sums'"),
    ],
)
def test_rows_of_aggregations_are_refused(text: str, given: dict[str, Any], message: str) -> None:
    columns = {**COLUMNS, "paid": "timestamp", "bank": "string"}
    with pytest.raises(Misuse) as raised:
        plan(SUMS.format(text), columns=columns, **given)
    assert message in str(raised.value)


def test_rows_of_aggregations_are_outputs() -> None:
    spec = plan(SUMS.format("by at"), outputs=("Sums.sec", "Sums.hour"), key="card")
    assert [(b.name, b.aggregation, b.per) for b in spec.buckets] == [
        ("Sums.sec", "Sums", "sec"), ("Sums.hour", "Sums", "hour"),
    ]  # fmt: skip
    assert str(spec.outputs[0][1]) == "(AGG_TIMESTAMP long, card string, total double, n long)"
    assert not spec.stateless
