"""Nodes compared with one node, without a notebook: `sparkstream divergence`, `study` and `failover`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import Misuse
from ..option_values import counts, positive, stream_and_file
from ..options import add, add_reading, reading_of, write_text
from .app_texts import compile_plan
from .commands import Commands
from .replays_shown import show_replays
from .results import report_feed
from .running import check_feeds, close_at_end

if TYPE_CHECKING:
    from ..app import App
    from ..lab.compared_shown import Comparison
    from ..plan import Plan

_LIMIT = 20


def add_compared(commands: Commands) -> None:
    """Add `sparkstream divergence`, `study` and `failover`."""
    c = commands.add(
        "divergence",
        divergence,
        "List the outputs that several nodes lose, repeat or invent, against one node, by query, with their causes.",
        "fraud.siddhi --feed Payments=p.csv --time at --html page.html",
    )
    _add_common(c)
    c.add_argument("--nodes", type=positive, default=2, metavar="N", help="the number of nodes (default: 2)")
    c.add_argument("--routing", default="round_robin", metavar="HOW", help=f"{_ROUTING} (default: round_robin)")
    add(c, "--limit", help=f"outputs that differ to list (default: {_LIMIT})", default=_LIMIT)
    c = commands.add(
        "study",
        study,
        "Count the outputs that differ from one node's on several numbers of nodes under several routings.",
        "fraud.siddhi --feed Payments=p.csv --time at --nodes 2-4",
    )
    _add_common(c)
    c.add_argument(
        "--nodes", type=counts, default=[2, 3, 4], metavar="A-B", help="numbers of nodes, as 2-4 or 2,8 (default: 2-4)"
    )
    c.add_argument(
        "--routing", action="append", metavar="HOW",
        help=f"{_ROUTING}; may be given several times (default: those that suit the app)",
    )  # fmt: skip
    add(c, "--limit", help="combinations to list (default: 100)", default=100)
    c = commands.add(
        "failover",
        failover,
        "Count the outputs that two nodes of minimum HA lose or repeat when they fail, against one that never fails.",
        "fraud.siddhi --feed Payments=p.csv --time at --faults random:3",
    )
    _add_common(c)
    add(c, "--faults", "--seed")
    add(c, "--limit", help=f"incidents to list (default: {_LIMIT})", default=_LIMIT)


_ROUTING = "which node gets an event: round_robin, hash:ATTRIBUTE, node:K, random:SEED, or sticky"


def _add_common(c: Any) -> None:
    c.add_argument("app", metavar="APP.siddhi", help="the app's text; - is standard input")
    c.add_argument(
        "--feed", action="append", default=[], type=stream_and_file, metavar="STREAM=FILE",
        help="the events, a .csv or .parquet file; may be given several times; a recording needs no STREAM=",
    )  # fmt: skip
    add_reading(c)
    add(c, "--param", "--conf", "--allow-env", "--allow-scripts")
    c.add_argument("--json", action="store_true", help="print JSON")
    c.add_argument("--html", metavar="FILE", help="write a page into this file")


def divergence(options: Any) -> int:
    """`sparkstream divergence`."""
    def compare(app: App) -> Comparison:
        return app.divergence(nodes=options.nodes, routing=options.routing)

    return _compare(options, {}, compare)


def study(options: Any) -> int:
    """`sparkstream study`."""
    def compare(app: App) -> Comparison:
        return app.study(nodes=options.nodes, routings=options.routing)

    return _compare(options, {}, compare)


def failover(options: Any) -> int:
    """`sparkstream failover`."""
    from ..app import Failover
    def compare(app: App) -> Comparison:
        result = app.failover()
        assert isinstance(result, Failover)  # of mode ha
        return result

    _check_pair(options)
    how = {"mode": "ha", "faults": options.faults or "random", "seed": options.seed or 0}
    return _compare(options, how, compare)


def _check_pair(options: Any) -> None:
    """Raises `Misuse` for the deployment file of one node alone, as failovers need two."""
    from ..app.config.conf import HA, node_files
    from ..app.config.secrets import References

    if options.conf:
        references = References(dict(options.param), tuple(options.allow_env))
        if len(node_files(options.conf, ("", HA), references)) == 1:
            raise Misuse("--conf: a failover has two nodes: name the deployment files of both, or leave --conf out")


def _compare(options: Any, how: dict[str, Any], compare: Callable[[App], Comparison]) -> int:
    """Deploys the app in a folder of its own, without its connections; compares, and prints the result. Raises `Misuse`
    without a feed."""
    from ..lab import connect
    from ..lab.compared_shown import comparison_json, comparison_page, comparison_text

    if not options.feed:
        raise Misuse("name the events: --feed STREAM=FILE, or --feed FILE for a recording")
    connect()
    options.offline = True
    plan = compile_plan(options)
    check_feeds(plan, options)
    with _deploy_offline(plan, options, how) as app:
        code = _feed(app, options)
        with show_replays(f"{app.name}: the nodes are replayed; Ctrl-C ends it"):
            result = compare(app)
        if options.html is not None:
            write_text(options.html, comparison_page(result, options.limit))
        if options.json:
            print(json.dumps(comparison_json(result, options.limit), indent=2, default=str))
        else:
            print(comparison_text(result, options.limit))
    return code


@contextmanager
def _deploy_offline(plan: Plan, options: Any, how: dict[str, Any]) -> Iterator[App]:
    """The app on one node, in this process, in a folder that is removed."""
    from ..app import deploy
    from ..journal.temporary import temporary_folder

    name = plan.name or ("app" if options.app == "-" else Path(options.app).stem)
    with temporary_folder("compared") as home:
        app = deploy(
            plan.text, name=name, home=home, master="inline", offline=True, retention="recording=1TB",
            variables=dict(options.param), conf=options.conf, allow_env=options.allow_env,
            allow_scripts=options.allow_scripts, max_ahead=None, **how,
        )  # fmt: skip
        with close_at_end(app):
            yield app


def _feed(app: App, options: Any) -> int:
    """Feeds the files, merged by event time where there is one; reports go to standard error. Returns the exit code: 1
    where all rows of a stream were rejected."""
    code = 0
    files: dict[str, list[Path]] = {}
    for stream, path in options.feed:
        if stream:
            files.setdefault(stream, []).append(Path(path))
        else:
            code |= report_feed(app, app.feed(Path(path)), sys.stderr)
    groups = [files] if options.time is not None else [{s: p} for s, p in files.items()]
    for group in groups if files else ():
        code |= report_feed(app, app.feed(group, **reading_of(options)), sys.stderr)
    return code
