"""A hundred and more wrong inputs: each is one line that says what is wrong, and the app goes on."""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sparkstream_nb.app import App, deploy, get, stop_all
from sparkstream_nb.errors import SiddhiError, SparkStreamError
from sparkstream_nb.runners.choice import INLINE

APP = """
define stream S (k string, v int, l long, d double, b bool, o object);
define aggregation A from S select k, sum(v) as s group by k aggregate every sec, min;
@info(name='q') from S[v > 1] select k, v insert into O;
"""
OK: list[Any] = ["a", 1, 2, 1.0, True, None]
CYCLE: list[Any] = []
CYCLE.append(CYCLE)
CYCLE_MAP: dict[str, Any] = {}
CYCLE_MAP["a"] = CYCLE_MAP


class Odd:
    """An object that cannot be shown."""

    def __str__(self) -> str:
        raise RuntimeError("odd")

    __repr__ = __str__


def changed(place: int, value: Any) -> list[Any]:
    """The event with another value."""
    return [*OK[:place], value, *OK[place + 1 :]]


def frame(**changed: Any) -> pd.DataFrame:
    """A frame of one event."""
    return pd.DataFrame([dict(zip("kvldbo", OK, strict=True)) | changed], dtype=object)


Wrong = tuple[str, Callable[[Any, Path], object], str]
WRONG: list[Wrong] = [
    ("surrogate", lambda app, folder: app.send("S", changed(0, "\ud800")), "S.k: '\\ud800' is not a string."),
    (
        "surrogate name",
        lambda app, folder: app.send("\ud800", OK),
        "stream has half of a surrogate pair, which is no character: '\\ud800'",
    ),
    ("int big", lambda app, folder: app.send("S", changed(1, 2**31)), "S.v: 2147483648 is not an int."),
    ("int float", lambda app, folder: app.send("S", changed(1, 1.5)), "S.v: 1.5 is not an int."),
    ("int str", lambda app, folder: app.send("S", changed(1, "1")), "S.v: '1' is not an int."),
    ("int nan", lambda app, folder: app.send("S", changed(1, float("nan"))), "S.v: nan is not an int."),
    ("int inf", lambda app, folder: app.send("S", changed(1, float("inf"))), "S.v: inf is not an int."),
    ("int bool", lambda app, folder: app.send("S", changed(1, True)), "S.v: True is not an int."),
    ("int list", lambda app, folder: app.send("S", changed(1, [1])), "S.v: [1] is not an int."),
    ("int odd", lambda app, folder: app.send("S", changed(1, Odd())), "S.v: an object of type Odd is not an int."),
    ("long big", lambda app, folder: app.send("S", changed(2, 2**63)), "S.l: 9223372036854775808 is not a long."),
    (
        "double huge",
        lambda app, folder: app.send("S", changed(3, 10**400)),
        "S.d: 10000000000000000000000000000000000000000000000000000000000… is n",
    ),
    ("double str", lambda app, folder: app.send("S", changed(3, "x")), "S.d: 'x' is not a double."),
    ("double complex", lambda app, folder: app.send("S", changed(3, 1j)), "S.d: 1j is not a double."),
    ("bool int", lambda app, folder: app.send("S", changed(4, 1)), "S.b: 1 is not a bool."),
    ("str int", lambda app, folder: app.send("S", changed(0, 1)), "S.k: 1 is not a string."),
    ("str bytes", lambda app, folder: app.send("S", changed(0, b"a")), "S.k: b'a' is not a string."),
    (
        "obj cyc",
        lambda app, folder: app.send("S", changed(5, CYCLE)),
        "S.o: the object is nested deeper than 200 levels, or in itself.",
    ),
    (
        "obj cycd",
        lambda app, folder: app.send("S", changed(5, CYCLE_MAP)),
        "S.o: the object is nested deeper than 200 levels, or in itself.",
    ),
    (
        "obj odd",
        lambda app, folder: app.send("S", changed(5, Odd())),
        "S.o: a Odd is no plain data, which an object holds.",
    ),
    (
        "obj lambda",
        lambda app, folder: app.send("S", changed(5, lambda: 1)),
        "S.o: a function is no plain data, which an object holds.",
    ),
    (
        "obj deep",
        lambda app, folder: app.send("S", changed(5, functools.reduce(lambda x, _: [x], range(100000), 1))),
        "S.o: the object is nested deeper than 200 levels, or in itself.",
    ),
    (
        "obj big int",
        lambda app, folder: app.send("S", changed(5, 2**70)),
        "S.o: 1180591620717411303424 is more than a long holds.",
    ),
    (
        "too many",
        lambda app, folder: app.send("S", [*OK, 1]),
        "S takes 6 values (k string, v int, l long, d double, b bool, o object)",
    ),
    (
        "str event",
        lambda app, folder: app.send("S", "abc"),
        "S: an event is a list of values (k string, v int, l long, d double, b ",
    ),
    (
        "none event",
        lambda app, folder: app.send("S", None),
        "S: an event is a list of values (k string, v int, l long, d double, b ",
    ),
    (
        "int event",
        lambda app, folder: app.send("S", 5),
        "S: an event is a list of values (k string, v int, l long, d double, b ",
    ),
    (
        "mixed",
        lambda app, folder: app.send("S", [OK, "x"]),
        "S: an event is a list of values (k string, v int, l long, d double, b ",
    ),
    (
        "mixed2",
        lambda app, folder: app.send("S", [OK, None]),
        "S: an event is a list of values (k string, v int, l long, d double, b ",
    ),
    ("dict lacks", lambda app, folder: app.send("S", {"k": "a"}), "S: the event lacks v, l, d, b, o."),
    (
        "dict more",
        lambda app, folder: app.send("S", dict(zip("kvldbo", OK, strict=True), x=1)),
        "S has no attribute 'x'.",
    ),
    ("dict nonstr", lambda app, folder: app.send("S", {1: 2}), "S has no attribute '1'."),
    (
        "df event",
        lambda app, folder: app.send("S", pd.DataFrame({"k": [1]})),
        "S: an event is a list of values (k string, v int, l long, d double, b ",
    ),
    (
        "np event",
        lambda app, folder: app.send("S", np.array([1, 2])),
        "S: an event is a list of values (k string, v int, l long, d double, b ",
    ),
    (
        "gen event",
        lambda app, folder: app.send("S", (x for x in OK)),
        "S: an event is a list of values (k string, v int, l long, d double, b ",
    ),
    ("stream none", lambda app, folder: app.send(None, OK), "stream is a text, not None"),
    ("stream int", lambda app, folder: app.send(3, OK), "stream is a text, not 3"),
    ("stream list", lambda app, folder: app.send(["S"], OK), "stream is a text, not ['S']"),
    ("at big", lambda app, folder: app.send("S", OK, at=2**63), "at: 9223372036854775808 is more ms than a long holds"),
    (
        "at neg",
        lambda app, folder: app.send("S", OK, at=-(2**63) - 1),
        "at: -9223372036854775809 is more ms than a long holds",
    ),
    (
        "at str",
        lambda app, folder: app.send("S", OK, at="yesterday"),
        "at: 'yesterday' is neither ms since 1970 nor a time such as 2013-01-01",
    ),
    (
        "at float",
        lambda app, folder: app.send("S", OK, at=1.5),
        "at: 1.5 is neither ms since 1970 nor a time such as 2013-01-01T06:00:0",
    ),
    (
        "at nan",
        lambda app, folder: app.send("S", OK, at=float("nan")),
        "at: nan is neither ms since 1970 nor a time such as 2013-01-01T06:00:0",
    ),
    (
        "at list",
        lambda app, folder: app.send("S", OK, at=[1]),
        "at: [1] is neither ms since 1970 nor a time such as 2013-01-01T06:00:0",
    ),
    (
        "at NaT",
        lambda app, folder: app.send("S", OK, at=pd.NaT),
        "at: NaT is neither ms since 1970 nor a time such as 2013-01-01T06:00:0",
    ),
    (
        "at bool",
        lambda app, folder: app.send("S", OK, at=True),
        "at: True is neither ms since 1970 nor a time such as 2013-01-01T06:00:",
    ),
    (
        "at strbig",
        lambda app, folder: app.send("S", OK, at="9" * 5000),
        "at: '9999999999999999999999999999999999999999999999999999999999… is ne",
    ),
    ("node 0", lambda app, folder: app.send("S", OK, node=0), "there is no node 0: the deployment has nodes 1 to 2"),
    ("node 3", lambda app, folder: app.send("S", OK, node=3), "there is no node 3: the deployment has nodes 1 to 2"),
    (
        "node str",
        lambda app, folder: app.send("S", OK, node="x"),
        "'node:x' is not a valid route. Write round_robin, hash:ATTRIBUTE, node",
    ),
    (
        "node float",
        lambda app, folder: app.send("S", OK, node=1.5),
        "'node:1.5' is not a valid route. Write round_robin, hash:ATTRIBUTE, no",
    ),
    ("tick big", lambda app, folder: app.tick(2**63), "ms: 9223372036854775808 is more ms than a long holds"),
    (
        "tick str",
        lambda app, folder: app.tick("x"),
        "ms: 'x' is neither ms since 1970 nor a time such as 2013-01-01T06:00:0",
    ),
    (
        "tick none",
        lambda app, folder: app.tick(None),
        "ms: null is neither ms since 1970 nor a time such as 2013-01-01T06:00:",
    ),
    (
        "feed none",
        lambda app, folder: app.feed("S", None),
        "An object of type NoneType cannot be fed: give a pandas, Arrow or Spar",
    ),
    (
        "feed int",
        lambda app, folder: app.feed("S", 3),
        "An object of type int cannot be fed: give a pandas, Arrow or Spark fra",
    ),
    (
        "feed list",
        lambda app, folder: app.feed("S", [1]),
        "An object of type int cannot be fed: give a pandas, Arrow or Spark fra",
    ),
    (
        "feed dict",
        lambda app, folder: app.feed("S", {"k": [1]}),
        "An object of type dict cannot be fed: give a pandas, Arrow or Spark fr",
    ),
    (
        "feed series",
        lambda app, folder: app.feed("S", pd.Series([1])),
        "An object of type Series cannot be fed: give a pandas, Arrow or Spark ",
    ),
    (
        "feed np",
        lambda app, folder: app.feed("S", np.zeros(3)),
        "An object of type ndarray cannot be fed: give a pandas, Arrow or Spark",
    ),
    ("feed nofile", lambda app, folder: app.feed("S", "none.csv"), "file not found: none.csv"),
    (
        "feed txt",
        lambda app, folder: app.feed("S", "none.txt"),
        "none.txt cannot be fed: give a .csv or a .parquet file.",
    ),
    ("feed emptypath", lambda app, folder: app.feed("S", ""), "the feed is no path: ''"),
    ("feed nulpath", lambda app, folder: app.feed("S", "a\0.csv"), "the feed is no path: 'a\\x00.csv'"),
    ("feed dir", lambda app, folder: app.feed("S", folder / "dir.csv"), "is a folder: name a file in it."),
    (
        "feed cut",
        lambda app, folder: app.feed("S", folder / "cut.parquet"),
        "cut.parquet is not a parquet file, or it is not complete.",
    ),
    (
        "feed emptyp",
        lambda app, folder: app.feed("S", folder / "empty.parquet"),
        "empty.parquet is not a parquet file, or it is not complete.",
    ),
    (
        "feed emptyc",
        lambda app, folder: app.feed("S", folder / "e.csv"),
        "e.csv is empty: its first line must name the columns.",
    ),
    (
        "feed nul",
        lambda app, folder: app.feed("S", folder / "nul.csv"),
        "nul.csv has no column 'k' for stream S. Its columns: \\x00\\x00\\x00.",
    ),
    (
        "feed zip",
        lambda app, folder: app.feed("S", folder / "zip.csv"),
        "zip.csv has no column 'k' for stream S. Its columns: PK\\x03\\x04\\x00ÿþ.",
    ),
    (
        "feed mid",
        lambda app, folder: app.feed("S", folder / "mid.parquet", columns={"l": "v", "d": "v", "b": "v", "o": "v"}),
        "The feed of S could not be read: mid.parquet cannot be read as parquet: ",
    ),
    (
        "feed lacks",
        lambda app, folder: app.feed("S", pd.DataFrame({"k": ["a"]})),
        "The frame has no column 'v' for stream S. Its columns: k.",
    ),
    (
        "feed dupcol",
        lambda app, folder: app.feed("S", pd.DataFrame([[1, 2]], columns=["k", "k"])),
        "The frame has 2 columns 'k': rename all but one.",
    ),
    (
        "feed complex",
        lambda app, folder: app.feed("S", frame().assign(v=[1 + 2j])),
        "Column 'v' of the frame has values of type complex128, which no attribute takes: feed its real and imaginary",
    ),
    (
        "feed complexobj",
        lambda app, folder: app.feed("S", frame().assign(v=pd.Series([1j], dtype=object))),
        "Column 'v' of the frame has values of type complex, which no attribute takes: feed its real and imaginary",
    ),
    (
        "feed longdouble",
        lambda app, folder: app.feed("S", frame().assign(v=np.array([1], np.longdouble))),
        "Column 'v' of the frame has values of type float128, which no attribute takes.",
    ),
    (
        "feed intcol",
        lambda app, folder: app.feed("S", pd.DataFrame([[1, 2]])),
        "The frame has no column 'k' for stream S. Its columns: 0, 1.",
    ),
    (
        "feed multi",
        lambda app, folder: app.feed(
            "S", pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("k", "a"), ("v", "b")]))
        ),
        "The frame has no column 'k' for stream S. Its columns: ('k', 'a'), ('v",
    ),
    (
        "feed time",
        lambda app, folder: app.feed("S", frame(), time="t"),
        "The frame has no column 't' of event times. Its columns: k, v, l, d, b",
    ),
    ("feed timeint", lambda app, folder: app.feed("S", frame(), time=3), "time is a text, not 3"),
    (
        "feed route",
        lambda app, folder: app.feed("S", frame(), route="x"),
        "'x' is not a valid route. Write round_robin, hash:ATTRIBUTE, node:NUMB",
    ),
    (
        "feed routeh",
        lambda app, folder: app.feed("S", frame(), route="hash:z"),
        "routing hash:z: no input stream has an attribute 'z'. Known: b, d, k, ",
    ),
    ("feed limit", lambda app, folder: app.feed("S", frame(), limit=-1), "limit is at least 0, not -1"),
    ("feed limits", lambda app, folder: app.feed("S", frame(), limit="x"), "limit is a whole number, not 'x'"),
    (
        "feed columns",
        lambda app, folder: app.feed("S", frame(), columns={"z": "k"}),
        "columns: there is no attribute 'z'. Known: b, d, k, l, o, v",
    ),
    ("feed columns2", lambda app, folder: app.feed("S", frame(), columns=3), "columns is a list of texts, not 3"),
    (
        "feed columns3",
        lambda app, folder: app.feed("S", frame(), columns={"k": 3}),
        "each of the values in columns is a text, not 3",
    ),
    ("feed stream", lambda app, folder: app.feed("Z", frame()), "wrong has no stream 'Z'. Known: O, S"),
    (
        "query empty",
        lambda app, folder: app.query(""),
        "line 1, column 1: found the end of the text, expected 'from', 'select'",
    ),
    ("query none", lambda app, folder: app.query(None), "the query is a text, not None"),
    ("query int", lambda app, folder: app.query(3), "the query is a text, not 3"),
    (
        "query bad",
        lambda app, folder: app.query("from"),
        "line 1, column 5: found the end of the text, expected a name",
    ),
    (
        "query nul",
        lambda app, folder: app.query("from A\0"),
        "line 1, column 7: found '\\x00', expected ';', 'as', 'on', 'select' or 'wi",
    ),
    (
        "query surr",
        lambda app, folder: app.query('from A on k == "\ud800" within 0L, 1L per "sec" select k'),
        "the query has half of a surrogate pair, which is no character: 'from A",
    ),
    (
        "query limit",
        lambda app, folder: app.query('from A within 0L, 10L per "sec" select k', limit=-1),
        "limit is at least 0, not -1",
    ),
    ("agg unknown", lambda app, folder: app.aggregation("Z"), "wrong has no aggregation 'Z'. Known: A"),
    ("agg none", lambda app, folder: app.aggregation(None), "name is a text, not None"),
    (
        "agg per",
        lambda app, folder: app.aggregation("A", per="week"),
        "'week' is not a valid duration; 'A' has seconds, minutes.",
    ),
    (
        "agg pernone",
        lambda app, folder: app.aggregation("A", per=None),
        "'None' is not a valid duration; 'A' has seconds, minutes.",
    ),
    (
        "agg within",
        lambda app, folder: app.aggregation("A", within="x"),
        "'within' cannot read 'x'. Write yyyy-MM-dd HH:mm:ss with ** for the pa",
    ),
    (
        "agg within3",
        lambda app, folder: app.aggregation("A", within=(1, 2, 3)),
        "within is one text or two bounds, not (1, 2, 3)",
    ),
    ("agg within n", lambda app, folder: app.aggregation("A", within=5), "within is one text or two bounds, not 5"),
    ("output", lambda app, folder: app.output("Z"), "wrong has no stream 'Z'. Known: O, S"),
    ("output none", lambda app, folder: app.output(None), "stream is a text, not None"),
    ("output last", lambda app, folder: app.output("O", last=-1), "last is at least 0, not -1"),
    ("output lasts", lambda app, folder: app.output("O", last="x"), "last is a whole number, not 'x'"),
    ("output limit", lambda app, folder: app.output("O", limit="x"), "limit is a whole number, not 'x'"),
    ("scale 0", lambda app, folder: app.scale(0), "nodes must be 1 or more, not 0"),
    ("scale str", lambda app, folder: app.scale("x"), "nodes must be a whole number, not 'x'"),
    (
        "scale both",
        lambda app, folder: app.scale(2, shard_ids=["a"]),
        "scale takes a number of nodes, or their shard ids",
    ),
    ("scale none", lambda app, folder: app.scale(), "scale takes a number of nodes, or their shard ids"),
    ("scale dup", lambda app, folder: app.scale(shard_ids=["a", "a"]), "two nodes have the same shard id: a, a"),
    ("scale ids str", lambda app, folder: app.scale(shard_ids="ab"), "shard_ids is a list of texts, not 'ab'"),
    ("study route", lambda app, folder: app.study(routings="sticky"), "routings is a list of texts, not 'sticky'"),
    ("scale ids int", lambda app, folder: app.scale(shard_ids=[1, 2]), "each of shard_ids is a text, not 1"),
    ("div nodes", lambda app, folder: app.divergence(nodes=0), "nodes is 1 to 1,000, not 0"),
    ("div nodess", lambda app, folder: app.divergence(nodes="x"), "nodes is a whole number, not 'x'"),
    (
        "div route",
        lambda app, folder: app.divergence(routing="x"),
        "'x' is not a valid route. Write round_robin, hash:ATTRIBUTE, node:NUMB",
    ),
    ("study nodes", lambda app, folder: app.study(nodes=0), "nodes is 1 to 1,000, not 0"),
    ("study nodess", lambda app, folder: app.study(nodes="x"), "nodes is a whole number, not 'x'"),
    ("study empty", lambda app, folder: app.study(nodes=[]), "nodes= is a number of nodes, or several, from 1 up"),
    (
        "study route",
        lambda app, folder: app.study(routings=["x"]),
        "'x' is not a valid route. Write round_robin, hash:ATTRIBUTE, node:NUMB",
    ),
    (
        "study routes",
        lambda app, folder: app.study(routings=["x"]),
        "'x' is not a valid route. Write round_robin, hash:ATTRIBUTE, node:NUMB",
    ),
    ("study feed", lambda app, folder: app.study(feed={"Z": 1}), "wrong has no stream 'Z'. Known: O, S"),
    ("study feed2", lambda app, folder: app.study(feed=3), "feed is a dict of frames or files by stream, not 3"),
    ("view", lambda app, folder: app.view("Z"), "wrong has no aggregation 'Z'. Known: A"),
    ("on_commit", lambda app, folder: app.on_commit(3), "callback is a function, not 3"),
    ("get", lambda app, folder: get("zz"), "no app is called 'zz'. Known: "),
    ("get none", lambda app, folder: get(None), "name is a text, not None"),
    ("deploy none", lambda app, folder: deploy(None), "text is a text, not None"),
    ("deploy int", lambda app, folder: deploy(3), "text is a text, not 3"),
    (
        "deploy empty",
        lambda app, folder: deploy(""),
        "line 1, column 1: found the end of the text, expected a definition or ",
    ),
    (
        "deploy nul",
        lambda app, folder: deploy("\0"),
        "line 1, column 1: found '\\x00', expected a definition or a query",
    ),
    (
        "deploy surr",
        lambda app, folder: deploy(
            "define stream S (k string); from S[k == '\ud800'] select k insert into O;", home=folder / "h2", name="h2"
        ),
        'text has half of a surrogate pair, which is no character: "define stre',
    ),
    ("deploy nodes", lambda app, folder: deploy(APP, nodes="3"), "nodes must be a whole number, not '3'"),
    ("deploy nodes1", lambda app, folder: deploy(APP, nodes=1.5), "nodes must be a whole number, not 1.5"),
    (
        "deploy nodesb",
        lambda app, folder: deploy(APP, nodes=True, home=folder / "h3", name="h3"),
        "nodes must be a whole number, not True",
    ),
    ("deploy many", lambda app, folder: deploy(APP, nodes=10**9), "nodes is 1,000 at most, not 1000000000"),
    ("deploy mode", lambda app, folder: deploy(APP, mode=3), "mode is a text, not 3"),
    ("deploy routing", lambda app, folder: deploy(APP, routing=3), "routing is a text, not 3"),
    (
        "deploy shards",
        lambda app, folder: deploy(APP, nodes=2, shard_ids="ab", home=folder / "h4", name="h4"),
        "shard_ids is a list of texts, not 'ab'",
    ),
    (
        "deploy shards1",
        lambda app, folder: deploy(APP, nodes=2, shard_ids=[1, 2]),
        "each of shard_ids is a text, not 1",
    ),
    (
        "deploy master",
        lambda app, folder: deploy(APP, master="x"),
        "'x' is not the address of a Spark. Write local[4], spark://host:7077, ",
    ),
    ("deploy master3", lambda app, folder: deploy(APP, master=3), "master is a text, not 3"),
    ("deploy conf", lambda app, folder: deploy(APP, conf="nope.yaml"), "there is no deployment file nope.yaml"),
    ("deploy conf3", lambda app, folder: deploy(APP, conf=3), "conf is a path, or several, not 3"),
    ("deploy store", lambda app, folder: deploy(APP, store=folder), "is a folder: name a file, such as"),
    ("deploy store3", lambda app, folder: deploy(APP, store=3), "store is a path, not 3"),
    ("deploy store nul", lambda app, folder: deploy(APP, store="a\0"), "store is no path: 'a\\x00'"),
    ("deploy home", lambda app, folder: deploy(APP, home=folder / "e.csv"), "is not a folder that may be written to"),
    ("deploy home3", lambda app, folder: deploy(APP, home=3), "home is a path, not 3"),
    ("deploy home nul", lambda app, folder: deploy(APP, home="a\0"), "home is no path: 'a\\x00'"),
    (
        "deploy home long",
        lambda app, folder: deploy(APP, home=folder / ("x" * 300)),
        "home has a name of more than 255 bytes in it: '",
    ),
    ("deploy name", lambda app, folder: deploy(APP, name=3), "name is a text, not 3"),
    ("deploy name long", lambda app, folder: deploy(APP, name="x" * 3000), "name has 1 to 235 characters, not 3,000"),
    ("deploy name empty", lambda app, folder: deploy(APP, name=""), "name has 1 to 235 characters, not 0"),
    (
        "deploy name surr",
        lambda app, folder: deploy(APP, name="\ud800"),
        "name has half of a surrogate pair, which is no character: '\\ud800'",
    ),
    (
        "deploy start",
        lambda app, folder: deploy(APP, start="x"),
        "start: 'x' is neither ms since 1970 nor a time such as 2013-01-01T06:0",
    ),
    (
        "deploy start big",
        lambda app, folder: deploy(APP, start=2**70),
        "start: 1180591620717411303424 is more ms than a long holds",
    ),
    (
        "deploy startl",
        lambda app, folder: deploy(APP, start=[1]),
        "start: [1] is neither ms since 1970 nor a time such as 2013-01-01T06:0",
    ),
    (
        "deploy tz",
        lambda app, folder: deploy(APP, timezone="Mars"),
        "'Mars' is not a time zone. Write a name such as UTC or Europe/Berlin",
    ),
    ("deploy tz3", lambda app, folder: deploy(APP, timezone=3), "timezone is a text, not 3"),
    ("deploy vars", lambda app, folder: deploy(APP, variables=3), "variables is a dict of texts, not 3"),
    (
        "deploy vars2",
        lambda app, folder: deploy(APP, variables={"a": 3}, home=folder / "h5", name="h5"),
        "each of the values in variables is a text, not 3",
    ),
    (
        "deploy alerts",
        lambda app, folder: deploy(APP, alerts="x"),
        "alerts='x' is not 'on', 'off' or 'leader'. Known: leader, off, on",
    ),
    ("deploy ahead", lambda app, folder: deploy(APP, max_ahead="x"), "max_ahead is a whole number, not 'x'"),
    ("deploy ahead neg", lambda app, folder: deploy(APP, max_ahead=-1), "max_ahead is at least 0, not -1"),
    (
        "deploy rows",
        lambda app, folder: deploy(APP, rows_per_micro_batch=0),
        "rows_per_micro_batch is at least 1, not 0",
    ),
    (
        "deploy rowss",
        lambda app, folder: deploy(APP, rows_per_micro_batch="x"),
        "rows_per_micro_batch is a whole number, not 'x'",
    ),
    ("deploy env", lambda app, folder: deploy(APP, allow_env=3), "allow_env is a list of texts, not 3"),
    (
        "deploy env s",
        lambda app, folder: deploy(APP, allow_env="HOME", home=folder / "h6", name="h6"),
        "allow_env is a list of texts, not 'HOME'",
    ),
]


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """An app that all wrong inputs go to."""
    yield deploy(APP, name="wrong", home=tmp_path_factory.mktemp("wrong") / "home", nodes=2, master=INLINE)
    stop_all()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files that are none."""
    (tmp_path / "cut.parquet").write_bytes(b"PAR1abc")
    (tmp_path / "empty.parquet").write_bytes(b"")
    (tmp_path / "e.csv").write_bytes(b"")
    (tmp_path / "nul.csv").write_bytes(b"\0\0\0")
    (tmp_path / "zip.csv").write_bytes(b"PK\x03\x04\x00\xff\xfe")
    pd.DataFrame({"k": ["a"] * 10_000, "v": range(10_000)}).to_parquet(tmp_path / "good.parquet")
    whole = (tmp_path / "good.parquet").read_bytes()
    (tmp_path / "mid.parquet").write_bytes(whole[:100] + b"\0" * 200 + whole[300:])
    (tmp_path / "dir.csv").mkdir()
    return tmp_path


@pytest.mark.parametrize(("work", "said"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG])
def test_a_wrong_input_is_one_line(work: Callable[[Any, Path], object], said: str, app: App, folder: Path) -> None:
    with pytest.raises(SparkStreamError) as wrong:
        work(app, folder)
    lines = str(wrong.value).splitlines()
    assert said in lines[0]
    assert len(lines) == 1 or isinstance(wrong.value, SiddhiError)  # those show the place, with a caret


def test_values_that_are_none_are_rejected_row_by_row(app: App) -> None:
    rows = [frame(), frame(k="\ud800"), frame(o=Odd()), frame(o=CYCLE), frame(o={"a": [1]})]
    report = app.feed("S", pd.concat(rows, ignore_index=True))
    assert (report.rows, report.rejected) == (5, 3)


INTERVALS = pd.arrays.IntervalArray.from_tuples([(0, 1), (1, 2)])


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (pd.Series([1, 10**400], dtype=object), "v: 1000000"),
        (pd.Series([1, 10**20], dtype=object), "v: 100000000000000000000 is more than a long holds"),
        (INTERVALS, "v: {'left': 1, 'right': 2} is not a"),
    ],
    ids=["endless", "no long", "intervals"],
)
def test_values_that_pandas_has_and_arrow_has_not_are_errors_of_their_rows(app: App, values: Any, said: str) -> None:
    report = app.feed("S", pd.concat([frame(), frame()], ignore_index=True).assign(v=values))
    assert report.rejected == (2 if values is INTERVALS else 1)
    assert said in app.errors.frame["reason"].iloc[-1]


def test_the_app_goes_on(app: App) -> None:
    before = len(app.output("O").frame)
    app.send("S", changed(1, 5), at=dt.date(2020, 1, 1))
    app.flush()
    assert app.state == "running"
    assert len(app.output("O").frame) == before + 1
