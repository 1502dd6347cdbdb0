"""How apps and their results are shown: in plain text, in HTML, by IPython, and without it."""

from __future__ import annotations

import math
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sparkstream_nb
from sparkstream_nb.app import (
    AppGraph,
    Apps,
    AuditReport,
    Branch,
    Check,
    Displayed,
    DistributedFailover,
    Divergence,
    Errors,
    EventHistory,
    Events,
    Failover,
    FailoverStudy,
    FeedReport,
    Feeds,
    FrameFeed,
    Kill,
    Moment,
    OutputOrigin,
    Pair,
    PlanText,
    ResourceCluster,
    ResourceNode,
    Result,
    RuleComparison,
    RuleSweep,
    Sent,
    SplitApp,
    Study,
    Tail,
    WhyNot,
    check,
    repair,
    trace,
)
from sparkstream_nb.app.attaching import Attachable, FoundApp
from sparkstream_nb.app.audit.auditing import audit_text
from sparkstream_nb.app.config.record import DeploymentRecord
from sparkstream_nb.app.explaining.branch import ReplayedInput
from sparkstream_nb.app.explaining.event_history import EntryKind, HistoryEntry
from sparkstream_nb.app.explaining.why_not import Explanation, Reason
from sparkstream_nb.app.pictures import moves_picture
from sparkstream_nb.app.removal import AppFolder, AppFolders
from sparkstream_nb.app.results import frontend  # fmt: skip
from sparkstream_nb.app.results.app_profile import BatchTime, KeyProfile, NodeProfile, PartProfile, Profile, StateGrowth
from sparkstream_nb.app.results.divergence import Truth
from sparkstream_nb.app.results.failover_study import Wanted, runs_of
from sparkstream_nb.app.results.label_scores import Example
from sparkstream_nb.app.results.listeners import Followed
from sparkstream_nb.app.results.moment import MomentEvent, MomentOutput
from sparkstream_nb.app.results.overview import AppOverview, NodeOverview, Overview
from sparkstream_nb.app.results.rule_trial import RuleTrial
from sparkstream_nb.app.results.selected_events import Selection
from sparkstream_nb.app.results.selection_criteria import Criteria
from sparkstream_nb.app.results.sql_answer import RelationLine, SqlAnswer, SqlRelations
from sparkstream_nb.app.results.stream_chart import Chart, ChartShape
from sparkstream_nb.app.results.stream_cursor import StreamEnd
from sparkstream_nb.app.results.stream_tail import TailShape
from sparkstream_nb.app.running.input_recording import AppRecording
from sparkstream_nb.engine.runtime.descriptions import (
    DescribedEvent,
    DescribedNode,
    DescribedQuery,
    DescribedWindow,
)
from sparkstream_nb.engine.state.node_batch import InputBatch, StreamRows
from sparkstream_nb.errors import Misuse, SparkStreamError
from sparkstream_nb.journal.inbox import Inbox
from sparkstream_nb.lab import display
from sparkstream_nb.lang.clause_changes import TextComparison
from sparkstream_nb.lang.parser import parse
from sparkstream_nb.messaging import Messaging
from sparkstream_nb.nodes.distributed import Distributed, apps_of
from sparkstream_nb.nodes.tallies import Tally
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.distributed.distribute import distribute
from sparkstream_nb.plan.reports.app_graph import Graph, GraphNode
from sparkstream_nb.replay.failover_replay import outcome_of, truth_of
from sparkstream_nb.replay.failover_tasks import FailoverCounts
from sparkstream_nb.replay.input_history import InputHistory, StepRows
from sparkstream_nb.replay.replay import ONE, Nodes, Recording, Way
from sparkstream_nb.replay.rescheduling_replay import distributed_outcome
from sparkstream_nb.replay.study_tasks import Input, RoutingOutcome
from sparkstream_nb.simulation.faults import Scenario
from sparkstream_nb.simulation.node_groups import NodeGroups
from sparkstream_nb.simulation.placements import RunSpan
from sparkstream_nb.simulation.resources import ResourceScenario
from sparkstream_nb.sources.intake import SourceFigures
from sparkstream_nb.testing.suite_results import AppTestReport, AppTestResult

from .clusters import fed
from .conftest import HOUR, TRADES, StandIn, unbegun_feed


def diverging(folder: Path) -> Divergence:
    """Two nodes that each see one event of a pattern, and the half of an aggregation."""
    plan = compile_app(
        "define stream S (k string, v int); define aggregation A from S select sum(v) as s aggregate every sec;"
        "@info(name='rise') from every e1=S -> e2=S[v > e1.v] select e1.k as k, e2.v as v insert into O;"
    )
    at = np.array([HOUR, HOUR + 1000])
    inbox = Inbox(folder)
    inbox.append([inbox.batch(InputBatch(at, {"S": StreamRows(np.arange(2), at, [["<i>"] * 2, [1, 2]])}), "hash:v")])
    inbox.close()
    source = Input(str(folder), {s: d.source.schema for s, d in plan.streams.items()}, 2, 1)
    return Truth("App", source, Nodes(plan), ["node-1", "node-2"]).against(Way(2))


def changed_rule(folder: Path) -> RuleComparison:
    """Two events of which one passes a filter, and another one under the other text."""
    old = "define stream S (k string, v int); @info(name='<q>') from S[v > 5] select k, v insert into O;"
    plan, at = compile_app(old), np.array([HOUR, HOUR + 1000])
    inbox = Inbox(folder)
    inbox.append([inbox.batch(InputBatch(at, {"S": StreamRows(np.arange(2), at, [["<i>"] * 2, [1, 7]])}), "hash:v")])
    inbox.close()
    source = Input(str(folder), {s: d.source.schema for s, d in plan.streams.items()}, 1, 1)
    texts = TextComparison.of(parse(old), parse(old.replace("v > 5", "v < 5")))
    return RuleTrial("<App>", texts, Nodes(plan), compile_app).over(source.read(), ONE)


def failing() -> Failover:
    """A pair of which the first node dies after a minute and a half of five."""
    plan = compile_app("define stream S (v int); @info(name='<q>') from S select v insert into O;")
    at = HOUR + 1000 * np.arange(300)
    items = [InputBatch(at, {"S": StreamRows(np.arange(300), at, [list(range(300))])})]
    groups = NodeGroups((Scenario(Pair(), 0, (Kill(90_000, "node-1"),)),))
    nodes = Nodes(plan)
    return Failover("<App>", {"O": "<q>"}, outcome_of(items, groups, nodes, truth_of(items, nodes)), groups)


def moving() -> DistributedFailover:
    """Two nodes of a distributed app, of which one dies after a minute and a half of five."""
    plan = compile_app("define stream S (v int); @info(name='<q>') from S select v insert into O;")
    at = HOUR + 1000 * np.arange(300)
    items = [InputBatch(at, {"S": StreamRows(np.arange(300), at, [list(range(300))])})]
    split, cluster = distribute(plan, "<App>"), ResourceCluster((ResourceNode("<n>"), ResourceNode("n2")))
    for node in cluster.nodes:
        app = Distributed(split, ResourceScenario(cluster, apps_of(split), 1, (Kill(90_000, node),)))
        nodes = Nodes(plan)
        found = distributed_outcome(items, app, nodes, truth_of(items, nodes))
        if found.reports["<App>-default-1"].beginnings[1:]:
            return DistributedFailover("<App>", {"O": "<q>"}, found, app)
    raise AssertionError("no node ran the app")


APP = StandIn()
FAILOVER = failing()
MOVED = moving()
RUNS = runs_of(Pair(), Wanted(2, "kill", {"queue": [10, 20]}), 300_000)
COSTS = FailoverStudy("<App>", *RUNS, [FailoverCounts(1, 30_000, 30 + i, 5, i, 0, 1000 * i, 99) for i in range(4)])
CLUSTER = fed(NodeGroups((Scenario(Pair(), 1, (Kill(90_000, "node-1"),)),)), 200, app="<App>").cluster
FOLDER = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # as long as this process
RULE_FOLDER = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # as long as this process
DIVERGENCE = diverging(Path(FOLDER.name))
NAN = math.nan
CHANGED_RULE = changed_rule(Path(RULE_FOLDER.name))
SWEEP = RuleSweep(
    "<App>", "${N}", 3, ({"N": "<1>"}, {"N": "2"}),
    ({"outputs": 4, "same": 3, "gone": 0, "new": 1, "precision": 0.25, "recall": 1.0, "f1": 0.4, "delay": 61_000.0},
     {"outputs": 0, "same": 0, "gone": 3, "new": 0, "precision": NAN, "recall": 0.0, "f1": 0.0, "delay": NAN}),
    ((Example("false positive", "<S>", HOUR, ("<v>",)),), ()),
)  # fmt: skip
STUDIED = Study("App", [RoutingOutcome(Way(2, "hash:<k>"), {"O": Tally(5, 1, 20_000, 1)}, (3, 1))], {"O": "q"})
STORED = "@store(type='mongodb') define table T (a string); define stream S (a string); from S insert into T;"
FEED = unbegun_feed()
NOTHING = pd.DataFrame({"stream": [], "timestamp": [], "values": [], "reason": []})
REFUSED = pd.DataFrame(
    {"stream": ["S"] * 2, "timestamp": [HOUR, None], "values": [["<b>"], [1]], "reason": ["<r>"] * 2}
)


class Ends:
    """The end of a stream of three events."""

    def total(self) -> int:
        return 3

    def read(self, most: int, key: str | None) -> StreamEnd:
        return StreamEnd(pd.DataFrame({"k": ["<i>", "b"], "v": [5, 7]}), 3)


OVERVIEW = Overview(
    (AppOverview("<A>", "failed", "ha", nodes=(NodeOverview("<n>", "down", events=3),), problems=("<gone>",)),)
)
CHART = Chart("App", "<S>", ChartShape(("v",), by="k", x="v"), Ends(), lambda callback: lambda: None)
TAIL = Tail("App", "<S>", TailShape(), Ends(), lambda callback: lambda: None)


def source(**behind: int) -> SourceFigures:
    """A Kafka source that is so many messages behind, by partition."""
    return SourceFigures("S-kafka-1", "S", "kafka", "t, u at <h>", 9, 7, 2, behind, "away <i>")


class Follower:
    """The thread of a streaming frame whose query fails."""

    paused = False

    def figures(self) -> SourceFigures:
        return source()


FOLLOWED = FrameFeed(cast(Any, SimpleNamespace(stopped=False)), cast(Any, Follower()))


class OneStep:
    """The moments of an input of one step: the beginning is as its end."""

    def history(self) -> InputHistory:
        rows = StepRows(np.array([1]), np.array([0]))
        return InputHistory(Recording((), {}, 1), np.array([1000]), {"S": rows}, {"O": rows}, [])

    def commits(self) -> StepRows:
        return StepRows(np.array([1]), np.array([0]))

    def moment(self, position: int) -> Moment:
        return replace(MOMENT, position=position)


IN_WINDOW = DescribedWindow("S", "length", ["k"], [DescribedEvent(1000, {"k": "<i>"})], None)
MOMENT = Moment(
    "<App>",
    compile_app("define stream S (k string); @info(name='<q>') from S#window.length(2) select k insert into O;"),
    1, 2, 1000, {"node-1": DescribedNode(1000, {"<q>": DescribedQuery([IN_WINDOW], None, (), None)}, {}, {})},
    [MomentEvent(1, "S", 1000, ["<i>"], "node-1")], [], cast(Any, OneStep()),
)  # fmt: skip
NO_INPUT = ReplayedInput(Recording((), {}, 1), Way(1), Nodes(MOMENT.plan), ["node-1"])
BRANCH = Branch("<App>", ["without event 1"], NO_INPUT, NO_INPUT, lambda: MOMENT)
WHY_NOT = WhyNot(
    "<App>", "O", {"k": "<i>"},
    Explanation(Reason.CONDITION, "<q>: v > 1 was not true", ["v > 1"], MOMENT.events),
)  # fmt: skip
CAME = HistoryEntry(EntryKind.CAME, 1, 1000, "node-1", "S", "came in with (<i>)")
HISTORY = EventHistory("<App>", MOMENT.events[0], [CAME], ["the window of <q>"], [], True, cast(Any, None))
ORIGIN = OutputOrigin("<App>", MomentOutput("O", "<q>", 1000, ["<i>"], "node-1"), MOMENT.events, 0)
PROFILE = Profile(
    "<App>", 9, [NodeProfile("node-1", 9, 2.0, 100, "by operator")],
    [PartProfile("node-1", "<q>", "select", 1.0, 9, 3)], [KeyProfile("S", "k", "<i>", 9, 1.0)],
    [StateGrowth("<q>", 50, 100, None, 7)], BatchTime(2, 3.0, 1.0), ["<q> is slow."],
)  # fmt: skip
SELECTION = Selection(
    Criteria(keys={"<k>": ("<i>",)}), lambda c: [], [], Followed("<App>", lambda c: lambda: None), lambda: SELECTION
)
SQL_ANSWER = SqlAnswer(pa.table({"<c>": ["<i>"]}), True, ["a <note>"])
SQL_RELATIONS = SqlRelations((RelationLine("<App>.outputs.O", [("<a>", "BIGINT")]), RelationLine("x", [])))

SHOWN: list[tuple[Displayed, str, str]] = [
    (HISTORY, "Event 1 of S (<i>) at 1970-01-01 00:00:01\nAt the end of the input it", "came in with (&lt;i&gt;)"),
    (ORIGIN, "O (<i>) at 1970-01-01 00:00:01 on node-1, by <q>\nIt was made of 1 event.", "by &lt;q&gt;</b>"),
    (MOMENT, "event 1: S (<i>) to node-1", "event 1: S (&lt;i&gt;) to node-1"),
    (MOMENT["<q>"], "<q> (length(2)), node-1: 1 event\n", "&lt;i&gt;"),
    (BRANCH, "<App>, a branch: without event 1\n", "&lt;App&gt;, a branch: without event 1"),
    (WHY_NOT, "O with k <i> did not come\n<q>: v > 1 was not true", "O with k &lt;i&gt; did not come"),
    (MOVED, "<App> on 2 resource nodes, against one node that never fails: 1 partial app begun again", "&lt;q&gt;"),
    (APP, "Trades: running · 2 nodes, active-active · shards node-1, node-2 · routing round_robin\n", "<b>Trades</b>"),
    (Apps({"Trades": APP}), "Trades  running      2  active-active  node-1, node-2\n1 app", "<td"),
    (PROFILE, "<App>: 2.0 ms of 1 node for 9 events\n\n<q> is slow.", "&lt;q&gt; is slow."),
    (SELECTION, "<App>: <k> <i>\n\nNothing is selected", "&lt;App&gt;: &lt;k&gt; &lt;i&gt;"),
    (SQL_ANSWER, "a <note>", "a &lt;note&gt;"),
    (SQL_RELATIONS, "<App>.outputs.O  <a> BIGINT", "&lt;a&gt; BIGINT"),
    (SqlRelations(()), "No app yet.", "No app yet."),
    (Apps({}), "No app yet. %%siddhi NAME deploys the text of a cell.", "No app yet."),
    (
        FeedReport("App", "S", 10, 2, 0.5, {"O": 3}, {"<r>": 1, "q": 1}),
        "App.S: 8 events in 0.5 s elapsed, 16 events/s\n  → O: 3\n"
        "  ! 2 of 10 rows did not fit the stream and are kept: %siddhi errors App\n    1 × <r>\n    1 × q",
        "<br>1 × &lt;r&gt;<br>1 × q",
    ),
    (
        FeedReport("App", "S", 30_000, 20_000, 0.0, {}, {"r": 10_000}),
        "App.S: 10,000 events in 0.0 s elapsed, 0 events/s\n"
        "  ! 20,000 of 30,000 rows did not fit the stream; 10,000 of them are kept: %siddhi errors App\n"
        "    of the first 10,000:\n    10,000 × r",
        "<br>of the first 10,000:<br>10,000 × r",
    ),
    (
        FeedReport("App", "S", 100, 0, 2.0, not_fed=60),
        "App.S: 40 events in 2.0 s elapsed, 20 events/s; stopped at 40 of 100",
        "stopped at 40 of 100",
    ),
    (FEED, "feed 7, reading: Trades.TradeStream: reading the feed", 'role="progressbar"'),
    (Feeds({7: FEED}), "   7  Trades  TradeStream  reading     0", "<td"),
    (Feeds({}), "No feed in the background yet", "--background"),
    (FOLLOWED, "Feed of S from a streaming frame, away: away <i>: 7 events, 2 rejected", "away &lt;i&gt;"),
    (Result([("k", "string")], [["<i>"]] * 3, limit=2), "<i>\n<i>\nshowing 2 of 3 rows", "&lt;i&gt;"),
    (Result([("k", "string")], [], hint="<T> is empty"), "0 rows\n<T> is empty", "&lt;T&gt; is empty"),
    (Events("App", "S", pd.DataFrame({"node": ["n"], "k": ["<i>"]})), "n     <i>\n1 event", "&lt;i&gt;"),
    (Events("App", "<S>", NOTHING), "<S> has put out nothing yet.", "&lt;S&gt; has put out nothing yet."),
    (Errors("App", REFUSED), "count  reason\n─────  ──────\n    2  <r>\n1 reason\n\nid  stream", "&lt;r&gt;"),
    (Errors("App", NOTHING), "App has no errors", "every row and event was accepted."),
    (Errors("App", REFUSED, dropped=1_200), "\n\n1,200 older errors are not kept", "1,200 older errors are not"),
    (replace(APP.stats(), dropped_errors=1_200), "· 1,200 errors dropped", "· 1,200 errors dropped"),
    (
        replace(APP.stats(), sources=(source(t=1_200, u=34_000),)),
        "S-kafka-1  t, u at <h>         9       7         2  35,200 (u 34,000, t 1,200)  away <i>",
        "<td style=\"text-align:left;white-space:nowrap\">35,200 (u 34,000, t 1,200)</td>",
    ),
    (replace(APP.stats(), sources=(source(t=1_200, u=0),)), "  1,200 (t 1,200)  away", "t, u at &lt;h&gt;"),
    (replace(APP.stats(), sources=(source(a=4, b=3, c=2, d=1),)), "  10 (a 4, b 3, c 2 and 1 more)", "and 1 more"),
    (replace(APP.stats(), sources=(source(t=7),)), "  7             away", "away &lt;i&gt;"),
    (APP.stats(), "query        rise              Rises        1,200   80 B", "1,234,568"),
    (
        DIVERGENCE,
        "App on 2 nodes, as the events came, against one node\n\n"
        "query  stream  same  lost  spurious  late  duplicated  repaired by\n"
        "─────  ──────  ────  ────  ────────  ────  ──────────  ───────────\n"
        "rise   O          0     1         0     0           0  one node\n\n"
        "query  verdict  timestamp            node  values  cause\n",
        "<td style=\"text-align:left;white-space:nowrap\">&lt;i&gt;, 2</td>",
    ),
    (DIVERGENCE, "split over 2 nodes: S['<i>', 1] on node-2, ", "split over 2 nodes"),
    (DIVERGENCE, "A                      2          0", "<th style=\"text-align:right\">differing</th>"),
    (CHANGED_RULE, "v 7 is over 5 and not under 5", "<th style=\"text-align:left\">cause</th>"),
    (CHANGED_RULE, "query <q>  filter  [v > 5]   [v < 5]", "&lt;i&gt;, 7"),
    (SWEEP, "2 settings over 3 events; the best f1 has N=<1>", "1 min 1 sec"),
    (SWEEP, "false positive  <S>", "&lt;v&gt;"),
    (STUDIED, "App: hash:<k> repairs most; the busiest node takes up to 1.50 times the mean.", "hash:&lt;k&gt;"),
    (STUDIED, "    2  hash:<k>     5     1    20,000           1  1.50\n1 combination", "<img"),
    (FAILOVER, "<q>    O        270    30         0          30", "&lt;q&gt;"),
    (FAILOVER, "<App> on two nodes, against one that never fails: 1 takeover; of 300 events 30 lost", "<img"),
    (COSTS, "<App>: 4 failovers; queue=10 loses fewest outputs: in the median no node is active", "<img"),
    (
        COSTS,
        "   20     2  30.0 (30.0) s   32 (33)      2 (3)  0 (0)     2,500 (2,950)\n2 settings",
        "<b>&lt;App&gt;</b>",
    ),
    (CLUSTER, "<App>: 2 nodes, ha · clock 2024-06-01 10:03:19 UTC · 176 events taken, 24 lost\n", "<b>&lt;App&gt;</b>"),
    (CLUSTER.snapshot(), "node-1  ✕ down\nnode-2  ● active  <App>", "<img"),
    (AppGraph(Graph((GraphNode("stream:<A>", "stream", "<A>"),), ())), "stream <A>", "stream &lt;A&gt;"),
    (
        repair("define stream S (v int); from S#window.timeBatch(1 sec) select '<i>' as x insert into O;"),
        "query1     1  ✗ node-dependent  let its batches begin at full multiples of their length\n\n"
        "The app, rewritten:\ndefine stream S (v int); from S#window.timeBatch(1 sec, 0) select",
        "&lt;i&gt;",
    ),
    (
        audit_text("<a>.siddhi", "define stream S (v int); from S[v > 1] select '<i>' as x insert into O;"),
        "<a>.siddhi: nothing depends on the node that is not accepted\nline  element         on several nodes",
        "&lt;a&gt;.siddhi",
    ),
    (AuditReport([audit_text("a", "from <i>")]), "a: line 1", "&lt;i&gt;"),
    (
        Attachable((FoundApp(Path("/home/<i>"), DeploymentRecord("<App>", ""), None),)), "free   /home/<i>\n1 app",
        "&lt;App&gt;",
    ),
    (AppFolders((AppFolder("<A>", Path("/<i>"), 2_000_000, 500, 0, None),)), "2.0 MB        500 B  free", "&lt;A&gt;"),
    (Attachable(()), "No app can be attached yet.", "No app can be attached yet."),
    (Sent("<A>", "S", 2, 0, ("node-1", "<b>"), {"O": 1}), "<A>.S: 2 events sent to node-1, <b>, at 1", "&lt;b&gt;, at"),
    (Sent("<A>", "S", 1, 0, started=True), "1 event sent, at 1970-01-01 00:00:00\n<A> was stopped", "&lt;A&gt; was"),
    (PlanText("app <A>\n"), "app <A>", "app &lt;A&gt;"),
    (
        trace("define stream S (v string); from S#window.length(1) select v insert into O;", None, [(0, ["<i>"])]),
        "query1: length(1) over 1 event\n<i>  ", 'alt="query1: length(1) over 1 event"',
    ),
    (
        trace("define stream S (v string); from every e=S -> f=S select e.v insert into O;", None, [(0, ["<i>"])]),
        "1: e at 0 s (<i>): still waits at the end", 'alt="query1: every e=S -&gt; f=S"',
    ),
    (AppRecording("<A>", 1234, StandIn().runtime), "<A>: 1,234 events came in.", "&lt;A&gt;"),
    (
        SplitApp("<A>", Messaging.KAFKA, "h:1", (), (), ("note",), True),
        "<A>: 0 partial apps, 0 topics\n  ! note",
        "&lt;A&gt;",
    ),
    (OVERVIEW, "<A>: failed, ha\ninput –", "&lt;A&gt;"),
    (OVERVIEW, "! <gone>\nnode  role", "⚠ &lt;gone&gt;"),
    (CHART, "App.<S>: 3 events · v from 5 to 7", "<b>App.&lt;S&gt;</b>"),
    (CHART.snapshot(), "<i>          1 ", '<img src="data:image/svg+xml;base64,'),
    (TAIL, "App.<S>: the last 2 of 3 events · the newest first", "<b>App.&lt;S&gt;</b>"),
    (TAIL, "b    7\n<i>  5", "&lt;i&gt;"),
    (
        replace(TAIL.snapshot(), since=HOUR / 1000, not_shown=12_345, paused=HOUR / 1000 + 60, waiting=7),
        "paused at 10:01:00 UTC: 7 more since then · 12,345 more since 10:00:00 UTC not shown",
        "12,345 more since",
    ),
    (replace(TAIL.snapshot(), shape=TailShape(number="v")), "App.<S>: v of the newest of 3 events\nv = 5", ">5</div>"),
    (
        replace(TAIL.snapshot(), shape=TailShape(latest="<k>"), keys=9),
        "the latest event by <k>, 2 of 9 · 3 events",
        "by &lt;k&gt;",
    ),
    (replace(TAIL.snapshot(), rows=()), "App.<S>: no event yet", "no event yet"),
    (
        AppTestReport((AppTestResult(Path("<f>"), "<i>", "one", 1, 0.5, error=SparkStreamError("<A>")),)),
        "<f>\n  WRONG <i>  500 ms\n    <f>:1: <A>\n0 passed, 1 wrong",
        "&lt;f&gt;:1: &lt;A&gt;",
    ),
    (check(TRADES), "no mistakes found (1 stream, 1 aggregation, 1 query)", "✓ "),
    (check("define stream S (a strin);"), "line 1, column", "✗ line 1, column"),
    (
        check(STORED),
        "but this build cannot run table 'T' in a store of type 'mongodb' (line 1; it belongs to",
        "⚠ no mistakes found",
    ),
]  # fmt: skip


@pytest.fixture(autouse=True)
def _magics(monkeypatch: pytest.MonkeyPatch) -> None:
    """The texts of a notebook."""
    monkeypatch.setattr("sparkstream_nb.lab.results_shown.has_magics", lambda: True)


@pytest.mark.parametrize(("shown", "text", "markup"), SHOWN, ids=lambda s: type(s).__name__)
def test_each_result_in_text_and_html(
    shown: Displayed, text: str, markup: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARKSTREAM_HOME", str(tmp_path))  # no app was deployed before
    assert text in display.text(shown)
    assert markup in display.html(shown)
    assert "<i>" not in display.html(shown)
    assert repr(shown) == display.text(shown)
    assert display.bundle(shown) == {"text/plain": display.text(shown), "text/html": display.html(shown)}


def test_every_class_of_result_is_among_them() -> None:
    def classes(base: type) -> Iterator[type]:
        for c in base.__subclasses__():
            yield c
            yield from classes(c)

    ours = {c for c in classes(Displayed) if c.__module__.startswith("sparkstream_nb")}
    shown = {type(s) for s, _, _ in SHOWN} - {StandIn} | {sparkstream_nb.App, Failover}
    assert ours == {base for c in shown for base in c.__mro__} & ours
    assert {c for c in ours if not c.__subclasses__()} <= shown


def test_a_card_says_where_an_app_runs_unless_that_is_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    app = StandIn()
    on_spark = len(display.text(app).splitlines())
    monkeypatch.setattr(StandIn, "runner_note", "in one <process>")
    lines = display.text(app).splitlines()
    assert (len(lines), lines[1]) == (on_spark + 1, "  in one <process>")
    assert "in one &lt;process&gt;" in display.html(app)


def test_what_has_no_form_is_said() -> None:
    class Other(Displayed):
        pass

    with pytest.raises(TypeError, match="Other has no plain text"):
        repr(Other())
    with pytest.raises(TypeError, match="Other has no HTML"):
        display.html(Other())


def test_ipython_shows_what_a_cell_ends_with(shell: Any, app: StandIn) -> None:
    for shown in (app, app.query("from X select *"), app.output("Rises"), app.errors, app.explain(), app.stats()):
        data, _ = shell.display_formatter.format(shown)
        assert data == {"text/plain": display.text(shown), "text/html": display.html(shown)}


def test_the_front_door_connects_without_the_extension(shell: Any) -> None:
    formatter = shell.display_formatter.mimebundle_formatter
    formatter.pop(Displayed)
    frontend.connect(None)
    shown = sparkstream_nb.check("@app:name('T') " + TRADES)
    data, _ = shell.display_formatter.format(shown)
    assert data["text/html"].startswith('<div style="margin:.3em 0">✓ T: no mistakes found')


def test_functions_of_the_package() -> None:
    assert sparkstream_nb.check(TRADES)
    wrong = sparkstream_nb.check("define stream S (a strin);")
    assert isinstance(wrong, Check)
    assert not wrong
    assert repr(wrong).startswith("line 1, column")
    assert "^" in repr(wrong)
    assert "TradeAggregation" in str(sparkstream_nb.explain(TRADES))
    for name in sparkstream_nb.__all__:
        assert name in dir(sparkstream_nb)
        assert getattr(sparkstream_nb, name).__doc__
    with pytest.raises(AttributeError, match="no attribute 'deplo'"):
        _ = sparkstream_nb.deplo


def test_without_a_front_end(app: StandIn) -> None:
    frontend.connect(None)
    assert repr(app) == "<App Trades: running, 2 nodes, active-active>"
    assert [repr(s) for s, _, _ in SHOWN if isinstance(s, Result | Events | PlanText)] == [
        "<Result: 3 rows of k string>", "<Result: 0 rows of k string>",
        "<Events of App.S: 1>", "<Events of App.<S>: 0>", "app <A>",
    ]  # fmt: skip
    assert all(s.summary() for s, _, _ in SHOWN)
    with pytest.raises(SparkStreamError, match=r"no front end to draw TradeAggregation.*%load_ext sparkstream_nb"):
        app.view()


def test_without_ipython_results_print_as_text() -> None:
    code = f"""
import sys
sys.modules["IPython"] = None  # an import of it fails
import sparkstream_nb
from sparkstream_nb.app import Result
from sparkstream_nb.app.results import frontend
print(sparkstream_nb.check("@app:name('T') " + {TRADES!r}))
print(Result([("k", "string")], [["a"]]))
print(type(frontend.current().progress()).__name__)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "T: no mistakes found (1 stream, 1 aggregation, 1 query)", "k string", "────────", "a", "1 row",
        "ProgressLine",
    ]  # fmt: skip


def test_events_that_came_to_harm_have_times() -> None:
    found = FAILOVER.events
    assert len(found)
    assert all(str(found[moment].dtype).startswith("datetime64") for moment in ("first", "last"))
    assert str(found["first"].iloc[0]).startswith("2024-06-01 10:0")
    assert "2024-06-01 10:0" in display.html(FAILOVER)


def test_a_picture_names_all_leaders() -> None:
    assert moves_picture.moves_picture(moving()).title == "<App>: where its partial apps ran"
    spans = [RunSpan("leader", f"manager-{n}", at, at + 5) for at, n in enumerate((1, 1, 2, 1, 3, 4, 5))]
    said = moves_picture._describe_leaders(spans)
    assert said == "; led by manager-1, then manager-2, then manager-1, then manager-3, then 2 more"


def test_each_result_that_has_a_figure() -> None:
    shown = (DIVERGENCE, STUDIED, COSTS, FAILOVER, moving(), CHART, CHART.snapshot())
    for result in shown:
        data = result.figure.data
        assert data, f"{type(result).__name__} draws something"
        assert "<" not in re.sub(r"<br>|<extra>|</extra>", "", str(result.figure.to_json())), "texts are escaped"
    (lost,) = [t for t in DIVERGENCE.figure.data if t.name == "lost"]
    places = [abs(place - lost.y[0]) for place in DIVERGENCE.figure.layout.yaxis.tickvals]
    assert places.index(min(places)) == 0, "on the lane of the truth"
    assert {t.name for t in FAILOVER.figure.data} >= {"same", "lost", "spurious", "duplicated"}
    assert [list(t.text) for t in STUDIED.figure.data] == [["1"], ["20k"]]
    assert "no active node, s" in COSTS.figure.data[0].hovertext[0]


def test_plots_of_answers() -> None:
    columns = [("AGG_TIMESTAMP", "long"), ("symbol", "string"), ("total", "double")]
    totals = {"AGG_TIMESTAMP": [HOUR] * 2, "symbol": ["x"] * 2, "total": [1.0, 2.0]}
    shards = pd.DataFrame({"SHARD_ID": ["a", "b"], **totals})
    result = Result(columns, [[HOUR, "x", 3.0]], lambda: shards)
    assert [t.name for t in result.plot().data] == ["x"]
    assert [(t.name, list(t.y)) for t in result.plot(by="SHARD_ID").data] == [("a", [1.0]), ("b", [2.0])]
    events = Events("App", "S", pd.DataFrame({"node": ["n", "m"], "timestamp": [HOUR, HOUR + 1], "v": [1, 2]}))
    assert [t.name for t in events.plot("v", kind="bar").data] == ["n", "m"]
    assert sum(Errors("App", REFUSED).plot().data[0].y) == 1
    assert [t.name for t in sparkstream_nb.plot(shards).data] == ["a", "b"]
    with pytest.raises(Misuse, match="plot takes a pandas frame"):
        sparkstream_nb.plot(result)
