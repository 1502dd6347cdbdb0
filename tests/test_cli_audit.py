"""`sparkstream audit`: findings by hand, over the cases, and in the forms for machines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reference import replay
from sparkstream_nb.app import check_feed
from sparkstream_nb.app.audit.audit_answers import FeedFiles
from sparkstream_nb.app.audit.audit_feeds import _read_files
from sparkstream_nb.app.audit.auditing import AppAudit, AuditReport, as_json, as_sarif, audit_text
from sparkstream_nb.cli import main
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.lab.display import text
from sparkstream_nb.lab.plans_shown import page
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.reports.audit import Finding

APP = """@app:name('Aud')
define stream S (k string, v double, ts long);
@sink(type='inMemory', topic='x')
define stream Out (s double);
define trigger Tick at every 1 sec;
define table T (k string, v double);
define table U (k string, v double);
define window W (k string, v double) length(5);
define window V (k string, v double) time(5 sec);
define aggregation A from S select k, sum(v) as s group by k aggregate by ts every sec ... day;
@info(name='rush'{accepted}) from S#window.length(3) select sum(v) as s insert into Out;
@info(name='keep') from S select k, v insert into T;
@info(name='all') from S[v > 1.0] select k, v insert into U;
@info(name='one') from S[v > 2.0 in U] select k insert into O;
@info(name='pass') from S[v > 3.0] select k, v insert into V;
"""
ACCEPTED = ", scale.out='accepted: only a <b>hint'"


def found(accepted: str = "") -> dict[str, Finding]:
    return {f.name: f for f in audit_text("a.siddhi", APP.format(accepted=accepted)).findings}


def test_each_element_by_hand() -> None:
    findings = found()
    assert {n: (f.kind, f.line, f.level) for n, f in findings.items()} == {
        "inMemory of Out": ("sink", 3, "node-dependent"), "Tick": ("trigger", 5, "node-dependent"),
        "T": ("table", 6, "keyed"), "U": ("table", 7, "node-dependent"), "W": ("window", 8, "node-dependent"),
        "V": ("window", 9, "safe"), "A": ("aggregation", 10, "node-dependent"), "rush": ("query", 11, "node-dependent"),
        "keep": ("query", 12, "keyed"), "all": ("query", 13, "node-dependent"), "one": ("query", 14, "node-dependent"),
        "pass": ("query", 15, "safe"),
    }  # fmt: skip
    assert findings["inMemory of Out"].cause == "query rush depends on the node"
    assert "define aggregation" not in findings["rush"].repair
    assert findings["A"].repair.startswith("@PartitionById")


TABLES = """
define stream S (k string, v double);
define stream R (k string, v double);
{store}define table T (k string, v double);
@sink(type='log') define stream Sums (k string, s double);
@info(name='writes') from S select k, v insert into T;
@info(name='sums') from S select k, sum(v) as s group by k insert into Sums;
"""


def of_tables(more: str = "", store: str = "@store(type='rdbms', datasource='d') ") -> AppAudit:
    return audit_text("a.siddhi", TABLES.format(store=store) + more)


def test_tables_in_a_database_are_as_safe_as_their_queries() -> None:
    found = {f.name: f for f in of_tables().findings}
    assert (found["T"].level, found["writes"].level) == ("safe", "safe")
    assert of_tables().exit_code == 0
    joined = of_tables("@info(name='reads') from R join T on R.k == T.k select R.k, T.v insert into O;")
    found = {f.name: f for f in joined.findings}
    assert (found["T"].level, found["T"].repair, joined.exit_code) == ("keyed", "route by k (hash:k)", 0)
    deleted = of_tables("@info(name='low') from R delete T on T.v < v;")
    found = {f.name: f for f in deleted.findings}
    assert (found["T"].level, deleted.exit_code) == ("node-dependent", 1)
    assert "query 'low' names no key of it" in found["T"].cause
    assert "database" not in found["T"].repair


def test_a_sink_is_as_safe_as_the_queries_behind_it() -> None:
    (sink,) = [f for f in of_tables().findings if f.kind == "sink"]
    assert (sink.level, sink.repair, sink.keys) == ("keyed", "route by k (hash:k)", (("S", "k"),))
    assert "query 'sums'" in sink.cause


@pytest.mark.parametrize(
    ("more", "database"),
    [("@info(name='low') from R delete T on T.v < v;", True),
     ("@info(name='top') from R join T on R.v > T.v select T.k insert into O;", True)],
)  # fmt: skip
def test_putting_a_table_into_a_database_makes_nothing_worse(more: str, database: bool) -> None:
    memory, stored = of_tables(more, ""), of_tables(more)
    (table,) = [f for f in memory.findings if f.name == "T"]
    assert ("put it into a database" in table.repair) == database
    assert len(stored.failing) < len(memory.failing)
    levels = {f.name: f.level for f in stored.findings}
    rank = ["safe", "keyed", "node-dependent"]
    assert all(rank.index(levels[f.name]) <= rank.index(f.level) for f in memory.findings)


def test_the_last_word_agrees_with_the_table() -> None:
    said = text(of_tables()).splitlines()[0]
    assert said == "a.siddhi: nothing depends on the node that is not accepted, if events are routed by k (hash:k)"
    two = of_tables("@info(name='other') from S select v, count() as n group by v insert into O;")
    said, step = text(two).splitlines()[:2]
    assert said.endswith("but its queries need different routings: sums under hash:k; other under hash:v.")
    assert "@dist(execGroup='NAME')" in step
    assert "sparkstream split" in step
    assert two.exit_code == 1
    both = of_tables("@info(name='all') from S select sum(v) as s insert into O;")
    assert text(both).splitlines()[0] == (
        "a.siddhi: 1 element depends on the node; 2 more are right only if events are routed by k (hash:k)"
    )


def test_what_is_accepted_does_not_fail() -> None:
    findings = found(ACCEPTED)
    assert findings["rush"].accepted == "only a <b>hint"
    assert not findings["rush"].fails
    assert findings["inMemory of Out"].accepted == "only a <b>hint"
    assert found(", scale.out='why not'")["rush"].fails


def test_lines_are_those_of_definitions_and_aggregations_are_accepted_too() -> None:
    text = (
        "-- define aggregation A\ndefine stream S (k string, v double);\n@info(scale.out='accepted: a day only')\n"
        "define aggregation A from S select sum(v) as s aggregate every sec ... day;\n"
    )
    (finding,) = audit_text("a.siddhi", text).findings
    assert (finding.line, finding.level, finding.accepted) == (3, "node-dependent", "a day only")


def test_the_forms_for_machines() -> None:
    first_app = audit_text("my apps/a.siddhi", APP.format(accepted=ACCEPTED))
    report = AuditReport([first_app, audit_text("b.siddhi", "from S")])
    (first, second) = json.loads(as_json(report))
    assert (first["app"], len(first["findings"]), second["findings"]) == ("my apps/a.siddhi", 12, [])
    assert "line 1" in second["error"]
    sarif = json.loads(as_sarif(report))
    assert (sarif["version"], len(sarif["runs"])) == ("2.1.0", 1)
    (run,) = sarif["runs"]
    rules = {r["id"] for r in run["tool"]["driver"]["rules"]}
    for result in run["results"]:
        assert result["ruleId"] in rules
        assert result["level"] in ("none", "note", "warning", "error")
        assert result["message"]["text"]
        (place,) = (x["physicalLocation"] for x in result["locations"])
        assert place["region"]["startLine"] >= 1
    assert run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "my%20apps/a.siddhi"
    assert [r["ruleId"] for r in run["results"] if r["level"] == "error"] == ["scale-out/error"]
    suppressed = [r for r in run["results"] if "suppressions" in r]
    assert {r["suppressions"][0]["justification"] for r in suppressed} == {"only a <b>hint"}
    html = page(report)
    assert "<b>hint" not in html
    assert "accepted: only a &lt;b&gt;hint" in html
    assert "src=" not in html
    assert "accepted: only a <b>hint" in text(report)


MANUAL = """@app:name('Trades')
define stream TradeStream (symbol string, price double, quantity long, timestamp long);
@store(type='rdbms', datasource='TEST_DB')
define aggregation TradeAggregation from TradeStream
select symbol, avg(price) as avgPrice, sum(quantity) as total group by symbol aggregate by timestamp every sec ... year;
"""


@pytest.mark.parametrize(
    ("files", "code", "said"),
    [
        ("active-active/node-1.yaml active-active/node-2.yaml", 0, "merged when it is read"),
        ("active-active", 0, "merged when it is read"),
        ("single", 1, "its rows carry no shard id"),
        ("minimum-ha", 1, "note: the deployment files are of minimum HA, where one node is active"),
        ("scalable", 2, "the deployment file has no data source 'TEST_DB'"),
        ("distributed", 2, "the deployment file has no data source 'TEST_DB'"),
    ],
)
def test_the_manuals_deployments(
    files: str, code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "trades.siddhi").write_text(MANUAL)
    conf = Path(__file__).parents[1] / "conf"
    given = [str(conf / f) for f in files.split()]
    assert main(["audit", str(tmp_path / "trades.siddhi"), "--deployment", *given]) == code
    out, err = capsys.readouterr()
    assert said in out + err


@pytest.mark.parametrize("part", range(4))
def test_every_case_is_audited(part: int) -> None:
    for case in list(replay.siddhi_cases())[part::80]:
        app = audit_text(case["id"], case["app"])
        lines = case["app"].count("\n") + 1
        assert all(1 <= f.line <= lines and f.cause and f.repair for f in app.findings)
        json.loads(as_sarif(AuditReport([app])))


def test_a_feed_for_no_app_is_an_error_of_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app, feed = tmp_path / "app.siddhi", tmp_path / "feed.csv"
    app.write_text("define stream S (v int); from S[v > 1] select v insert into O;")
    feed.write_text("v\n1\n2\n")
    assert main(["audit", str(app), "--feed", f"T={feed}"]) == 2
    assert "--feed: no app has a stream 'T'" in capsys.readouterr().err


def test_exit_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    right, wrong, broken = (tmp_path / f"{n}.siddhi" for n in ("right", "wrong", "broken"))
    right.write_text("define stream S (v int); from S[v > 1] select v insert into O;")
    wrong.write_text("define stream S (v int); from S#window.length(2) select sum(v) as s insert into O;")
    broken.write_text("define stream S (v in); from S")
    assert main(["audit", str(right)]) == 0
    assert main(["audit", str(right), str(wrong), "--sarif", str(tmp_path / "a.sarif")]) == 1
    assert main(["audit", str(broken), str(wrong), "--html", str(tmp_path / "a.html"), "--json"]) == 2
    assert "window &#x27;length&#x27;" in (tmp_path / "a.html").read_text()
    assert json.loads((tmp_path / "a.sarif").read_text())["runs"][0]["results"]
    assert main(["audit", str(tmp_path / "none.siddhi")]) == 2
    assert "none.siddhi: file not found" in capsys.readouterr().out


RISE = (
    "@source(type='http', receiver.url='http://x', @map(type='json')) define stream S (k string, v int);\n"
    "@info(name='rise') from every e1=S -> e2=S[k == e1.k] select e1.v as a, e2.v as b insert into O;"
)


def test_feeds_are_measured_without_spark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app, other, feed = (tmp_path / n for n in ("app.siddhi", "other.siddhi", "feed.csv"))
    app.write_text(RISE)
    other.write_text("define stream R (k string); from R select k insert into O;")
    # a1 a2 b1 b2 to nodes 1 2 1 2: neither match stays
    feed.write_text("k,v\na,1\na,2\nb,1\nb,2\nc,x\nd\n")
    assert main(["audit", str(app), str(other), "--feed", f"S={feed}", "--json"]) == 0
    measured = [a.get("measured") for a in json.loads(capsys.readouterr().out)]
    assert measured[1] is None
    assert measured[0]["rejected"] == 2
    ways = measured[0]["ways"]
    assert [(w["nodes"], w["routing"], w["repaired"]) for w in ways] == [
        (2, "round_robin", False), (3, "round_robin", False), (4, "round_robin", False), (4, "hash:k", True),
    ]  # fmt: skip
    assert ways[0]["queries"]["rise"] == {"same": 0, "lost": 2, "spurious": 0, "late": 0, "duplicated": 0}
    assert ways[3]["queries"]["rise"]["same"] == 2
    assert main(["audit", str(app), "--feed", f"S={feed}"]) == 0
    assert "measured: repaired, 4 nodes, hash:k: 2 outputs, all as one node's" in capsys.readouterr().out


def test_each_query_is_measured_under_its_own_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app, feed = tmp_path / "app.siddhi", tmp_path / "feed.csv"
    app.write_text(
        "define stream S (k string, v int);\n"
        "@info(name='rise') from every e1=S -> e2=S[k == e1.k] select e1.v as a, e2.v as b insert into O;\n"
        "@info(name='same') from every e1=S -> e2=S[v == e1.v] select e1.v as a, e2.v as b insert into O;\n"
    )
    feed.write_text("k,v\na,1\na,2\nb,1\nb,2\n")
    assert main(["audit", str(app), "--feed", f"S={feed}"]) == 1
    told = capsys.readouterr().out
    assert "rise under hash:k; same under hash:v." in told
    assert "measured: 2 nodes, round_robin: 2 differ from one node's (rise: 2 lost)" in told
    assert "measured: repaired, 4 nodes, hash:k (rise): 2 outputs, all as one node's" in told
    assert "measured: repaired, 4 nodes, hash:v (same): 2 outputs, all as one node's" in told


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--feed S=none.csv", "file not found: none.csv"),
        ("--feed S", "'S' is not STREAM=FILE"),
        ("--sarif none/a.sarif", "none/a.sarif cannot be written"),
        ("--html none/a.html", "none/a.html cannot be written"),
        ("--json --sarif a.sarif", "not allowed with argument --json"),
        ("--deployment none.yaml", "there is no deployment file none.yaml"),
    ],
)
def test_errors_of_use(
    words: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.siddhi").write_text(RISE)
    assert main(["audit", "app.siddhi", *words.split()]) == 2
    assert said in capsys.readouterr().err


def test_a_table_in_a_database_takes_no_event_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in memory while the nodes are replayed, where whole batches run."""
    monkeypatch.setattr(NodeEngine, "_run_by_chunk", None)
    feed = tmp_path / "feed.csv"
    feed.write_text("k,v\na,1\na,2\nb,1\nb,2\n")
    text = """
        define stream S (k string, v double);
        @store(type='rdbms', datasource='d') @primaryKey('k') define table T (k string, v double);
        @info(name='sums') from S select k, sum(v) as v group by k insert into O;
        @info(name='writes') from O select k, v update or insert into T on T.k == k;
    """
    measured = audit_text("a.siddhi", text, feeds=FeedFiles([("S", str(feed))])).measured
    assert measured is not None
    assert measured.failure is None
    assert [m.queries["sums"]["same"] for m in measured.ways] == [2, 2, 2, 4]


def test_feeds_whose_rows_are_out_of_order_are_merged_by_time(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t,v\n30,3\n10,1\n20,x\n")
    (tmp_path / "b.csv").write_text("t,v\n40,4\n20,2\n30,5\n")
    plan = compile_app("define stream A (v int); define stream B (v int); from A select v insert into O;")
    files = [("A", str(tmp_path / "a.csv")), ("B", str(tmp_path / "b.csv"))]
    feeds = FeedFiles(files, {"time": "t"})
    shapes = [check_feed(plan, s, Path(p), feeds.by_stream(plan)[s]) for s, p in files]
    batch, rejected, _ = _read_files(plan, feeds, shapes)
    assert (batch.clock.tolist(), rejected) == ([10, 20, 30, 30, 40], 1)
    rows = {s: (r.step.tolist(), r.ts.tolist(), r.columns[0].to_pylist()) for s, r in batch.rows.items()}
    assert rows == {"A": ([0, 2], [10, 30], [1, 3]), "B": ([1, 3, 4], [20, 30, 40], [2, 5, 4])}


@pytest.mark.parametrize(
    ("files", "note"),
    [
        ("scalable", "note: the deployment files are of minimum HA, where one node is active"),
        ("distributed", "note: the deployment files are of a fully distributed deployment, which divides the app"),
    ],
)
def test_files_of_other_deployments_are_taken_with_a_note(
    files: str, note: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.siddhi").write_text("define stream S (k string); from S insert into O;")
    conf = Path(__file__).parents[1] / "conf" / files
    assert main(["audit", str(tmp_path / "a.siddhi"), "--conf", str(conf)]) == 0
    assert note in capsys.readouterr().out


def test_an_app_needs_no_data_sources_of_managers(tmp_path: Path) -> None:
    (tmp_path / "a.siddhi").write_text(
        "define stream S (k string); @store(type='rdbms', datasource='D') define table T (k string);\n"
        "from S insert into T;"
    )
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "manager.yaml").write_text("wso2.carbon: {id: m}\ndeployment.config: {type: distributed}\n")
    (conf / "worker.yaml").write_text(
        "wso2.carbon: {id: w}\ndeployment.config: {type: distributed, resourceManagers: []}\n"
        "wso2.datasources: {dataSources: [{name: D, definition: {configuration: {jdbcUrl: 'jdbc:sqlite:x.db'}}}]}\n"
    )
    assert main(["check", str(tmp_path / "a.siddhi"), "--conf", str(conf)]) == 0
