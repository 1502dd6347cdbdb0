"""The magics in a real IPython shell, over a stand-in for the running app."""

from __future__ import annotations

import io
import re
import sys
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock, call

import pandas as pd
import pytest
from IPython.core.completer import provisionalcompleter

from sparkstream_nb import app as api
from sparkstream_nb.app.deployment.app_folder import default_home, open_folder
from sparkstream_nb.app.deployment.deployment import Deployment, milliseconds
from sparkstream_nb.app.deployment.fed import NOTED, FedBefore
from sparkstream_nb.app.results.answers import FeedReport
from sparkstream_nb.errors import Misuse, SiddhiBindError, SiddhiSyntaxError
from sparkstream_nb.lab.arguments import line_options, literal, overview, with_body
from sparkstream_nb.lab.card import card_text
from sparkstream_nb.lab.magics import Interrupted
from sparkstream_nb.options import WIDTH
from sparkstream_nb.plan import compile_app
from sparkstream_nb.request import DeployRequest

from .conftest import TRADES, StandIn


def line(shell: Any, text: str) -> Any:
    return shell.run_line_magic("siddhi", text)


def test_deploy_passes_the_options_on_and_keeps_the_app(shell: Any, app: StandIn) -> None:
    card = shell.run_cell_magic(
        "siddhi",
        "Trades --nodes 3 --routing hash:symbol --param K=v --fresh --allow-scripts --shard-ids a,b,c -o kept",
        TRADES,
    )
    _, name, how = app.calls[0]
    assert name == "Trades"
    assert {k: how[k] for k in ("nodes", "mode", "routing", "fresh", "shard_ids", "variables", "allow_scripts")} == {
        "nodes": 3,
        "mode": None,
        "routing": "hash:symbol",
        "fresh": True,
        "allow_scripts": True,
        "shard_ids": ["a", "b", "c"],
        "variables": {"K": "v"},
    }
    assert shell.user_ns["kept"] is app
    assert repr(card).startswith("Trades: running · 2 nodes, active-active · shards node-1, node-2")
    assert "The outputs of rise depend on which node sees which event." in repr(card)


def test_the_card_says_where_the_routing_repairs_a_query(app: StandIn) -> None:
    app.runtime.plan = compile_app(
        "define stream S (k string, r string, n int);\n"
        "@info(name='rise') from every e1=S -> e2=S[k == e1.k] select e2.n as n insert into O;"
    )
    for routing, safety in [
        ("hash:k", "✓ right, as events are routed by k"),
        ("hash:r", "! right if routed by k"),
        ("round_robin", "! right if routed by k"),
    ]:
        app.runtime.deployment = replace(app.runtime.deployment, routing=routing)
        assert safety in card_text(app)


def test_the_card_has_the_notes_of_check(app: StandIn) -> None:
    app.runtime.plan = compile_app(
        "define stream S (k string, n int);\npartition with (k of S) begin\n"
        "@info(name='q') from S#window.timeBatch(1 sec) select k, sum(n) as s insert into O; end;"
    )
    app.lines_before = 1
    assert "\n  ! '#window.timeBatch' of query 'q' (line 4) ends its batches at times that all keys" in card_text(app)


def test_what_an_app_may_reach(shell: Any, app: StandIn) -> None:
    shell.run_cell_magic("siddhi", "Trades --allow file=out --allow http=http://localhost:8080", TRADES)
    shell.run_line_magic("config", "SiddhiMagic.allow = ['file=/data/out']")
    try:
        shell.run_cell_magic("siddhi", "Trades --allow kafka=localhost:9092", TRADES)
    finally:
        shell.run_line_magic("config", "SiddhiMagic.allow = []")
    given = [how["allow"] for _, _, how in app.calls]
    assert given == [["file=out", "http=http://localhost:8080"], ["file=/data/out", "kafka=localhost:9092"]]


def test_check_deploys_nothing_and_shows_the_way_out(shell: Any, app: StandIn) -> None:
    assert shell.run_cell_magic("siddhi", "--check", TRADES).ok
    with pytest.raises(SiddhiSyntaxError) as e:
        shell.run_cell_magic("siddhi", "--check", TRADES.replace("quantity long, ", "quantity long, ;"))
    assert "^" in str(e.value)
    with pytest.raises(SiddhiBindError) as bound:
        shell.run_cell_magic("siddhi", "--check", TRADES.replace("avg(price)", "avg(prise)"))
    assert "Did you mean 'price'?" in str(bound.value)
    assert app.calls == []


def test_another_name_than_the_texts_is_told(
    shell: Any, app: StandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    app.runtime.plan = compile_app("@app:name('Rooms') " + TRADES, {"shardId": "node-1"})
    for name in ("", "Rooms"):
        shell.run_cell_magic("siddhi", name, TRADES)
    assert capsys.readouterr().out == ""
    shell.run_cell_magic("siddhi", "Other", TRADES)
    assert capsys.readouterr().out == (
        "The app is called Other, as the line above says; @app:name('Rooms') in the text has no effect.\n"
    )


def test_what_a_deployment_would_change_is_said_before(
    shell: Any, app: StandIn, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = f"Trades --home {tmp_path} --nodes 2 --changes"
    assert shell.run_cell_magic("siddhi", cell, TRADES) is None
    assert capsys.readouterr().out == "Trades has no state yet: it begins.\n"
    assert (app.calls, [*tmp_path.iterdir()]) == ([], [])
    with pytest.raises(SiddhiSyntaxError, match="line 2"):
        shell.run_cell_magic("siddhi", cell, "from S select a insert into B;")


def test_a_cell_is_compared_with_the_running_app(shell: Any, tmp_path: Path) -> None:
    cell = "define stream S (v int);\n@info(name='q') from S[v > 3] select v insert into O;"
    shell.run_cell_magic("siddhi", f"Limits --home {tmp_path / 'home'} --master inline", cell)
    for v in (1, 4, 6):
        shell.run_line_magic("siddhi", f"send Limits.S [{v}]")
    comparison = shell.run_cell_magic("siddhi", "Limits --compare -o rows", cell.replace("> 3", "> 5"))
    assert comparison.totals == {"same": 1, "gone": 1, "new": 0, "other values": 0, "other time": 0}
    assert [str(c) for c in shell.user_ns["rows"]["cause"]] == ["v 4 is over 3 and not over 5", "None"]
    line = '--compare --warm-up "1 hour" --ignore v --freeze --rename O=P'
    comparison = shell.run_cell_magic("siddhi", f"Limits {line}", cell.replace("into O", "into P"))
    assert comparison.totals["not judged"] == 2
    with pytest.raises(SiddhiBindError, match="line 3"):
        shell.run_cell_magic("siddhi", "Limits --compare", cell.replace("v > 3", "w > 3"))
    with pytest.raises(Misuse, match="write %%siddhi NAME --compare"):
        shell.run_cell_magic("siddhi", "--compare", cell)
    shell.run_line_magic("siddhi", "stop Limits")


def test_an_error_is_one_message_without_a_traceback(shell: Any, app: StandIn) -> None:
    out = io.StringIO()
    with redirect_stdout(out):
        result = shell.run_cell("%siddhi check trades_text_that_is_not_there")
    assert isinstance(result.error_in_exec, Misuse)
    assert "neither a variable that holds a text nor a file" in out.getvalue()
    assert "Traceback" not in out.getvalue()
    whole = io.StringIO()
    with redirect_stdout(whole):
        line(shell, "tb")
    assert "Traceback (most recent call last)" in whole.getvalue()


def test_send(shell: Any, app: StandIn, capsys: pytest.CaptureFixture[str]) -> None:
    line(shell, """send Trades.TradeStream '["wso2", 100.0, 10, 5]' --node 2 --at 2024-06-01T10:00:00""")
    line(shell, """send Trades.TradeStream [("a b", 1.5, None, 5)] --at 7""")
    assert app.calls == [
        ("send", "TradeStream", ["wso2", 100.0, 10, 5], 1_717_236_000_000, 2),
        ("send", "TradeStream", [("a b", 1.5, None, 5)], 7, None),
    ]
    assert capsys.readouterr().out.splitlines() == [
        "Trades.TradeStream: 1 event sent to node-2, at 2024-06-01 10:00:00 → High 1",
        "Trades.TradeStream: 1 event sent to node-2, at 1970-01-01 00:00:00.007 → High 1",
    ]


def test_feed_takes_a_variable_or_a_file(shell: Any, app: StandIn, tmp_path: Any) -> None:
    shell.user_ns["trades_frame"] = frame = pd.DataFrame({"symbol": ["a"]})
    (tmp_path / "t.csv").write_text("symbol\na\n")
    reading = "--time timestamp --time-format s --time-zone UTC --map symbol=Name --map 'price=Last price' --decimal ,"
    reading += " --missing n/a,-"
    report = line(shell, f"feed Trades.TradeStream trades_frame {reading} --route node:1 --limit 3 -o fed")
    line(shell, f"feed Trades.TradeStream {tmp_path / 't.csv'}")
    assert app.calls[0][2] is frame
    assert app.calls[0][3] == {
        "time": "timestamp", "time_format": "s", "time_zone": "UTC", "route": "node:1", "limit": 3,
        "columns": {"symbol": "Name", "price": "Last price"}, "decimal": ",", "missing": ["n/a", "-"],
    }  # fmt: skip
    assert app.calls[1][2] == tmp_path / "t.csv"
    assert shell.user_ns["fed"] is report
    assert report.rows == 4
    assert repr(report).splitlines() == [
        "Trades.TradeStream: 3 events in 0.5 s elapsed, 6 events/s",
        "  → Rises: 2",
        "  ! 1 of 4 rows did not fit the stream and are kept: %siddhi errors Trades",
        "    1 × no number: 'x'",
    ]
    with pytest.raises(Misuse, match="Did you mean 'trades_frame'"):
        line(shell, "feed Trades.TradeStream trade_frame")


def test_a_frame_or_file_that_is_fed_again_is_pointed_out(
    shell: Any, app: StandIn, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.user_ns |= {"one": pd.DataFrame({"symbol": ["a"]}), "same": pd.DataFrame({"symbol": ["a"]})}
    path = tmp_path / "t.csv"
    path.write_text("symbol\na\n")
    for source in ("one", "same", str(path)):
        line(shell, f"feed Trades.TradeStream {source}")
    assert "before" not in capsys.readouterr().out
    for source in ("one", str(path)):
        line(shell, f"feed Trades.TradeStream {source}")
        said = capsys.readouterr().out
        assert f"{source} was fed to Trades.TradeStream before: its events are counted twice. %%siddhi -" in said
    path.write_text("symbol\nanother\n")
    line(shell, f"feed Trades.TradeStream {path}")
    assert "before" not in capsys.readouterr().out


def test_what_was_fed_is_known_to_a_new_kernel_and_forgotten_with_the_state(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("symbol\na\n")
    frame = pd.DataFrame({"symbol": ["a"]})
    first = FedBefore()
    first.add(tmp_path, "S", path)
    first.add(tmp_path, "S", frame)
    assert [first.has(tmp_path, s, f) for s in "ST" for f in (path, frame)] == [True, True, False, False]
    assert [FedBefore().has(tmp_path, "S", f) for f in (path, frame)] == [True, False]
    (tmp_path / NOTED).unlink()  # as --fresh does
    assert [first.has(tmp_path, "S", f) for f in (path, frame)] == [False, False]
    first.add(tmp_path, "S", frame)
    assert first.has(tmp_path, "S", frame)
    (tmp_path / NOTED).write_text("{")
    assert not first.has(tmp_path, "S", path)


def test_a_feed_of_which_nothing_came_in_is_not_pointed_out(
    shell: Any, app: StandIn, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.user_ns["none"] = pd.DataFrame({"symbol": ["a"]})
    monkeypatch.setattr(StandIn, "feed", lambda *_, **__: FeedReport("Trades", "TradeStream", 4, 4, 0.1))
    for _ in range(2):
        line(shell, "feed Trades.TradeStream none")
    assert "before" not in capsys.readouterr().out


def test_a_feed_in_the_background_is_a_handle(shell: Any, app: StandIn) -> None:
    shell.user_ns["trades_frame"] = pd.DataFrame({"symbol": ["a"]})
    feed = line(shell, "feed Trades.TradeStream trades_frame --background -o running")
    given = app.calls[0][3]
    assert given.pop("background") is True
    assert set(given.values()) == {None}
    assert shell.user_ns["running"] is feed
    with pytest.raises(Misuse, match="no feed 99"):
        line(shell, "feeds pause 99")
    with pytest.raises(Misuse, match="the feed's number is missing"):
        line(shell, "feeds stop")
    with pytest.raises(Misuse, match="cannot be 'halt'"):
        line(shell, "feeds halt 1")


def test_query_in_a_line_and_in_a_cell(shell: Any, app: StandIn) -> None:
    shown = line(shell, """query Trades "from TradeAggregation per "days" select *" --limit 2 -o df""")
    assert app.calls == [("query", 'from TradeAggregation per "days" select *')]
    assert len(shell.user_ns["df"]) == 40
    assert repr(shown).endswith("showing 2 of 40 rows")
    shell.run_cell_magic("siddhi", "--query Trades", "from TradeAggregation\nselect *\n")
    assert app.calls[1] == ("query", "from TradeAggregation\nselect *")
    with pytest.raises(Misuse, match="the query is missing"):
        line(shell, "query Trades")


def test_the_display_limit_is_a_setting(shell: Any, app: StandIn) -> None:
    shell.run_line_magic("config", "SiddhiMagic.displaylimit = 3")
    try:
        assert "showing 3 of 40 rows" in repr(line(shell, 'query Trades "from X select *"'))
    finally:
        shell.run_line_magic("config", "SiddhiMagic.displaylimit = 20")


def test_stop_button_is_one_line(shell: Any, app: StandIn) -> None:
    app.wait_forever = True
    with pytest.raises(Interrupted, match=r"stay\. Trades is running"):
        line(shell, 'query Trades "from X select *"')
    app.stop()
    with pytest.raises(Interrupted, match="Trades is stopped, and starts again with its next event or query"):
        line(shell, 'query Trades "from X select *"')
    assert "Trades  stopped" in repr(line(shell, "list"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("feeed Trades.TradeStream x", "no command 'feeed'. Did you mean 'feed'?"),
        ("explain Trade", "no app is called 'Trade'. Did you mean 'Trades'?"),
        ("output Trades.Rise", "has no stream 'Rise'. Did you mean 'Rises'?"),
        ("view Trades.TradeAgregation", "Did you mean 'TradeAggregation'?"),
        ("view Trades.TradeAggregation --per week", "no duration 'week'"),
        ("view Trades.TradeAggregation --measure totl", "Did you mean 'total'?"),
        ("send TradeStream [1]", "write NAME.TradeStream"),
        ("send Trades [1]", "write Trades.Stream"),
        ("send Trades.TradeStream 7", "must be a list or a dict"),
        ("send Trades.TradeStream [1,]x", "neither JSON nor Python"),
        ("send Trades.TradeStream [1] --at noon", "--at: 'noon' is neither"),
        ("stop", "which app? Write %siddhi stop NAME"),
        ("--nodes 3", "the command comes first, as in %siddhi list"),
        ("query Trades --limt 3 from X select *", "Did you mean '--limit'?"),
        ("failover Trades", "Trades has mode active-active: deploy it with --mode ha"),
        ("failover Trades --queue 3", "--queue is for a study: add --seeds 1000"),
        ("fault Trades kill node-1", "deploy it with --mode ha"),
        ("cluster Trades", "deploy it with --mode ha"),
    ],
)
def test_mistakes(shell: Any, app: StandIn, text: str, message: str) -> None:
    with pytest.raises(Misuse) as e:
        line(shell, text)
    assert message in str(e.value)


def test_faults_and_studies_of_failovers(shell: Any, app: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes, study = Mock(), Mock()
    monkeypatch.setattr(StandIn, "cluster", nodes)
    monkeypatch.setattr(StandIn, "failover_study", study)
    line(shell, "fault Trades kill node-1")
    line(shell, "fault Trades restart node-1 --at 2024-06-01T10:00:00")
    line(shell, "fault Trades pause node-2 --at 1 --until 2")
    line(shell, "fault Trades cut node-2 database --until 7")
    line(shell, "fault Trades slow node-2 database --by 3000 --at 3 --until 7")
    assert nodes.method_calls == [
        call.kill("node-1", None),
        call.restart("node-1", "2024-06-01T10:00:00"),
        call.pause("node-2", ("1", "2")),
        call.cut("node-2", "database", (None, "7")),
        call.slow("node-2", "database", 3000, ("3", "7")),
    ]
    for text, message in (
        ("kill node-1 node-2", "kill has one node, and 'node-2' is one more"),
        ("kill node-1 --until 3", "kill has no end: leave --until out"),
        ("pause node-1", "when does the pause end? Add --until TIME"),
        ("cut node-1 --until 3", "cut has two ends: a node, and the other one, `database` or `clients`"),
        ("cut node-1 node-2 --until 3 --by 3", "cut takes no --by: leave it out"),
        ("slow node-1 --until 3 --by 3", "slow has two ends: a node, and the other one or `database`"),
        ("slow node-1 node-2 --by 3", "when does the slow link end? Add --until TIME"),
        ("slow node-1 node-2 --until 3", "by how much is the link slower? Add --by MS"),
    ):
        with pytest.raises(Misuse, match=re.escape(message)):
            line(shell, f"fault Trades {text}")
    line(shell, "failover Trades --seeds 9 --persist 10,60 --out costs")
    study.assert_called_once_with(9, persist=[10, 60])
    assert shell.user_ns["costs"] is study.return_value.frame


def test_tail(shell: Any, app: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    tail = Mock()
    monkeypatch.setattr(app, "tail", tail, raising=False)
    for words in ("", " --append", " --latest symbol --last 5", " --number price --newest last"):
        assert line(shell, f"tail Trades.Rises{words}") is tail.return_value
    plain = {"last": 20, "latest": None, "number": None, "newest": "first"}
    assert [c.kwargs for c in tail.call_args_list] == [
        plain, plain, plain | {"latest": "symbol", "last": 5}, plain | {"number": "price", "newest": "last"},
    ]  # fmt: skip
    assert all(c.args == ("Rises",) for c in tail.call_args_list)


def test_chart(shell: Any, app: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    chart = Mock()
    monkeypatch.setattr(app, "chart", chart, raising=False)
    for words in ("", " --y price --y size --by symbol", " --x time --last 10min --kind bar"):
        assert line(shell, f"chart Trades.Rises{words}") is chart.return_value
    plain = {"y": None, "by": None, "x": None, "last": None, "kind": "line"}
    assert [c.kwargs for c in chart.call_args_list] == [
        plain, plain | {"y": ["price", "size"], "by": "symbol"}, plain | {"x": "time", "last": "10min", "kind": "bar"},
    ]  # fmt: skip
    assert all(c.args == ("Rises",) for c in chart.call_args_list)


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        ("1", [1]),
        ("1 2", [1, 2]),
        ("1,2", [1, 2]),
        ("1, 2 7-9", [1, 2, 7, 8, 9]),
        ("all", None),
        ("", None),
        ("1 --limit 5", [1]),
    ],
)
def test_errors_are_sent_once_more(
    shell: Any, app: StandIn, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: str, ids: Any
) -> None:
    replay = Mock(return_value="2 of the errors of Trades sent again")
    monkeypatch.setattr(app, "replay", replay, raising=False)
    assert line(shell, f"errors Trades --replay {words}") is None
    assert replay.call_args == call(ids, decimal=None, missing=None)
    assert capsys.readouterr().out == "2 of the errors of Trades sent again\n"


def test_stats_without_a_name_are_of_all_apps(shell: Any, app: StandIn) -> None:
    shown = line(shell, "stats")
    lines = repr(shown).splitlines()
    assert lines[0].startswith("1 app: 1 running · 0 errors")
    assert lines[2] == "Trades: running, active-active"
    assert "outputs 1,200" in lines[3]
    assert lines[-1].split()[:4] == ["node-1", "12,345", "1,234,568", "1.2"]
    data, _ = shell.display_formatter.format(shown)
    assert data["text/html"].startswith("<style>.sparkstream-overview {")
    with pytest.raises(Misuse, match="--prometheus is of one app: %siddhi stats NAME --prometheus"):
        line(shell, "stats --prometheus")


def test_the_other_commands(shell: Any, app: StandIn, capsys: pytest.CaptureFixture[str]) -> None:
    assert "  stream TradeStream (symbol string, " in repr(line(shell, "explain Trades"))
    assert "Trades  running      2  active-active  node-1, node-2" in repr(line(shell, "list"))
    assert "12,345 events sent · 1 entry waiting · 2 micro-batches" in repr(line(shell, "stats Trades"))
    assert repr(line(shell, "errors Trades")) == "Trades has no errors: every row and event was accepted."
    assert repr(line(shell, "output Trades.Rises")).splitlines()[2:] == [
        "   1  2024-06-01 10:00:00      a         1.5",
        "   2  2024-06-01 10:00:01.500  null      2.0",
        "2 events · times in UTC",
    ]
    capsys.readouterr()
    assert line(shell, "stats Trades --prometheus") is None
    assert 'sparkstream_lag_entries{app="Trades"} 1\n' in capsys.readouterr().out
    line(shell, "stop --all")
    assert app.state == "stopped"
    line(shell, "")
    line(shell, "feed --help")
    printed = capsys.readouterr().out
    assert "%siddhi feed NAME.Stream SOURCE" in printed
    assert "column of event times" in printed


def test_help_of_the_magic_lists_commands_and_options(shell: Any) -> None:
    text = shell.find_line_magic("siddhi").__doc__
    assert "%siddhi feed NAME.Stream SOURCE" in text
    assert "--routing HOW" in text


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("%%siddhi --help", "--routing HOW"),
        ("%%siddhi --help\n", "--routing HOW"),
        ("%siddhi --help", "%siddhi feed NAME.Stream SOURCE"),
        ("%siddhi feed --help", "--time COLUMN"),
    ],
)
def test_help_runs_as_a_cell_of_its_own(shell: Any, text: str, part: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = shell.run_cell(text)
    shown = capsys.readouterr().out
    assert result.success, shown
    assert part in shown
    assert max(map(len, shown.splitlines())) <= WIDTH


def test_help_of_the_commands_is_whole(shell: Any) -> None:
    shown = " ".join(overview(line_options()).split())
    for name, options in line_options().items():
        assert f"%siddhi {name}" in shown
        assert " ".join(str(options.description).split()) in shown
    with_help = shell.run_cell("%siddhi?")
    assert with_help.success
    assert shell.run_cell("%%siddhi?").success


def test_a_console_waits_for_the_body_of_a_cell(shell: Any) -> None:
    assert shell.check_complete("%%siddhi T")[0] == "incomplete"


def test_an_empty_line_below_is_for_bare_cells_of_this_magic_only() -> None:
    assert with_body(["%%siddhi --help"]) == ["%%siddhi --help\n", "\n"]
    for lines in (["%%siddhi T\n", "define"], ["%%siddhis\n"], ["%%time"], ["%siddhi list"], []):
        assert with_body(lines) == lines


def test_an_app_without_a_name_is_called_after_its_notebook(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    text = "define stream S (a int); from S select a insert into O;"

    def deployed(text: str, name: str | None = None) -> tuple[str, Path]:
        monkeypatch.setattr(sys.modules["sparkstream_nb.app.deploying"], "_start", lambda planned: planned.deployment)
        deployment: Any = api.deploy(text, name=name)
        return deployment.name, deployment.home

    assert deployed(text, "Given") == ("Given", default_home("Given"))
    assert deployed(f"@app:name('Own') {text}") == ("Own", default_home("Own"))
    name, home = deployed(text)
    assert name == "app"
    assert deployed(text) == (name, home)
    monkeypatch.setenv("JPY_SESSION_NAME", "/home/me/My trades (2).ipynb")
    name, home = deployed(text)
    assert name == "My_trades_2"
    assert deployed(text + " -- changed") == (name, home)
    monkeypatch.setenv("JPY_SESSION_NAME", "/home/you/My trades (2).ipynb")
    assert deployed(text)[1] != home
    monkeypatch.setenv("JPY_SESSION_NAME", "console-1")
    assert deployed(text)[0] == "app"
    shell.user_ns["__vsc_ipynb_file__"] = "/home/me/01_first.ipynb"
    assert deployed(text)[0] == "01_first"


def completions(shell: Any, text: str) -> set[str]:
    with provisionalcompleter():
        return {c.text for c in shell.Completer.completions(text, len(text))}


def test_completion(shell: Any, app: StandIn) -> None:
    assert "feed" in completions(shell, "%siddhi fe")
    assert "Trades.TradeStream" in completions(shell, "%siddhi send Trades.Tr")
    assert "--nodes" in completions(shell, "%%siddhi T --no")
    body = "%%siddhi T\ndefine stream Orders (item string, price double);\nfrom "
    assert "Orders" in completions(shell, body + "Ord")
    assert "price" in completions(shell, body + "Orders select pr")
    assert "#window.timeBatch" in completions(shell, body + "Orders#window.timeB")
    assert "@info" in completions(shell, body[:-5] + "@in")
    assert "TradeAggregation" in completions(shell, "%%siddhi --query Trades\nfrom Trade")


def test_values_and_times() -> None:
    assert literal("('a', 1)") == ["a", 1]
    assert milliseconds("1970-01-01T01:00:00+01:00", "--at") == 0
    assert milliseconds("-5", "--at") == -5
    with pytest.raises(Misuse, match="--at: 'noon' is neither ms since 1970 nor a time"):
        milliseconds("noon", "--at")


def test_attach_lists_and_gives_the_variable_back(
    shell: Any, app: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARKSTREAM_HOME", str(tmp_path))
    assert repr(line(shell, "attach")) == "No app can be attached yet. %%siddhi NAME deploys the text of a cell."
    home = default_home("Trades")
    home.mkdir(parents=True)
    request = DeployRequest(text=TRADES)
    open_folder(Deployment(request, "Trades", "single", "sticky", ("n",), home), app.plan)
    shown = repr(line(shell, "attach"))
    assert "app     deployed          owner  folder" in shown
    assert re.search(r"Trades  \d{4}-\d\d-\d\d \d\d:\d\d  free ", shown)
    with provisionalcompleter():
        found = [c.text for c in shell.Completer.completions("%siddhi attach Tr", 16)]
    assert found == ["Trades"]
    attach = Mock(return_value=app)
    monkeypatch.setattr(api, "attach", attach)
    monkeypatch.setattr(StandIn, "remembered_variable", "kept")
    assert line(shell, "attach Trades --param PW=x --home there") is app
    assert attach.call_args == call("Trades", "there", variables={"PW": "x"}, master=None)
    assert shell.user_ns["kept"] is app
    line(shell, "attach Trades -o mine")
    assert shell.user_ns["mine"] is app


def test_the_cell_is_remembered(shell: Any, app: StandIn) -> None:
    shell.run_cell_magic("siddhi", "Trades -o kept", TRADES)
    assert app.remembered == ("kept", 1)


def test_trace_draws_a_query_of_an_app(shell: Any, app: StandIn) -> None:
    frame = pd.DataFrame({"symbol": "a", "price": [1.0, 3.0, 2.0], "quantity": 1, "timestamp": [0, 1000, 2000]})
    shell.user_ns["ticks"] = frame
    found = line(shell, "trace Trades.rise ticks --time timestamp -o kept")
    assert shell.user_ns["kept"] is found
    assert [p.end for p in found.partials] == ["match", "waiting", "waiting"]
    assert line(shell, "trace Trades --from TradeStream=ticks --time timestamp --limit 2").feed.cut
    assert app.trace("rise", frame, time="timestamp").partials == found.partials
