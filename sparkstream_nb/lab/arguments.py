"""Parses the arguments of `%siddhi` and `%%siddhi`: splits a line into words, parses options, and prints help.

A line is split as in a shell, with two differences for SiddhiQL and JSON: text in brackets is one word with any
contents, and there are no escapes.
"""

from __future__ import annotations

import ast
import json
import re
import textwrap
from collections.abc import Callable
from typing import Any

from ..charts.frame_plot import CHART_KINDS
from ..errors import Misuse
from ..option_values import (
    attribute_and_value,
    counts,
    error_ids,
    positive,
    stream_and_count,
    stream_and_source,
    variable,
)
from ..options import (
    RANDOM_RATE,
    WIDTH,
    Options,
    add,
    add_compared,
    add_deployment,
    add_pace,
    add_reading,
    add_seed,
    add_trace_bounds,
    add_wanted_output,
)
from ..request import ROUTES

STUDIED = {
    "heartbeat": "ms between heartbeats",
    "retries": "heartbeats that may be missed",
    "persist": "ms between revisions",
    "queue": "events that the passive node holds",
}
"""Figures of a pair that `%siddhi failover --seeds` varies, with their meaning; Python knows more."""

_SHOWN = 80
"""Characters of an event's values that an error shows at most."""
_CLOSING = {"[": "]", "(": ")", "{": "}"}


def split(line: str) -> list[str]:
    """The words of `line`. A quoted word loses its quotes; `[...]`, `(...)` and `{...}` stay one word.

    Raises `Misuse` if a quote or a bracket is not closed.
    """
    words, at = [], 0
    while at < len(line):
        if line[at].isspace():
            at += 1
            continue
        word, at = _word(line, at)
        words.append(word)
    return words


def _word(line: str, at: int) -> tuple[str, int]:
    """The word that starts at `at`, and the position behind it."""
    out: list[str] = []
    open_brackets: list[str] = []
    while at < len(line) and (open_brackets or not line[at].isspace()):
        c = line[at]
        if c in "'\"":
            end = line.find(c, at + 1)
            if end < 0:
                raise Misuse(f"the quote {c} at column {at + 1} is not closed: {line}")
            out.append(line[at : end + 1] if open_brackets else line[at + 1 : end])
            at = end
        else:
            out.append(c)
            if c in _CLOSING:
                open_brackets.append(_CLOSING[c])
            elif open_brackets and c == open_brackets[-1]:
                open_brackets.pop()
        at += 1
    if open_brackets:
        raise Misuse(f"a closing {open_brackets[-1]} is missing: {line}")
    return "".join(out), at


_ON_DEMAND = "from|select|delete|update"


def split_query(line: str, beginnings: str = _ON_DEMAND, options: str = "-o|--out|--limit") -> tuple[list[str], str]:
    """The words around a query's text, and the text: `-o df App "from A select *" --limit 5` gives `["-o", "df", "App",
    "--limit", "5"]` and `from A select *`. The text may be in either kind of quotes, and contain both kinds, or be
    unquoted; it begins with one of the words of `beginnings`, and `options` may follow.
    """
    match = re.search(rf"(?:^|\s)(['\"]?)(?=(?:{beginnings})\b)", line, re.IGNORECASE)
    if not match:
        return split(line), ""
    before, rest = line[: match.start()], line[match.end() :]
    if match[1]:
        end = rest.rfind(match[1])
        if end < 0:
            raise Misuse(f"the quote {match[1]} before the query is not closed")
        return split(before) + split(rest[end + 1 :]), rest[:end].strip()
    after = re.search(rf"(?:\s+(?:{options})[ =]\S+)+\s*$", rest)
    if after:
        return split(before) + split(rest[after.start() :]), rest[: after.start()].strip()
    return split(before), rest.strip()


def literal(text: str) -> Any:
    """An event's values from JSON, or from Python's way of writing them. Raises `Misuse`."""
    excerpt = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    try:
        values = json.loads(text)
    except json.JSONDecodeError as e:
        try:
            values = ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            raise Misuse(f"the values are neither JSON nor Python: {e.msg}, at column {e.colno} of {excerpt}") from None
    if isinstance(values, tuple):
        return list(values)
    if isinstance(values, (list, dict)):
        return values
    raise Misuse(f"""the values must be a list or a dict, as '["wso2", 100.0]': {excerpt}""")


def with_body(lines: list[str]) -> list[str]:
    """The lines of a cell; one of `%%siddhi` alone gets an empty line below it, as IPython refuses it without."""
    alone = len(lines) == 1 and re.match(r"%%siddhi(\s|$)", lines[0])
    return [lines[0].rstrip("\n") + "\n", "\n"] if alone else lines


def deploy_options() -> Options:
    """Options of the cell magic."""
    p = Options(
        prog="%%siddhi",
        description="Deploys the SiddhiQL app in the cell. Run the cell again to redeploy it under the same name.",
    )
    p.add_argument(
        "name",
        nargs="?",
        metavar="NAME",
        help="the app's name (default: @app:name, else the notebook's name, for its one app without a name)",
    )
    add_deployment(p)
    _add_out(p, "store the app, or the query's data frame, in this variable")
    p.add_argument("--check", action="store_true", help="only check the text, without running it")
    p.add_argument("--changes", action="store_true", help="only say which state of the app it would keep and drop")
    p.add_argument(
        "--compare", action="store_true",
        help="only compare: the outputs of the running app NAME under the cell's text with those under its own",
    )  # fmt: skip
    p.add_argument("--over", metavar="FILE", help="of --compare: over a recording, not over the events that it took")
    add_compared(p, "of --compare: ")
    p.add_argument("--explain", action="store_true", help="only show the plan, without running it")
    p.add_argument("--repair", action="store_true", help="only show repairs that make queries right on several nodes")
    p.add_argument("--fmt", action="store_true", help="only format the text, in its cell; comments are kept")
    p.add_argument("--graph", action="store_true", help="only draw the app, without running it")
    p.add_argument("--query", action="store_true", help="the cell is an on-demand query on the running app NAME")
    add(p, "--by-shard", help="of a query: show the rows of each shard too, below the merged answer")
    add(p, "--as-wso2", help="of a query: answer as WSO2's servers would, without the buckets still open on each node")
    add(p, "--as-node", help="of a query: --as-wso2, of the server of this shard; alive: of servers without playback")
    add(p, "--limit", help="rows to show of a query's answer")
    p.add_argument("--sql", action="store_true", help="the cell is an SQL query over apps and variables (%%siddhi sql)")
    p.example = "%%siddhi Trades --nodes 3 --routing hash:symbol --fresh"
    return p


def _add_out(p: Options, help: str, *more_names: str) -> None:
    p.add_argument("-o", "--out", *more_names, type=variable, metavar="VAR", help=help)


def _add_sql(p: Options) -> None:
    """Options of an SQL query."""
    add(p, "--limit")
    _add_out(p, "store the answer as a data frame in this variable", "--into")
    p.add_argument("--chart", choices=CHART_KINDS, help="draw the answer: line, bar or points")
    p.add_argument("--y", action="append", metavar="COLUMN", help="of a chart: the numbers; several may be given")
    p.add_argument("--by", metavar="COLUMN", help="of a chart: a line for each value of this column")
    p.add_argument("--x", metavar="COLUMN", help="of a chart: the horizontal axis (default: the time)")


SQL_OPTIONS = "-o|--out|--into|--limit|--chart|--y|--by|--x"
"""The options that may follow the text of `%siddhi sql`."""


def _add_way(p: Options) -> None:
    p.add_argument("--nodes", type=positive, metavar="N", help="as so many nodes would have it (default: as it was)")
    p.add_argument("--routing", metavar="ROUTE", help=f"as it would be under this routing: {ROUTES}")


_Command = Callable[[str, str], Options]
"""Adds a command by its name and description."""


OTHER_NAMES = {
    **dict.fromkeys(("delete", "drop", "rm", "undeploy"), "remove"),
    **dict.fromkeys(("show", "ls", "ps"), "list"),
    **dict.fromkeys(("kill", "crash", "cut"), "fault"),
    **dict.fromkeys(("load", "import", "read"), "feed"),
    **dict.fromkeys(("insert", "publish"), "send"),
    "select": "query",
}
"""Commands by the names that they have elsewhere."""


def line_options() -> dict[str, Options]:
    """Options of each `%siddhi COMMAND`, in the order of the help."""
    out: dict[str, Options] = {}

    def command(name: str, description: str) -> Options:
        out[name] = Options(prog=f"%siddhi {name}", description=description)
        out[name].example = f"%siddhi {name} {EXAMPLES[name]}".rstrip()
        return out[name]

    for add_commands in (_add_inputs, _add_outputs, _add_comparisons, _add_nodes, _add_texts, _add_apps):
        add_commands(command)
    return out


def _add_inputs(command: _Command) -> None:
    """Commands that give an app events."""
    p = command("feed", "Feeds a stream with a data frame or a file, and waits until all of it is committed.")
    p.add_argument("stream", metavar="NAME.Stream", help="the stream; with --from the app, NAME")
    p.add_argument(
        "source", nargs="?", metavar="SOURCE", help="a variable that holds a data frame, or a .csv or .parquet file"
    )
    _add_sources(p, "feed several streams, merged by event time (--time); may be given several times")
    add_reading(p)
    add(p, "--route")
    add(p, "--limit", help="only the first N rows of each source")
    add(p, "--speed")
    add(p, "--rate", help=RANDOM_RATE)
    add(p, "--disorder")
    p.add_argument(
        "--random", type=positive, metavar="N",
        help="feed N generated events in place of a SOURCE; Python's generate has more choices",
    )  # fmt: skip
    add_seed(p)
    p.add_argument("--background", action="store_true", help="do not wait: other cells run meanwhile (%%siddhi feeds)")
    p.add_argument("--paused", action="store_true", help="in the background, paused: %%siddhi feeds step ID")
    p.add_argument(
        "--together", action="store_true", help="merge with the app's feed in the background, by event time"
    )
    _add_out(p, "store the report (or the feed) in this variable")

    p = command("feeds", "Lists the feeds in the background, or controls one of them.")
    p.add_argument(
        "action",
        nargs="?",
        choices=("pause", "resume", "step", "pace", "restart", "stop"),
        metavar="pause|resume|step|pace|restart|stop",
    )
    p.add_argument("feed", nargs="?", type=int, metavar="ID", help="the feed's number in the list")
    p.add_argument("--events", type=positive, metavar="N", help="step: feed the next N events (default: 1)")
    p.add_argument("--until", metavar="TIME", help="step: feed the events up to this event time")
    add_pace(p)

    p = command("send", "Sends one event, or a list of them, to a stream.")
    p.add_argument("stream", metavar="NAME.Stream")
    p.add_argument(
        "values", metavar="VALUES", help="""'["wso2", 100.0, 10]', a list of such lists, or '{"symbol": "wso2"}'"""
    )
    p.add_argument("--node", type=positive, metavar="N", help="the node that receives it (default: by routing)")
    p.add_argument(
        "--at", metavar="TIME", help="event time: ms since 1970, or a time in UTC such as '2013-01-01 06:00:00'"
    )


def _add_outputs(command: _Command) -> None:
    """Commands that show what an app has computed."""
    p = command("query", "Answers an on-demand query, merged over all shards.")
    p.add_argument("app", metavar="NAME QUERY", help='the app, and a query such as "from Prices select *"')
    add(p, "--by-shard", "--as-wso2", "--as-node", "--limit")
    _add_out(p, "store the answer as a data frame in this variable")

    p = command("sql", "Answers an SQL query over apps and variables, by DuckDB; without one, lists what it may name.")
    p.add_argument("text", nargs="?", metavar="QUERY", help='such as "select * from Trades.outputs.Alerts"')
    _add_sql(p)

    p = command("view", "Draws an aggregation, by shard and merged.")
    p.add_argument("aggregation", metavar="NAME.Aggregation")
    p.add_argument("--per", metavar="DURATION", help="initial granularity: sec, min, hour, day, month or year")
    p.add_argument("--measure", metavar="ATTRIBUTE", help="initial attribute")

    p = command("output", "Shows the events of a stream so far, each with the node that emitted it or took it.")
    p.add_argument("stream", metavar="NAME.Stream")
    add(p, "--last", "--limit")
    _add_out(p, "store the events as a data frame in this variable")

    p = command("tail", "Shows the end of a stream, and follows it: its last events, or the latest ones by key.")
    p.add_argument("stream", metavar="NAME.Stream")
    mode = p.add_mutually_exclusive_group()
    mode.add_argument("--append", action="store_true", help="the last events (this is the default)")
    mode.add_argument("--latest", metavar="KEY", help="the latest event of each value of this attribute")
    mode.add_argument("--number", metavar="ATTRIBUTE", help="only this attribute of the newest event, large")
    p.add_argument("--last", type=positive, default=20, metavar="N", help="rows to show (20)")
    p.add_argument("--newest", choices=("first", "last"), default="first", help="where the newest event is (first)")

    p = command("chart", "Draws numbers of a stream, and follows it: a line for each value of an attribute, or node.")
    p.add_argument("stream", metavar="NAME.Stream")
    p.add_argument(
        "--y", action="append", metavar="ATTRIBUTE",
        help="the number to draw; may be given several times (default: all numeric attributes)",
    )  # fmt: skip
    p.add_argument("--by", metavar="ATTRIBUTE", help="a line for each value of this attribute, or of `node`")
    p.add_argument("--x", metavar="ATTRIBUTE", help="the horizontal axis (default: time, the events' own)")
    p.add_argument("--last", metavar="DURATION", help="only this length of event time, such as 10min (default: all)")
    p.add_argument("--kind", choices=("line", "bar", "points"), default="line", help="line, bar or points (line)")


def _add_comparisons(command: _Command) -> None:
    """Commands that compare several nodes with one."""
    p = command("explain", "Shows the plan of an app: where each part runs, and how routing affects each query.")
    p.add_argument("app", metavar="NAME")
    p.add_argument("--repair", action="store_true", help="show repairs that make each query right on several nodes")

    p = command(
        "divergence", "Shows which outputs of an app differ from those of one node, and why: a time line of alerts."
    )
    p.add_argument("app", metavar="NAME")
    _add_way(p)
    _add_out(p, "store the outputs, each with its verdict and cause, as a data frame in this variable")

    p = command("profile", "Measures the nodes: time by query and step, skew, frequent keys, state, with advice.")
    p.add_argument("app", metavar="NAME")
    _add_way(p)
    _add_out(p, "store the profile in this variable")

    p = command(
        "study", "Counts the outputs that differ from those of one node, for many numbers of nodes and routings."
    )
    p.add_argument("app", metavar="NAME")
    p.add_argument("--nodes", type=counts, default=range(1, 17), metavar="A-B", help="such as 4, 1-8 or 2,4,8 (1-16)")
    p.add_argument(
        "--routing", action="append", metavar="ROUTE", help=f"{ROUTES}; may be given again (default: all that may help)"
    )
    _add_out(p, "store the counts as a data frame in this variable")

    p = command("failover", "Compares the outputs of mode ha or scalable with those of one node that never fails.")
    p.add_argument("app", metavar="NAME")
    _add_out(p, "store the counts as a data frame in this variable")
    p.add_argument("--seeds", type=positive, metavar="N", help="of any app: the cost of N failovers at random moments")
    for figure, meaning in STUDIED.items():
        p.add_argument(f"--{figure}", type=counts, metavar="A,B", help=f"with --seeds: {meaning}")


def _add_nodes(command: _Command) -> None:
    """Commands about the nodes of an app, and its parts."""
    p = command(
        "cluster", "Shows the nodes of mode ha or scalable: roles, links, a log, and buttons to kill or cut them."
    )
    p.add_argument("app", metavar="NAME")

    p = command("fault", "Lets something happen to a node of mode ha or scalable, when the clock gets there.")
    p.add_argument("app", metavar="NAME")
    kinds = ("kill", "restart", "pause", "cut", "slow")
    p.add_argument("kind", choices=kinds, metavar="KIND", help="kill, restart, pause, cut or slow")
    p.add_argument("node", metavar="NODE")
    p.add_argument("other", metavar="END", nargs="?", help="of cut and slow: a node, `database`, of cut `clients`")
    p.add_argument("--at", metavar="TIME", help="when: ms since 1970, or a time in UTC (default: right now)")
    p.add_argument("--until", metavar="TIME", help="when a pause, a cut or a slow link ends")
    p.add_argument("--by", type=positive, metavar="MS", help="for slow: the delay added to what is sent")

    p = command("graph", "Draws an app: its parts and the streams between them, marked by the effect of routing.")
    p.add_argument("app", metavar="NAME")

    p = command("at", "Shows what each node held at a moment: its windows, partial matches and tables.")
    p.add_argument("app", metavar="NAME")
    p.add_argument("time", metavar="TIME", nargs="?", help="ms since 1970, or a time in UTC (default: the end)")
    p.add_argument("--event", type=positive, metavar="N", help="after the event with this number")
    p.add_argument("--output", type=stream_and_count, metavar="STREAM=N", help="after this output of a stream")
    p.add_argument("--query", metavar="QUERY", help="only what this query held, event by event")
    _add_way(p)
    _add_out(p, "store the moment in this variable")

    p = command("follow", "Shows the history of an event on its node, or the events of an output.")
    p.add_argument("app", metavar="NAME")
    p.add_argument("event", metavar="N", nargs="?", type=positive, help="the number of the event, the first is 1")
    p.add_argument("--output", type=stream_and_count, metavar="STREAM=N", help="this output of a stream instead")
    _add_way(p)
    _add_out(p, "store the answer in this variable")

    p = command("select", "Selects events in all pictures and tables of an app, and shows the selection.")
    p.add_argument("app", metavar="NAME")
    p.add_argument(
        "values", nargs="*", type=attribute_and_value, metavar="ATTRIBUTE=VALUE",
        help="values that attributes have; one attribute may have several",
    )  # fmt: skip
    p.add_argument("--start", metavar="TIME", help="from this event time on")
    p.add_argument("--end", metavar="TIME", help="up to this event time")
    p.add_argument("--node", action="append", metavar="ID", help="of this node; may be given several times")
    p.add_argument("--clear", action="store_true", help="select everything")
    _add_out(p, "store the selection in this variable")

    p = command("whynot", "Says why an output did not come, with the smallest change of the input that brings it.")
    p.add_argument("app", metavar="NAME")
    add_wanted_output(p)
    _add_way(p)
    _add_out(p, "store the answer in this variable")


def _add_texts(command: _Command) -> None:
    """Commands about texts of apps."""
    p = command("trace", "Draws what a window holds over a feed, or the partial matches of a pattern.")
    p.add_argument("query", metavar="NAME.query", help="the query or named window; with one, the app's NAME is enough")
    p.add_argument(
        "source", nargs="?", metavar="SOURCE",
        help="a variable that holds a data frame or a list of events, or a .csv or .parquet file",
    )  # fmt: skip
    _add_sources(p, "the events of several streams, merged by event time; may be given several times")
    add_trace_bounds(p)
    _add_out(p, "store the trace in this variable")

    p = command("check", "Checks a .siddhi file, or the text in a variable, and whether this build can run it.")
    p.add_argument("source", metavar="SOURCE", help="a variable that holds a text, or a file")
    add(p, "--param", "--conf", "--allow-env")

    p = command("test", "Runs the tests of apps in test files, without sources, sinks, databases and Spark.")
    p.add_argument("paths", metavar="PATH", nargs="+", help=".siddhitest files, and folders with such files")
    p.add_argument("-k", metavar="TEXT", help="only tests with this text in the file's, the test's or the run's name")
    p.add_argument("--quiet", action="store_true", help="show only what did not pass, and the numbers")
    p.add_argument("--update", action="store_true", help="write the actual results into the test files, for review")
    p.add_argument("--coverage", action="store_true", help="show queries, states and filter branches not reached")
    add(p, "--allow-scripts")
    _add_out(p, "store the report in this variable")

    p = command("fmt", "Formats a .siddhi file in place, or prints the text in a variable, formatted.")
    p.add_argument("source", metavar="SOURCE", help="a variable that holds a text, or a file")


def _add_apps(command: _Command) -> None:
    """Commands about the apps of a notebook."""
    command("list", "Lists the apps of this notebook.")

    p = command(
        "attach", "Continues an app that was deployed before, in a new kernel; without a name, lists those apps."
    )
    p.add_argument("app", nargs="?", metavar="NAME")
    add(p, "--home", help="the app's folder, where it was deployed into one of its own")
    add(p, "--param", help="a value of ${NAME} that is not kept, as it may be a secret; may be given several times")
    add(p, "--master", help="another Spark than before: local[2], spark://host:7077, sc://host:15002")
    _add_out(p, "store the app in this variable (default: the variable of its cell)")

    p = command("save", "Writes the text of an app to a file.")
    p.add_argument("app", metavar="NAME")
    p.add_argument("file", metavar="FILE", help="such as fraud.siddhi; one that exists is written anew")

    p = command("export", "Writes an app as a job for sparkstream run, as a test, or as a notebook.")
    p.add_argument("app", metavar="NAME")
    p.add_argument("file", nargs="?", metavar="FILE", help="the file (default: NAME.sh, NAME.siddhitest or NAME.ipynb)")
    p.add_argument(
        "--as", dest="kind", required=True, choices=("job", "test", "notebook"),
        help="job: a script with the same deployment, and the text; test: the events that were sent, and the outputs; "
        "notebook: the cell, and a recording of the input",
    )  # fmt: skip
    add(p, "--limit", help="steps that a test has at most (1,000)")

    p = command("report", "Writes a page to send: apps, topology, results by shard, divergence, study or failover.")
    p.add_argument("words", metavar="NAME [NAME ...] FILE", nargs="+", help="apps, and the file, such as report.html")

    p = command("stop", "Stops an app and keeps its stored data.")
    p.add_argument("app", nargs="?", metavar="NAME")
    p.add_argument("--all", action="store_true", help="all apps of this notebook")

    p = command("remove", "Stops apps, and removes their folders: state, outputs and stored aggregations, for good.")
    p.add_argument("apps", nargs="+", metavar="NAME")
    add(p, "--home", help="the app's folder, where it was deployed into one of its own")
    p.add_argument("--trash", action="store_true", help="only state that its earlier deployments dropped")

    p = command(
        "errors",
        "Shows the rejected rows and failed events of an app, and why, or sends them again. To correct them first, "
        "edit values and timestamps of the data frame (-o) and give it back in Python: "
        "sparkstream_nb.get(NAME).replay(frame).",
    )
    p.add_argument("app", metavar="NAME")
    p.add_argument(
        "--replay",
        type=error_ids,
        nargs="*",
        metavar="ID",
        help="send these again and remove them from the list, such as 3 4 7-9 (default: all input events)",
    )
    add(p, "--decimal", "--missing", "--limit")
    _add_out(p, "store them as a data frame in this variable")

    p = command(
        "stats",
        "Shows the speed of an app, how far it is behind, and the state of its nodes and queries; without a name, all "
        "apps at a glance.",
    )
    p.add_argument("app", nargs="?", metavar="NAME")
    p.add_argument("--prometheus", action="store_true", help="print the figures as Prometheus reads them")

    command("tb", "Shows the whole traceback of the last error.")


EXAMPLES = {
    "feed": "Trades.Prices t.csv --time Zeit --time-format '%d.%m.%Y %H:%M'",
    "feeds": "pause 1",
    "send": """Trades.Prices '["wso2", 100.0, 10]' --at '2024-06-01 10:00:00'""",
    "query": """Trades "from Totals within '2024-**-** **:**:**' per 'days' select *\"""",
    "sql": '"select symbol, count(*) from Trades.outputs.Alerts group by 1" --into df',
    "view": "Trades.Totals --per hour --measure total",
    "output": "Trades.Alerts --last 100 -o alerts",
    "tail": "Trades.Alerts --latest symbol",
    "chart": "Trades.Averages --y average --by symbol --last 10min",
    "explain": "Trades --repair",
    "divergence": "Trades --nodes 4 --routing hash:symbol -o alerts",
    "profile": "Trades --nodes 4 --routing hash:symbol",
    "study": "Trades --nodes 1-8 --routing round_robin --routing hash:symbol",
    "failover": "Trades --seeds 1000 --heartbeat 1000,5000",
    "cluster": "Trades",
    "fault": "Trades kill node-1 --at '2024-06-01 10:05:00'",
    "graph": "Trades",
    "at": "Trades '2024-06-01 10:05:00' --query rise -o moment",
    "follow": "Trades 1234",
    "select": "Trades symbol=wso2 --node node-1 --start '2024-06-01 10:00:00'",
    "whynot": "Trades Alerts symbol=wso2 --at '2024-06-01 10:05:00'",
    "trace": "Trades.rise ticks --time timestamp --limit 50",
    "check": "trades.siddhi --param LIMIT=100",
    "test": "fraud.siddhitest --coverage",
    "fmt": "trades.siddhi",
    "list": "",
    "attach": "Trades -o app",
    "save": "Trades trades.siddhi",
    "export": "Trades trades.siddhitest --as test",
    "report": "Trades report.html",
    "stop": "Trades",
    "remove": "Trades --trash",
    "errors": "Trades --replay 3 4 7-9",
    "stats": "Trades --prometheus",
    "tb": "",
}
"""The arguments of the command in the example of its help."""


_COMMAND_WIDTH = 34


def overview(commands: dict[str, Options]) -> str:
    """The help of `%siddhi`: every command with its description."""
    lines = [_entry("%%siddhi NAME [options]", "Deploys the app in the cell; %%siddhi --help lists the options."), ""]
    for name, options in commands.items():
        words = " ".join(str(a.metavar or a.dest) for a in options._actions if not a.option_strings)
        lines.append(_entry(f"%siddhi {name} {words}", options.description or ""))
    lines += ["", "%siddhi COMMAND --help describes one command; %config SiddhiMagic lists the settings."]
    return "\n".join(lines)


def _entry(call: str, description: str) -> str:
    """A call with its description beside it, in as many lines as it takes."""
    indent = " " * (_COMMAND_WIDTH + 1)
    lines = textwrap.fill(description, WIDTH, initial_indent=indent, subsequent_indent=indent)
    return f"{call}\n{lines}" if len(call) > _COMMAND_WIDTH else f"{call:<{_COMMAND_WIDTH}} {lines.lstrip()}"


def _add_sources(p: Options, help_text: str) -> None:
    p.add_argument(
        "--from", action="append", default=[], type=stream_and_source, metavar="STREAM=SOURCE", dest="sources",
        help=help_text,
    )  # fmt: skip


def help_text(commands: dict[str, Options], cell: Options) -> str:
    """The magics' docstring: commands, and options of the cell."""
    return f"SiddhiQL in a notebook.\n\n{overview(commands)}\n\n{cell.format_help()}"
