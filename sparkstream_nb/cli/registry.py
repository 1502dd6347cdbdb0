"""The one table of commands: for each its line of the help, an example, and its options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from ..options import Options
from .arguments import agents, checks, comparisons, folders, runs, stored, testing, texts


@dataclass(frozen=True)
class Command:
    """A command: its name, a line of help, the arguments of a call as an example, and the function that adds its
    options to its parser. The module `commands/command_NAME.py` carries it out. It is imported only when the command
    runs, as it needs pandas and the engine; help and mistakes in options are shown without it."""

    name: str
    summary: str
    example: str
    add_options: Callable[[Options], None]

    def run(self, options: Any) -> int:
        """Runs it with its parsed options; returns the exit code."""
        module = import_module(f"{__package__}.commands.command_{self.name}")
        code: int = module.run(options)
        return code


COMMANDS = (
    Command(
        "check",
        "Check apps' syntax, names, types and rules, and whether this build can run them.",
        "trades.siddhi",
        checks.add_check,
    ),
    Command(
        "explain",
        "Print apps' plans: where each part runs, and how routing affects each query.",
        "trades.siddhi --repair",
        checks.add_explain,
    ),
    Command(
        "graph",
        "Print which parts of apps read and write which streams, and how routing affects each query.",
        "trades.siddhi --svg trades.svg",
        checks.add_graph,
    ),
    Command(
        "trace",
        "Print what a window holds over a feed, or a pattern's partial matches, or draw it.",
        "trades.siddhi big --feed Trades=trades.csv --time at --svg big.svg",
        checks.add_trace,
    ),
    Command(
        "audit",
        "Report how several nodes change the results of apps, why, and what to do about it. "
        "Exit code 1 where something depends on the node and is not accepted.",
        "apps/*.siddhi --html audit.html",
        checks.add_audit,
    ),
    Command(
        "divergence",
        "List the outputs that several nodes lose, repeat or invent, against one node, by query, with their causes.",
        "fraud.siddhi --feed Payments=p.csv --time at --html page.html",
        comparisons.add_divergence,
    ),
    Command(
        "study",
        "Count the outputs that differ from one node's on several numbers of nodes under several routings.",
        "fraud.siddhi --feed Payments=p.csv --time at --nodes 2-4",
        comparisons.add_study,
    ),
    Command(
        "report",
        "Write a page to send: the app, its topology, results by shard, divergence, study or failover, with pictures.",
        "fraud.siddhi report.html --nodes 3 --feed Payments=p.csv --time at",
        comparisons.add_report,
    ),
    Command(
        "compare",
        "List the outputs that are gone, new or other under another text of an app, with the clause that causes it.",
        "old.siddhi new.siddhi --feed S=s.csv --time at --at-most gone=0",
        comparisons.add_compare,
    ),
    Command(
        "at",
        "Show what each node held at a moment: events in windows, partial matches, rows of tables.",
        "fraud.siddhi '2024-06-01 10:05' --feed Payments=p.csv --query spree",
        comparisons.add_at,
    ),
    Command(
        "follow",
        "Show the history of an event, or the events of an output.",
        "fraud.siddhi --event 1234 --feed Payments=p.csv --time at",
        comparisons.add_follow,
    ),
    Command(
        "whynot",
        "Say why an output did not come, with the smallest change of the log that brings it.",
        "fraud.siddhi Sprees card=c7 --feed Payments=p.csv --time at",
        comparisons.add_whynot,
    ),
    Command(
        "failover",
        "Count the outputs that two nodes of minimum HA lose or repeat when they fail, against one that never fails.",
        "fraud.siddhi --feed Payments=p.csv --time at --faults random:3",
        comparisons.add_failover,
    ),
    Command(
        "test",
        "Run the tests of apps in test files, without sources, sinks, databases, Spark and Java. "
        "Exit code 1 where an output differs, 2 where a test file or an app is wrong.",
        "tests --junit results.xml",
        testing.add_test,
    ),
    Command("fmt", "Format apps in place: layout only, comments are kept.", "trades.siddhi", texts.add_fmt),
    Command(
        "run",
        "Deploy an app, run its feeds to their end, and print the output; follow its sources.",
        "trades.siddhi --nodes 3 --feed Prices=prices.csv --time timestamp",
        runs.add_run,
    ),
    Command(
        "generate",
        "Generate events of a stream by a seed, and write them into a file.",
        "t.siddhi --stream Prices --rows 10000 --seed 7 --out prices.csv",
        runs.add_generate,
    ),
    Command(
        "record",
        "Record what an app's sources read into a file, without computing anything.",
        "trades.siddhi --into kept --mask card --allow kafka=localhost:9092",
        runs.add_record,
    ),
    Command(
        "split",
        "Split an app by @dist into apps of their own, with topics of Kafka or NATS between them.",
        "trades.siddhi --kafka localhost:9092 --into apps",
        texts.add_split,
    ),
    Command(
        "query",
        "Answer an on-demand query from stored aggregations, without running the app.",
        "t.siddhi \"from Totals within '2024-**-**' per 'days' select *\"",
        stored.add_query,
    ),
    Command(
        "store",
        "Look after stored aggregations: shards, and tables from before partitioning.",
        "shards trades.siddhi",
        stored.add_store,
    ),
    Command(
        "apps",
        "List the apps that were deployed here and the disk space that they use, or remove some.",
        "remove Trades",
        folders.add_apps,
    ),
    Command(
        "manager",
        "Run a manager of a distributed deployment: it takes apps over HTTP, and from a directory.",
        "--conf manager-1.yaml --allow-env ADMIN_PASSWORD --watch apps",
        folders.add_manager,
    ),
    Command(
        "mcp",
        "Give agents the commands as tools, over MCP on standard input and output: check, run, trace, test, compare.",
        "--allow file=/data",
        agents.add_mcp,
    ),
)
"""The commands, in the order of the help."""
