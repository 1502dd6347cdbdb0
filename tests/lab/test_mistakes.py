"""Mistakes of users in a notebook: each answers one short message with place, cause and way out, and no traceback."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.testing.globalipapp import start_ipython

from sparkstream_nb import app as api
from sparkstream_nb.errors import SparkStreamError
from sparkstream_nb.runners.choice import INLINE

from .conftest import HOUR, TRADES

LONGEST = 600
"""Characters of a message at most."""

APP = "define stream S (a string, b int, at long);\nfrom S[b > 3] select a, b insert into O;"
SCRIPT = "define function f[javascript] return int { return 1; };\n" + APP.replace("select a, b", "select f(b) as c")


def cell(line: str, body: str = APP) -> str:
    return f"%%siddhi {line}\n{body}"


BEFORE_SPARK = [
    ("%%siddhi", "the cell is empty"),
    ("%%siddhi T\n  \n", "the cell is empty"),
    (cell("T --noodes 3"), "unknown option --noodes. Did you mean '--nodes'?"),
    (cell("T --noodes=3"), "unknown option --noodes. Did you mean '--nodes'?"),
    (cell("T U"), "unexpected argument 'U'. Write %%siddhi [NAME]"),
    (cell("T --nodes 0"), "--nodes: '0' is not a whole number above 0"),
    (cell("T --nodes x"), "--nodes: 'x' is not a whole number above 0"),
    (cell("T --nodes"), "--nodes needs a value: --nodes N"),
    (cell("T --mode activ-active"), "Did you mean 'active-active'?"),
    (cell("T --mode single --nodes 2"), "mode single has one node, not 2"),
    (cell("T --routing roundrobin"), "Write round_robin, hash:ATTRIBUTE, node:NUMBER, random:SEED, or sticky"),
    (cell("T --routing hash:aa"), "no input stream has an attribute 'aa'. Did you mean 'a'?"),
    (cell("T --routing node:9"), "there is no node 9: the deployment has only node 1"),
    (cell("T --nodes 2 --shard-ids a,a"), "two nodes have the same shard id: a, a"),
    (cell("T --nodes 2 --shard-ids a"), "there are 2 nodes, and 1 shard id was given: a"),
    (cell("T --nodes 2 --shard-ids a,"), "a shard id is empty"),
    (cell("T --master locl[2]"), "'locl[2]' is not the address of a Spark"),
    (cell("T --shared s3://bucket/folder?pasword=x"), "what follows the ? can be region, endpoint_override and scheme"),
    (cell("T --store a_folder"), "a_folder is a folder: name a file"),
    (cell("T --store latin.siddhi"), "latin.siddhi is not a DuckDB file"),
    (cell("T --timezone Europe/Berln"), "Did you mean 'Europe/Berlin'?"),
    (cell("T --start noon"), "start: 'noon' is neither ms since 1970 nor a time such as"),
    (cell("T --limits nesting=0"), "limits: nesting is a whole number from 1 to 200, not 0"),
    (cell("T --limits charactrs=1MB"), "Did you mean 'characters'?"),
    (cell("T --limits characters=lots"), "limits: characters cannot be 'lots'. Write a whole number, such as 1000"),
    (cell("T --param LEAST"), "'LEAST' is not NAME=VALUE"),
    (cell("T", APP.replace("3", "${LEAST}")), "Give it as --param LEAST=VALUE"),
    (cell("T --param LEST=3", APP.replace("3", "${LEAST}")), "Did you mean 'LEST'?"),
    (cell("T -o 1x"), "'1x' is not a variable's name"),
    (cell("T -o class"), "'class' is not a variable's name"),
    (cell("T", "-- nothing yet"), "expected a definition or a query"),
    (cell("T", "import pandas as pd\nprint(1)"), "line 2, column 1"),
    (cell("T", "SELECT * FROM trades WHERE price > 3"), "line 2, column 1"),
    (cell("T", '{"symbol": "wso2"}'), "line 2, column 1"),
    (cell("T", APP.replace("select a,", "select a;")), "line 3, column"),
    (cell("T", APP.replace("select a,", "select lenght(a) as n,")), "unknown function"),
    (cell("T", APP.replace("from S", "from SS")), "Did you mean 'S'?"),
    (cell("T", APP.replace("b > 3", "bb > 3")), "Did you mean 'b'?"),
    (cell("T", APP.replace("b > 3", "a > 3")), "line 3, column"),
    (cell("T", "@source(type='jms') " + APP), "this build cannot run"),
    (cell("T", SCRIPT), "--allow-scripts"),
    (cell("T --check", APP.replace("select a,", "select aa,")), "Did you mean 'a'?"),
    (cell("--query", "from A select *"), "the name of the running app is missing"),
    (cell("T --query", "from A select *"), "no app is called 'T': none is deployed yet"),
    ("%siddhi feeed T.S x", "no command 'feeed'. Did you mean 'feed'?"),
    ("%siddhi deploy", "a cell deploys an app: write %%siddhi as its first line and the app's text below"),
    ("%siddhi deploy T --nodes 2", "write %%siddhi T --nodes 2 as its first line and the app's text below"),
    ("%siddhi --nodes 3", "the command comes first"),
    ("%siddhi feed", "NAME.Stream is missing. Write %siddhi feed NAME.Stream [SOURCE]"),
    ("%siddhi feed T.S x", "none is deployed yet"),
    ("%siddhi send S [1]", "'S' is not a stream of an app: write NAME.S, the app's name first"),
    ("%siddhi send T.S ['a", "is not closed"),
    ('%siddhi query T "from A select *"', "no app is called 'T': none is deployed yet"),
    ("%siddhi explain T", "none is deployed yet"),
    ("%siddhi errors T --replay 3 x", "--replay: 'x' is no error's number: write NAME --replay 3 4 7-9, or all"),
    ("%siddhi stop", "which app? Write %siddhi stop NAME"),
    ("%siddhi stop T", "none is deployed yet"),
    ("%siddhi list all", "unexpected argument 'all'"),
    ("%siddhi delete T", "%siddhi has no command 'delete'. Did you mean 'remove'?"),
    ("%siddhi drop T", "Did you mean 'remove'?"),
    ("%siddhi remove A B --home x", "--home is the folder of one app: remove the others by themselves"),
    ("%siddhi check nothing_here", "neither a variable that holds a text nor a file"),
    ("%siddhi check latin.siddhi", "latin.siddhi is not UTF-8 text (line 2)"),
    ("%siddhi check a_folder", "a_folder is a folder"),
    ("%siddhi check wrong.siddhi", "Did you mean 'b'?"),
]

OF_AN_APP = [
    ("%siddhi explain Trads", "no app is called 'Trads'. Did you mean 'Trades'?"),
    ("%siddhi send Trades [1]", "write Trades.Stream"),
    ("%siddhi send Trades.TradeStrem [1]", "Trades has no stream 'TradeStrem'. Did you mean 'TradeStream'?"),
    ("%siddhi send Trades.TradeStream [1,]x", "neither JSON nor Python"),
    ("%siddhi send Trades.TradeStream 7", "must be a list or a dict"),
    ("%siddhi send Trades.TradeStream '[1, 2, 3, 4, 5]'", "TradeStream takes 4 values"),
    ('%siddhi send Trades.TradeStream \'["a", "b", 3, 4]\'', "TradeStream.price: 'b' is not a double"),
    ('%siddhi send Trades.TradeStream {"symbl": "a"}', "no attribute 'symbl'. Did you mean 'symbol'?"),
    (
        "%siddhi send Trades.TradeStream '[\"a\", 1.0, 1, 1]' --node 3",
        "there is no node 3: the deployment has nodes 1 to 2",
    ),
    ("%siddhi send Trades.TradeStream '[\"a\", 1.0, 1, 1]' --node x", "--node: 'x' is not a whole number above 0"),
    ("%siddhi send Trades.TradeStream '[\"a\", 1.0, 1, 1]' --at noon", "--at: 'noon' is neither"),
    ("%siddhi feed Trades.TradeStream good_fram", "Did you mean 'good_frame'?"),
    ("%siddhi feed Trades.TradeStream a_number", "An object of type int cannot be fed"),
    ("%siddhi feed Trades.TradeStream ticks(100)", "neither a variable nor a file: write frame = ticks(100) first"),
    ("%siddhi feed Trades.TradeStream none.csv", "there is no file 'none.csv'"),
    ("%siddhi feed Trades.TradeStream a_folder", "a_folder cannot be fed"),
    ("%siddhi feed Trades.TradeStream folder.csv", "folder.csv is a folder"),
    ("%siddhi feed Trades.TradeStream latin.siddhi", "give a .csv or a .parquet file"),
    ("%siddhi feed Trades.TradeStream empty.csv", "its first line must name the columns"),
    ("%siddhi feed Trades.TradeStream latin.csv", "no column 'price' for stream TradeStream. Did you mean 'prïce'"),
    (
        "%siddhi feed Trades.TradeStream good.csv --time timestmp",
        "no column 'timestmp' of event times. Did you mean 'timestamp'?",
    ),
    (
        "%siddhi feed Trades.TradeStream good_frame --time at",
        "The frame has no column 'at' of event times. Its columns: symbol,",
    ),
    ("%siddhi feed Trades.TradeStream short.csv", "short.csv has no column 'quantity' for stream TradeStream"),
    ("%siddhi feed Trades.TradeStream twice.csv", "twice.csv has 2 columns 'price'"),
    ("%siddhi feed Trades.TradeStream broken.parquet", "broken.parquet is not a parquet file"),
    (
        "%siddhi feed Trades.TradeStream good_frame --route hash:price2",
        "no input stream has an attribute 'price2'. Did you mean 'price'?",
    ),
    ("%siddhi feed Trades.TradeStream good_frame --limit 0", "--limit: '0' is not a whole number above 0"),
    ("%siddhi query Trades --by-shards 'from TradeAggregation select *'", "Did you mean '--by-shard'?"),
    ("%siddhi query Trades", "the query is missing: write %siddhi query Trades"),
    (
        "%siddhi query Trades.TradeAggregation",
        'the query needs a source: write %siddhi query Trades "from TradeAggregation select *"',
    ),
    (
        '%siddhi query Trades "SELECT * FROM TradeAggregation"',
        "a query begins with the store that it reads",
    ),
    (cell("Trades --node 3"), "unknown option --node. Did you mean '--nodes'?"),
    ('%siddhi query Trades "from TradeAggregation selec *"', "line 1, column"),
    ('%siddhi query Trades "from TradeAgregation select *"', "Did you mean 'TradeAggregation'?"),
    (
        '%siddhi query Trades "from TradeStream select *"',
        "A stream keeps no events to query. This app has: TradeAggregation.",
    ),
    ("%siddhi query Trades \"from TradeAggregation within '2024-**-** **:**:**' per 'week' select *\"", "week"),
    ("%siddhi query Trades \"from TradeAggregation within 'noon' per 'days' select *\"", "noon"),
    ("%siddhi view Trades.TradeAgregation", "Did you mean 'TradeAggregation'?"),
    ("%siddhi view Trades.TradeAggregation --per week", "week"),
    ("%siddhi view Trades.TradeAggregation --measure totl", "Did you mean 'total'?"),
    ("%siddhi output Trades.Rise", "Trades has no stream 'Rise'. Did you mean 'Rises'?"),
    ("%siddhi output Trades.Rises --last 0", "--last: '0' is not a whole number above 0"),
    ("%siddhi tail Trades.Rise", "Trades has no stream 'Rise'. Did you mean 'Rises'?"),
    ("%siddhi tail Trades.Rises --latest symbl", "Trades.Rises has no attribute 'symbl'. Did you mean 'symbol'?"),
    ("%siddhi tail Trades.Rises --number", "--number needs a value: --number ATTRIBUTE"),
    ("%siddhi tail Trades.Rises --append --number price", "--number: not allowed with argument --append"),
    ("%siddhi chart Trades.Rises --y symbol", "y: 'symbol' of Trades.Rises is a string, which cannot be drawn"),
    ("%siddhi chart Trades.Rises --by symbl", "Trades.Rises has no attribute 'symbl'. Did you mean 'symbol'?"),
    ("%siddhi chart Trades.Rises --kind pie", "--kind cannot be 'pie'"),
    ("%siddhi chart Trades.TradeAggregation", "is an aggregation: %siddhi view Trades.TradeAggregation draws it"),
    ("%siddhi trace", "NAME.query is missing. Write %siddhi trace NAME.query [SOURCE]"),
    ("%siddhi trace Trads.rise good_frame", "no app is called 'Trads'. Did you mean 'Trades'?"),
    ("%siddhi trace Trades.rize good_frame", "no query or named window 'rize'. Did you mean 'rise'?"),
    ("%siddhi trace Trades.rise", "the events are missing, a variable or a file, or --from STREAM=SOURCE"),
    ("%siddhi trace Trades.rise good_fram", "Did you mean 'good_frame'?"),
    ("%siddhi trace Trades.rise a_number", "An object of type int cannot be fed"),
    ("%siddhi trace Trades.rise none.csv", "there is no file 'none.csv'"),
    ("%siddhi trace Trades.rise good_frame --time at", "The frame has no column 'at' of event times"),
    ("%siddhi trace Trades.rise good_frame --until noon", "until: 'noon' is neither ms since 1970 nor a time"),
    ("%siddhi trace Trades.rise good_frame --limit 9999", "limit is a number of events from 1 to 2,000, not 9999"),
    ("%siddhi trace Trades.rise good_frame --from TradeStream=good_frame", "one word too many beside --from"),
    ("%siddhi trace Trades.rise --from TradeStrem=good_frame", "no stream 'TradeStrem'. Did you mean 'TradeStream'?"),
    ("%siddhi stop Trads", "Did you mean 'Trades'?"),
]


@pytest.fixture(scope="module")
def shell() -> InteractiveShell:
    """A shell of IPython's that loads the extension once: loading it again stops the apps."""
    start_ipython()
    ip = InteractiveShell.instance()
    ip.run_line_magic("reload_ext", "sparkstream_nb")
    return ip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which the cells run, with files of every kind of trouble."""
    head = "symbol,price,quantity,timestamp\n"
    (tmp_path / "a_folder").mkdir()
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "latin.siddhi").write_bytes(b"-- a comment of some length\n-- na\xefve\n")
    (tmp_path / "wrong.siddhi").write_text(APP.replace("select a, b", "select a, bb"))
    (tmp_path / "good.csv").write_text(f"{head}a,1.0,1,{HOUR}\n")
    (tmp_path / "short.csv").write_text("symbol,price,timestamp\na,1.0,1\n")
    (tmp_path / "twice.csv").write_text("symbol,price,price,quantity,timestamp\na,1.0,1.0,1,1\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "latin.csv").write_bytes(b"symbol,pr\xefce,quantity,timestamp\n")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and then nothing")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(shell: Any, text: str) -> tuple[BaseException | None, str]:
    """What a cell raised, and all that it printed."""
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out):
        result = shell.run_cell(text)
    return result.error_before_exec or result.error_in_exec, out.getvalue()


def check(shell: Any, text: str, message: str) -> None:
    error, printed = run(shell, text)
    assert isinstance(error, SparkStreamError), printed
    assert message in printed
    assert "Traceback" not in printed
    assert len(printed) < LONGEST


@pytest.mark.parametrize(("text", "message"), BEFORE_SPARK)
def test_a_mistake_is_told_before_spark_starts(
    shell: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    def started(master: str | None) -> None:
        raise AssertionError("Spark was started")

    module = sys.modules["sparkstream_nb.app.deploying"]
    monkeypatch.setattr(module, "_apps", {})
    monkeypatch.setattr(module, "_session", started)
    check(shell, text, message)


@pytest.fixture(scope="module")
def trades(shell: InteractiveShell, tmp_path_factory: pytest.TempPathFactory) -> Iterator[api.App]:
    """A running app on two nodes."""
    home = tmp_path_factory.mktemp("trades")
    app = api.deploy(TRADES, name="Trades", nodes=2, home=home, fresh=True, master=INLINE)
    yield app
    api.stop_all()


@pytest.mark.parametrize(("text", "message"), OF_AN_APP)
def test_a_mistake_with_a_running_app(trades: api.App, shell: Any, folder: Path, text: str, message: str) -> None:
    shell.user_ns["a_number"] = 3
    shell.user_ns["good_frame"] = pd.DataFrame({"symbol": ["a"], "price": [1.0], "quantity": [1], "timestamp": [HOUR]})
    check(shell, text, message)
    assert trades.stats().events == 0


def test_rows_that_do_not_fit_are_a_report(trades: api.App, shell: Any) -> None:
    shell.user_ns["late"] = pa.table({"symbol": ["a"], "price": [1.0], "quantity": [1], "timestamp": ["yesterday"]})
    error, printed = run(shell, "%siddhi feed Trades.TradeStream late --time timestamp -o report")
    assert error is None
    assert shell.user_ns["report"].reasons == {"timestamp: 'yesterday' is not a time": 1}
    assert "Traceback" not in printed
