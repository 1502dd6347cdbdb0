"""What a person is shown: the place of the real culprit, the cause, and a way out."""

# ruff: noqa: E501  (an app reads best on one line)

from __future__ import annotations

import pytest

from sparkstream_nb.errors import NotInThisBuild, SiddhiBindError, SiddhiError
from sparkstream_nb.plan import compile_app, compile_retrieval

S = "define stream S (symbol string, price double, volume int);\n"
T = "define table T (symbol string, volume int);\n"
R = "define stream R (symbol string, rate float);\n"


def test_a_chain_that_is_too_long_is_an_error_of_its_query() -> None:
    for length in (400, 3000):
        chain = " and ".join(["volume > 1"] * length)
        query = f"from S[{chain}] select symbol insert into O;"
        with pytest.raises(SiddhiError, match="line 2, column 1: an expression of this statement is nested too") as raised:
            compile_app(f"{S}{query}")
        assert raised.value.hint == "Compute parts of it in the select of a query before this one."


@pytest.mark.parametrize(
    ("app", "culprit", "message", "hint"),
    [
        (S + "from S[prise > 5] select symbol insert into O;", "prise", "no attribute 'prise'", "Did you mean 'price'?"),
        (S + "from every a=S -> b=S[price > a.prise] select a.symbol insert into O;", "a.prise", "state 'a' (stream S) has no attribute 'prise'", "Did you mean 'price'?"),
        (S + "from every a=S -> S select a.prise as p insert into O;", "a.prise", "state 'a' (stream S) has no attribute 'prise'", "Did you mean 'price'?"),
        (S + "from every a=S -> S select S.prise as p insert into O;", "S.prise", "stream 'S' has no attribute 'prise'", "Did you mean 'price'?"),
        (S + "from T1 select a insert into O;", "T1", "is defined", None),
        (S + "from S select price as p having volume > 3 insert into O;", "volume", "output has no attribute", "selected attributes only"),
        (S + R + "from S#window.time(1 sec) join R#window.time(1 sec) select symbol insert into O;", "symbol", "in both", "S.symbol"),
        (S + "from every a=S[price > b.price] -> b=S select a.symbol insert into O;", "b.price", "comes later", "filter of 'b'"),
        (S + "from every a=S -> b=S select c.symbol as s insert into O;", "c.symbol", "not an input", "Known here: a, b"),
        (S + "from S#window.tumbling(1 min) select symbol insert into O;", None, "unknown window", "#window.timeBatch(1 min)"),
        (S + "from S#window.sliding(1 min) select symbol insert into O;", None, "unknown window", "#window.time(1 min)"),
        (S + "from S#window.hopping(1 min) select symbol insert into O;", None, "unknown window", "output last every 10 sec"),
        (S + "from S select tumble(price) as s insert into O;", "tumble(price)", "unknown function", "#window.timeBatch"),
        (S + "from S select mean(price) as s insert into O;", "mean(price)", "unknown function", "avg(attribute)"),
        (S + "from S select if(true, 1, 2) as s insert into O;", None, "unknown function 'if'", "ifThenElse(condition,"),
        (S + "from S select case(true, 1, 2) as s insert into O;", None, "unknown function 'case'", "ifThenElse(condition,"),
        (S + "from S select hour(price) as s insert into O;", None, "unknown function", "(eventTimestamp(), 'HOUR')"),
        (S + "from S select to_number(symbol) as s insert into O;", None, "unknown function", "'double')"),
        ("@sink(type='file', path='a.csv', @map(type='csv')) define stream S (a int);", "path='a.csv'",
         "'path' is no option of @sink(type='file')", "Its options: add.line.separator, append, file.uri, roll.size."),
        ("@source(type='file', path='a.csv', mode='line', @map(type='csv')) define stream S (a int);", "path='a.csv'",
         "'path' is no option of @source(type='file')", "dir.uri"),
        (S + "from S select median(price) as s insert into O;", "median(price)", "unknown function", "math:percentile"),
        (S + "from S select count(*) as n insert into O;", "count(*)", "count takes one", "Write count()."),
        (S + "from S select average(price) as s insert into O;", None, "unknown function", "avg(attribute)"),
        (S + "from S select len(symbol) as s insert into O;", None, "unknown function", "str:length(text)"),
        (S + "from S select substring(symbol, 1) as s insert into O;", None, "unknown function", "str:substr(text,"),
        (S + "from S select lag(price) as s insert into O;", None, "unknown function", "from every e1=S, e2=S"),
        (S + "from S#window(5 sec) select symbol insert into O;", None, "unknown stream function", "#window.time(1 min)"),
        (S + "from S#timeBatch(5 sec) select symbol insert into O;", None, "unknown stream function", "write #window.timeBatch("),
        (S + "from S#map:put(symbol) select symbol insert into O;", None, "unknown stream function 'map:put'", "is a function: call it"),
        (S + "from S#window.sum(price) select symbol insert into O;", None, "unknown window 'sum'", "is a function: call it"),
        (S + "from S select str:tokenize(symbol, ',') as t insert into O;", None, "unknown function", "write #str:tokenize(...) behind"),
        (S + "from S select time(1 sec) as t insert into O;", None, "unknown function 'time'", "write #window.time("),
        (S + "from S select length(symbol) as t insert into O;", None, "unknown function 'length'", "Did you mean 'str:length'?"),
        (S + "from S#math:x(price) select symbol insert into O;", None, "unknown stream function 'math:x'", None),
        (S + "from S#window.unique(symbol) select symbol insert into O;", None, "unknown window 'unique'", "called 'unique:ever' now"),
        (S + "from S#window.firstUnique(symbol) select symbol insert into O;", None, "unknown window", "'unique:first'"),
        (S + "from S#window.time('10 min') select symbol insert into O;", "'10 min'", "does not take (string)", "Leave the quotes out: time(10 min)."),
        (S + "from S select sume(price) as s insert into O;", "sume(price)", "unknown function", "Did you mean 'sum'?"),
        (S + "from S select toLower(symbol) as s insert into O;", "toLower(symbol)", "unknown function", None),
        (S + "from S select lower(symbol) as s insert into O;", "lower(symbol)", "unknown function", "str:lower"),
        (S + "from S#window.unique:length(symbol, 3L) select symbol insert into O;", "3L", "does not take (string, long)", "window.length int"),
        (S + "from S#window.unique:length(symbol, volume) select symbol insert into O;", None, "'window.length' of window 'unique:length' must be a constant", None),
        (S + "from S#window.unique:timeBatch(symbol, 0) select symbol insert into O;", "0", "must be at least 1 ms", None),
        (S + "from S#window.unique:ever() select symbol insert into O;", None, "does not take ()", "unique.key"),
        (S + "from S#unique:deduplicate(symbol, 1000) select symbol insert into O;", "1000", "does not take (string, int)", "time.interval long"),
        (S + "from S#timeseries:regress(price, volume) select symbol insert into O;", None,
         "'timeseries:regress' belongs to WSO2's extension siddhi-execution-timeseries, which is not included", None),
        (S + "from S select coordination:isLeader(symbol) as l insert into O;", "coordination:isLeader(symbol)", "'coordination:isLeader' does not take", None),
        (S + "from S#esbAnalytics:decompress(symbol) select symbol insert into O;", None,
         "'esbAnalytics:decompress' belongs to WSO2's extension siddhi-execution-esbanalytics, which is not", None),
        (S + "from S#window.unique:lenght(symbol, 3) select symbol insert into O;", None, "unknown window", "Did you mean 'unique:length'?"),
        (S + "from S select geo:within(price, price, symbol) as s insert into O;", None,
         "function 'geo:within' belongs to WSO2's extension siddhi-gpl-execution-geo, which is not included", "Leave it out"),
        (S + "from S select null as v insert into O;", "null", "no attribute 'null'", "convert('', 'int')"),
        (S + "from S select coalesce(price, null) as v insert into O;", "null", "no attribute 'null'", "There is no null literal"),
        (S + "from S[symbol == null] select symbol insert into O;", "null", "no attribute 'null'", "write 'x is null'"),
        (S + "from #T select symbol insert into O; from S select symbol insert into #T;", "#T", "inner stream '#T' is not defined",
         "A query outside of partitions before this one must insert into '#T'."),
        (S + "from S[symbol == 5] select symbol insert into O;", "symbol == 5", "cannot compare string with int", "quotes"),
        (S + "from S select symbol + 'x' as s insert into O;", "symbol + 'x'", "needs numbers", "str:concat"),
        (S + T + "from S select symbol, price insert into T;", "T", "does not fit table 'T'", "query ("),
        (S + T + "from S update T set T.volume = price on T.symbol == symbol;", "price", "is int, the value is double", "convert"),
        (S + "from S select str:upper(volume) as s insert into O;", "volume", "does not take (int)", "input.string string"),
        (S + "@info(name='q') from S select symbol insert into O; @info(name='q') from S select symbol insert into O;",
         None, "two queries are called 'q'", "its own name"),
        (S + "from every a=S#log('x') -> b=S select a.symbol as s insert into O;", "#log('x')", "cannot have '#log'", "in a query before"),
        ("@app:name('a') @app:name('b') " + S, "@app:name('b')", "@name is given twice", "Keep one"),
        (S + "@info(name='a') @info(name='b') from S select symbol insert into O;", "@info(name='b')", "@info is given twice", "Keep one"),
        (S + "@info(name='a', name='b') from S select symbol insert into O;", "name='b'", "two values of 'name'", "Keep one"),
        ("define stream T (time long); define trigger T at 'start';", "define trigger T at 'start'", "'T' is already defined as a stream",
         "Only a stream (triggered_time long)"),
        ("define trigger T at 'start'; define trigger T at 'start';", None, "'T' is already defined as a trigger", "Rename one"),
        ("@async(workers='0') " + S, "workers='0'", "'workers' of @async must be above 0, found '0'", "Write workers='64'"),
        ("@async(batch.size.max='x') " + S, "batch.size.max='x'", "is a number, found 'x'", "Write batch.size.max="),
        ("@async(buffer.size='100') " + S, "buffer.size='100'", "must be a power of 2", "The next one is '128'"),
        ("@async(workers='2') @async(workers='2') " + S, None, "@async is given twice", "Keep one"),
        (S + "@async(workers='0') define window W (k string) length(2);", "workers='0'", "above 0", None),
        ("@OnError(action='wait') " + S, "action='wait'", "'wait' is not an action of @OnError", "LOG, STREAM or STORE"),
        ("@OnError " + S, "@OnError", "has no 'action'", "action='STREAM'"),
        ("@Index('symbol') @Index('symbol') " + T, None, "two @Index on 'symbol'", "Keep one"),
        ("@store(ref='db') " + T, "ref='db'", "no configuration defines the store 'db'", "write the options here"),
        (S + "@store(ref='db') define aggregation A from S select sum(volume) as v aggregate every sec;", "ref='db'",
         "the store 'db'", "Define it under refs"),
        ("@source(ref='bus') " + S, "ref='bus'", "no configuration defines the source 'bus'", "write the options here"),
        ("@sink(type='log', ref='bus') " + S, "ref='bus'", "the sink 'bus'", None),
        ("@sink(type='inMemory', @distribution(strategy='broadcast', @destination(ref='d'))) " + S, "ref='d'", "destination 'd'", None),
        ("@source(type='http', receiver.url='http://localhost:1/x', basic.auth.enabled='flase', @map(type='json')) " + S,
         "basic.auth.enabled='flase'", "'basic.auth.enabled' of @source(type='http') is 'true' or 'false', not 'flase'", None),
        ("@source(type='http', receiver.url='http://localhost:1/x', worker.count='many', @map(type='json')) " + S,
         "worker.count='many'", "is a whole number from 1 to 1,000, not 'many'", None),
        ("@sink(type='http', publisher.url='http://localhost:1/x', socket.idle.timeout='0', @map(type='json')) " + S,
         "socket.idle.timeout='0'", "is a whole number from 1 to 600,000, not '0'", None),
        ("@sink(type='csv') " + S, "type='csv'", "unknown sink type 'csv'", "@sink(type='file', ..., @map(type='csv'))"),
        ("@sink(type='webhook') " + S, "type='webhook'", "unknown sink type 'webhook'", "run here: email, file, hl7, http,"),
        ("@sink(type='Log') " + S, "type='Log'", "unknown sink type 'Log'", "Did you mean 'log'?"),
        ("@sink(type='inMemory') " + S, "@sink(type='inMemory')", "has no 'topic'", "Write topic="),
        ("@sink(type='log', on.error='retry') " + S, "on.error='retry'", "'retry' is not a known value of 'on.error'", "LOG, WAIT, STREAM or STORE"),
        ("@sink(type='log', priority='loud') " + S, "priority='loud'", "'loud' is not a known value of 'priority'", "OFF or TRACE"),
        ("@sink(type='log', 'x') " + S, "'x'", "has no name", "Write name='x'"),
        ("@sink(type='inMemory', topic='{{sym}}') " + S, "topic='{{sym}}'", "no attribute 'sym'", "Did you mean 'symbol'?"),
        ("@source(type='inMemory', topic='{{symbol}}') " + S, "topic='{{symbol}}'", "cannot depend on the event", "Write a text"),
        ("@sink(type='inMemory', topic='a', dep:x='1') " + S, "dep:x='1'", "is not a known option", "Leave it out"),
        ("@source(type='inMemory', topic='a', @map(@attributes('a'))) " + S, None, "@map has no 'type'", "type='passThrough'"),
        ("@source(type='inMemory', topic='a', @map(type='jason')) " + S, "type='jason'", "unknown mapping type", "'json'"),
        ("@source(type='inMemory', topic='a', @map(type='passThrough', @attributes('a', 'b'))) " + S, "@attributes('a', 'b')",
         "maps 2 attributes, stream 'S' has 3", "symbol, price, volume"),
        ("@source(type='inMemory', topic='a', @map(type='passThrough', @attributes(symbol='a', prize='b', volume='c'))) " + S, None,
         "does not map 'price'", "Did you mean 'prize'?"),
        ("@source(type='inMemory', topic='a', @map(type='passThrough', @attributes(symbol='a', 'b', 'c'))) " + S, "'b'",
         "some are not", "Name each, as in symbol="),
        ("@sink(type='log', @map(type='text', @payload('{{prise}}'))) " + S, "'{{prise}}'", "no attribute 'prise'", "'price'"),
        ("@sink(type='log', @map(type='text', @payload('a'), @payload('b'))) " + S, "@payload('b')", "one @payload", "Keep one"),
        ("@sink(type='inMemory', @distribution(strategy='partitioned', @destination(topic='x'))) " + S, None,
         "needs a 'partitionKey'", "partitionKey='symbol'"),
        ("@sink(type='inMemory', @distribution(strategy='partitioned', partitionKey='Symbol', @destination(topic='x'))) " + S,
         "partitionKey='Symbol'", "no attribute 'Symbol'", "Did you mean 'symbol'?"),
        ("@sink(type='inMemory', @distribution(strategy='random', @destination(topic='x'))) " + S, "strategy='random'",
         "unknown strategy 'random'", "roundRobin"),
        ("@sink(type='inMemory', @distribution(strategy='broadcast')) " + S, None, "no @destination", "@destination(topic="),
        (S + "@async " + S, None, "stream 'S' cannot be defined: 'S' is already defined as a stream", "same attributes and annotations"),
    ],
)  # fmt: skip
def test_error_shows_culprit_and_way_out(app: str, culprit: str | None, message: str, hint: str | None) -> None:
    with pytest.raises((SiddhiBindError, NotInThisBuild)) as caught:
        compile_app(app)
    error = caught.value
    assert message in error.message
    if culprit is not None:
        assert app[error.span.start : error.span.end] == culprit
    if hint is not None:
        assert hint in (error.hint or "")
    assert "^" in str(error)


def test_a_value_that_a_deployment_gives_is_not_checked_before() -> None:
    source = "@source(type='http', receiver.url='http://localhost:1/x', basic.auth.enabled='{}', @map(type='json')) "
    for value in ("${AUTH}", "TRUE", "false"):
        compile_app(source.format(value) + S, {}, {"AUTH": "1"})


def test_retrieval_errors_name_their_kind() -> None:
    plan = compile_app(T + S + "from S select symbol, volume insert into T;")
    with pytest.raises(SiddhiBindError, match="no attribute 'volum'") as caught:
        compile_retrieval("from T select volum", plan)
    assert caught.value.kind == "OnDemandQueryCreationException"
    assert caught.value.hint == "Did you mean 'volume'?"


def test_partition_by_id_follows_the_manual() -> None:
    """`enable='false'` overrides the node's property, which Siddhi 5.1.33 does not do."""
    text = S + "@PartitionById(enable='false') define aggregation A from S select sum(volume) as v aggregate every sec;"
    properties = {"partitionById": "true", "shardId": "n1"}
    assert not compile_app(text, properties).aggregations["A"].partitioned
    assert compile_app(text.replace("(enable='false')", ""), properties).aggregations["A"].partitioned
