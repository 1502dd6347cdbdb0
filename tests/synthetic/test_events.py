"""Generated events: the same everywhere, the first rows of more, types, times, and mistakes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sparkstream_nb
from sparkstream_nb import columns as c
from sparkstream_nb import generate
from sparkstream_nb.errors import Misuse, SparkStreamError
from sparkstream_nb.synthetic.column import Seed
from sparkstream_nb.synthetic.events import USUAL_START, EventRequest, generate_events
from sparkstream_nb.types import Schema, Type

from .every_kind import COLUMNS, DIGEST, digest_of, frame_of_every_kind

ROOT = Path(__file__).parents[2]
TRADES = "define stream Trades (symbol string, price double, quantity int, at long);"


def test_every_kind_of_column_is_the_same_on_every_machine_and_python() -> None:
    assert digest_of(frame_of_every_kind()) == DIGEST
    assert digest_of(frame_of_every_kind(seed=8)) != DIGEST


@pytest.mark.thorough
@pytest.mark.parametrize("version", ["3.12", "3.13", "3.14"])
def test_other_pythons_make_the_same(version: str) -> None:
    python = shutil.which(f"python{version}")
    if (
        python is None
        or subprocess.run([python, "-c", "import numpy, pandas, pyarrow"], capture_output=True).returncode
    ):
        pytest.skip(f"no Python {version} with numpy, pandas and pyarrow")
    told = subprocess.run(
        [python, "-m", "tests.synthetic.every_kind"],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert told.stdout.strip() == DIGEST


def test_fewer_events_are_the_first_ones_of_more() -> None:
    many, few = frame_of_every_kind(3000), frame_of_every_kind(100)
    pd.testing.assert_frame_equal(many.iloc[:100], few)


def test_every_column_is_drawn_by_itself() -> None:
    plain = generate(TRADES, n=200, seed=1)
    wide = "define stream Trades (added double, quantity int, at long, symbol string, price double)"
    other = generate(wide, n=200, seed=1, columns={"added": c.normal(0, 1)})
    pd.testing.assert_frame_equal(plain, other[list(plain.columns)])
    changed = generate(TRADES, n=200, seed=1, columns={"quantity": [1, 2]})
    assert (changed["price"] == plain["price"]).all()
    assert list(changed["quantity"].unique()) != list(plain["quantity"].unique())


def test_another_seed_gives_other_events() -> None:
    one, other = generate(TRADES, n=50, seed=1), generate(TRADES, n=50, seed=2)
    for name in one:
        assert not one[name].equals(other[name])


def test_streams_of_other_names_have_other_events() -> None:
    one, other = (generate(f"define stream {s} (room string, at long)", n=200, seed=7) for s in ("A", "B"))
    assert len(set(one["at"]) & set(other["at"])) < 10
    assert (one["room"] == other["room"]).mean() < 0.6
    schema = Schema.of(("room", Type.STRING), ("at", Type.LONG))
    assert generate(schema, n=5).equals(generate(schema, n=5, seed=0))


def test_types_and_order_are_those_of_the_stream() -> None:
    frame = frame_of_every_kind(50)
    assert list(frame) == [*COLUMNS, "timestamp"]
    types = {name: str(frame[name].dtype) for name in ("dice", "level", "wide", "share", "noise", "alarm", "flag")}
    assert types == {
        "dice": "Int32", "level": "int32", "wide": "int64", "share": "float32", "noise": "float64", "alarm": "bool",
        "flag": "boolean",
    }  # fmt: skip
    assert frame["card"].dtype == pd.Series(["a"]).dtype
    assert frame["nothing"].isna().all()
    assert frame["timestamp"].dtype == np.int64


@pytest.mark.parametrize(
    ("attributes", "time", "column"),
    [
        ("a int, at long", None, "at"),
        ("eventTime long, ts long", None, "eventTime"),
        ("created_at long", None, "created_at"),
        ("a int", None, "timestamp"),
        ("timestamp string", None, "event_timestamp"),
        ("data long, flat long", None, "timestamp"),
        ("ts long, other long", "other", "other"),
        ("a int", "when", "when"),
    ],
)
def test_the_column_of_event_times(attributes: str, time: str | None, column: str) -> None:
    frame = generate(f"define stream S ({attributes})", n=20, time=time)
    assert frame[column].iloc[0] == USUAL_START
    assert frame[column].is_monotonic_increasing
    assert frame[column].dtype == np.int64
    assert len(frame.columns) == len(attributes.split(",")) + (f"{column} long" not in attributes)


@pytest.mark.parametrize("arrivals", ["steady", "poisson", "bursts", c.bursts(100, 50)])
def test_the_rate_is_that_of_event_time(arrivals: str) -> None:
    at = generate(TRADES, n=20_000, rate=50, start="2024-06-01 10:00:00", arrivals=arrivals)["at"]
    assert at.iloc[0] == 1_717_236_000_000
    assert 19_999_000 / (at.iloc[-1] - at.iloc[0]) == pytest.approx(50, rel=0.2 if "100" in str(arrivals) else 0.05)


def test_gaps_of_arrivals() -> None:
    times = {how: generate(TRADES, n=20_000, rate=1, arrivals=how)["at"] for how in ("steady", "poisson", "bursts")}
    gaps = {how: np.diff(at) for how, at in times.items()}
    assert set(gaps["steady"]) == {1000}
    assert gaps["poisson"].std() == pytest.approx(1000, rel=0.05)
    assert np.mean(gaps["bursts"] < 500) > 0.9


def test_a_walk_of_each_key_and_a_value_of_each_key() -> None:
    columns = {
        "price": c.walk(100, 1, low=90, high=110, key="symbol"),
        "symbol": c.choice(["a", "b"]).nulls(0.2),
        "quantity": c.per_key("symbol", c.uniform(1, 10**9)),
    }
    frame = generate(TRADES, n=5000, columns=columns)
    assert frame["price"].between(90, 110).all()
    assert frame.groupby("symbol", dropna=False)["quantity"].nunique().to_list() == [1, 1, 1]
    steps = frame.groupby("symbol", dropna=False)["price"].diff().abs()
    assert steps.max() < 6
    assert steps.mean() == pytest.approx(0.8, rel=0.1)  # √(2/π) of a deviation of 1


def test_walks_are_the_same_whatever_other_keys_do() -> None:
    """Sums of floats would depend on the walks that are added up before."""
    columns = {"price": c.walk(1, 0.3, key="symbol")}
    many, few = (generate(TRADES, n=n, seed=3, columns=columns) for n in (70_000, 500))
    assert (many["price"].iloc[:500] == few["price"]).all()


def test_distributions() -> None:
    schema = Schema.of(("u", Type.INT), ("n", Type.DOUBLE), ("e", Type.DOUBLE), ("z", Type.LONG), ("w", Type.STRING))
    columns = {
        "u": c.uniform(1, 6), "n": c.normal(5, 2), "e": c.exponential(3, low=1), "z": c.zipf(1000, 1.0),
        "w": c.choice(["x", "y"], weights=[1, 3]).nulls(0.25),
    }  # fmt: skip
    frame = generate(schema, n=100_000, columns=columns)
    assert sorted(frame["u"].unique()) == [1, 2, 3, 4, 5, 6]
    assert frame["u"].mean() == pytest.approx(3.5, abs=0.02)
    assert (frame["n"].mean(), frame["n"].std()) == pytest.approx((5, 2), abs=0.03)
    assert (frame["e"].mean(), frame["e"].min()) == pytest.approx((3, 1), abs=0.03)
    counts = frame["z"].value_counts()
    assert counts[1] / counts[10] == pytest.approx(10, rel=0.1)
    assert frame["w"].isna().mean() == pytest.approx(0.25, abs=0.01)
    assert (frame["w"] == "y").sum() / (frame["w"] == "x").sum() == pytest.approx(3, rel=0.05)


def test_usual_values_by_name_and_type() -> None:
    text = """define stream S (symbol string, price double, temperature float, lat double, lon double, deviceId string,
        userId long, status string, alarm bool, qty int, orderId string, timestamp string, other string, x double)"""
    frame = generate(text, n=2000)
    assert frame["temperature"].mean() == pytest.approx(20, abs=0.5)
    assert frame["lat"].between(-60, 70).all()
    assert frame["lon"].between(-180, 180).all()
    assert frame["deviceId"].str.fullmatch(r"device-\d+").all()
    assert frame["userId"].between(1, 1000).all()
    assert set(frame["status"]) == {"ok", "pending", "failed"}
    assert 0 < frame["alarm"].mean() < 0.1
    assert frame["qty"].min() >= 1
    assert frame["orderId"].iloc[1] == "order-2"
    assert frame["timestamp"].iloc[0] == "2024-01-01T00:00:00.000Z"
    assert frame["other"].str.startswith("other-").all()
    per_symbol = frame.groupby("symbol")["price"].std()
    assert per_symbol.max() < frame["price"].std()


def test_a_list_is_a_choice_and_usual_values_may_have_nulls() -> None:
    frame = generate(TRADES, n=1000, columns={"symbol": ["a", "b"], "price": c.usual().nulls(0.5)})
    assert set(frame["symbol"]) == {"a", "b"}
    assert frame["price"].isna().mean() == pytest.approx(0.5, abs=0.05)
    walks = generate(TRADES, n=1000, columns={"symbol": ["a", "b"]})["price"]
    assert (frame["price"].dropna() == walks[frame["price"].notna()]).all()


def test_the_stream_of_an_app() -> None:
    app = "define stream A (x int); define stream B (y int); from A select x insert into Out;"
    assert list(generate(app, stream="B", n=1)) == ["y", "timestamp"]
    assert list(generate("define stream A (x int); from A select x as z insert into Out;", n=0)) == ["x", "timestamp"]
    with pytest.raises(Misuse, match=r"which stream of the app\? Name it as stream='...'. Its streams: A, B"):
        generate(app)
    with pytest.raises(Misuse, match=r"has no stream 'Bb'. Did you mean 'B'\?"):
        generate(app, stream="Bb")
    with pytest.raises(Misuse, match=r"'Trades' is not a stream of an app: write App.Trades"):
        generate("Trades")
    with pytest.raises(SparkStreamError, match="line 1, column 20"):
        generate("define stream S (a strin)")


def test_no_events() -> None:
    frame = frame_of_every_kind(0)
    assert len(frame) == 0
    assert str(frame["level"].dtype) == "int32"


def test_names_come_from_faker() -> None:
    frame = generate("define stream S (a string, b string)", n=500, seed=1,
                     columns={"a": c.names("person", distinct=20), "b": c.names("city", locale="de_DE")})  # fmt: skip
    assert 10 < frame["a"].nunique() <= 20
    assert frame["a"].equals(generate("define stream S (a string)", n=500, seed=1,
                                      columns={"a": c.names("person", distinct=20)})["a"])  # fmt: skip


def test_without_faker_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faker", None)
    with pytest.raises(SparkStreamError, match=re.escape("python -m pip install 'sparkstream-nb[generate]'")):
        generate("define stream S (a string)", n=1, columns={"a": c.names("person")})


MISTAKES = [
    ({"pricee": c.normal(1, 1)}, {}, "columns: the stream has no attribute 'pricee'. Did you mean 'price'?"),
    ({"symbol": c.normal(1, 1)}, {}, "columns['symbol']: normal gives numbers, and symbol is a string. Use choice,"),
    ({"price": c.regex("a")}, {}, "columns['price']: regex gives string, and price is a double. Use uniform, normal,"),
    ({"price": ["a", 1]}, {}, "columns['price']: 'a' is a value of choice, and price is a double"),
    ({"quantity": [1.5]}, {}, "columns['quantity']: 1.5 is a value of choice, and quantity is an int"),
    ({"quantity": c.uniform(0, 2**31)}, {}, "columns['quantity']: uniform gives 2147483648, and an int is from"),
    ({"quantity": c.zipf(5, prefix="q")}, {}, "zipf with the prefix 'q' gives texts, and quantity is an int"),
    ({"quantity": 5}, {}, "columns['quantity'] is a generator such as sparkstream_nb.columns.uniform(0, 1), or a list"),
    ({"price": c.walk(1, 1, key="symbl")}, {}, "columns['price']: key 'symbl' is no attribute. Did you mean 'symbol'?"),
    ({"price": c.walk(1, 1, key="price")}, {}, "columns: price → price refer to each other"),
    ({"at": c.uniform(0, 1)}, {"time": "at"}, "columns['at']: that is the column of event times"),
    ({}, {"n": -1}, "n is the number of events, from 0 to 1,000,000,000, not -1"),
    ({}, {"n": 1.5}, "n is a whole number, not 1.5"),
    ({}, {"seed": "x"}, "seed is a whole number, not 'x'"),
    ({}, {"rate": 0}, "rate is a number of events a second above 0, not 0"),
    ({}, {"rate": 1e-12}, "choose a higher rate"),
    ({}, {"arrivals": "burst"}, "arrivals cannot be 'burst'. Did you mean 'bursts'?"),
    ({}, {"time": "price"}, "time: price is a double: event times are a long, in ms"),
    ({}, {"start": "noon"}, "start: 'noon' is neither ms since 1970 nor a time"),
]  # fmt: skip


@pytest.mark.parametrize(("columns", "more", "message"), MISTAKES, ids=[m[2][:40] for m in MISTAKES])
def test_a_mistake_is_told_at_its_place(columns: dict[str, object], more: dict[str, object], message: str) -> None:
    with pytest.raises(Misuse, match=re.escape(message)):
        generate(TRADES, columns=columns, **{"n": 10, **more})  # type: ignore[arg-type]


WRONG = [
    (lambda: c.choice(["a", "b"], weights=[1]), "choice: 2 values have 1 weights: give one for each"),
    (lambda: c.choice(["a"], weights=[-1]), "choice: a weight is a number from 0, not -1"),
    (lambda: c.choice(["a"], weights=[0]), "choice: all weights are 0: one is above 0"),
    (lambda: c.choice([]), "choice: there are no values to choose from"),
    (lambda: c.choice("abc"), "choice: values: a list is expected, not 'abc'"),
    (lambda: c.uniform(2, 1), "uniform: low is 2 and high is 1: low is at most high"),
    (lambda: c.uniform("a", 1), "uniform: low is a number, not 'a'"),
    (lambda: c.normal(1, -1), "normal: deviation is a number from 0, not -1"),
    (lambda: c.normal(1, 1, decimals=-1), "normal: decimals is a whole number from 0 to 15, not -1"),
    (lambda: c.exponential(0), "exponential: mean is above low (0.0), not 0"),
    (lambda: c.walk(1, 0), "walk: step is a number above 0, not 0"),
    (lambda: c.walk(1, 1e-20), "walk: a step of 1e-20 is too small"),
    (lambda: c.zipf(0), "zipf: the number of keys is from 1 to 10,000,000, not 0"),
    (lambda: c.chance(2), "chance: probability is from 0 to 1, not 2"),
    (lambda: c.chance(0.5).nulls(2), "nulls is a share from 0 to 1, not 2"),
    (lambda: c.names("persn"), "names: there is no kind of name 'persn'. Did you mean 'person'?"),
    (lambda: c.bursts(0), "bursts: size is a number from 1, not 0"),
    (lambda: c.like([None]), "like: the example has no values"),
    (lambda: c.walk(1, 1, key=5), "walk: key is the name of another column, not 5"),
    (lambda: c.walk(1, 1, key=["k"]), "walk: key is the name of another column, not ['k']"),
    (lambda: c.integers(0, 1e308), "integers: high is not within a long, from -2**63 to 2**63 - 1: 1e+308"),
    (lambda: c.zipf(10, first=2**63 - 5), "zipf: last is not within a long, from -2**63 to 2**63 - 1: "),
    (lambda: c.zipf(10, prefix="\ud800"), "zipf: prefix is a text, not '\\ud800'"),
    (lambda: generate("define stream S (k string)", columns={"k": ["\ud800"]}), "columns['k']: '\\ud800' is a value"),
]


@pytest.mark.parametrize(("make", "message"), WRONG, ids=[w[1][:40] for w in WRONG])
def test_a_wrong_argument_of_a_generator_is_refused(make: object, message: str) -> None:
    with pytest.raises(Misuse, match=re.escape(message)):
        make()  # type: ignore[operator]


def test_the_generators_are_a_module_of_the_package() -> None:
    assert sparkstream_nb.columns is c
    assert "columns" in dir(sparkstream_nb)


def test_whole_numbers_have_both_ends() -> None:
    schema = Schema.of(("i", Type.INT), ("l", Type.LONG), ("d", Type.DOUBLE), ("f", Type.FLOAT))
    columns = {name: c.integers(-1, 2) for name in "ildf"}
    frame = generate_events(schema, EventRequest(4000, Seed(7, "Whole"), columns=columns)).frame
    for name in "ildf":
        counts = frame[name].value_counts()
        assert set(counts.index) == {-1, 0, 1, 2}
        assert counts.min() > 800
    for low, high in ((0.5, 2), (0, 2.5), (3, 2), ("a", 2)):
        with pytest.raises(Misuse, match="integers: "):
            c.integers(low, high)
    with pytest.raises(Misuse):
        generate_events(Schema.of(("i", Type.INT)), EventRequest(1, Seed(7, "W"), columns={"i": c.integers(0, 2**40)}))
