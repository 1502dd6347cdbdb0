"""Nodes compared with one node, for `sparkstream divergence`, `study` and `failover`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..app import App, deploy
from ..errors import Misuse
from ..journal.temporary import temporary_folder
from ..lab import connect
from ..lab.compared_shown import Comparison, comparison_json, comparison_page, comparison_text
from ..options import reading_of, write_text
from ..plan import Plan
from .compiling import compile_plan
from .replays_shown import show_replays
from .results import report_feed
from .running import check_feeds, close_at_end


def compare_nodes(options: Any, compare: Callable[[App], Comparison], **deployment: Any) -> int:
    """Deploys the app in a folder of its own, without its connections, with further arguments of `deploy`; compares,
    and prints the result. Raises `Misuse` without a feed."""
    with open_fed_app(options, deployment) as (app, code):
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
def open_fed_app(options: Any, deployment: dict[str, Any]) -> Iterator[tuple[App, int]]:
    """The app of a command, without its connections, with the arguments of `deploy` in `deployment`; it took its feeds.
    With it the exit code of the feeds. Raises `Misuse` without a feed."""
    if not options.feed:
        raise Misuse("name the events: --feed STREAM=FILE, or --feed FILE for a recording")
    connect()
    options.offline = True
    plan = compile_plan(options)
    check_feeds(plan, options)
    with _deploy_offline(plan, options, deployment) as app:
        yield app, _feed(app, options)


@contextmanager
def _deploy_offline(plan: Plan, options: Any, deployment: dict[str, Any]) -> Iterator[App]:
    """The app on one node, in this process, in a folder that is removed."""
    name = plan.name or ("app" if options.app == "-" else Path(options.app).stem)
    with temporary_folder("compared") as home:
        app = deploy(
            plan.text, name=name, home=home, master="inline", offline=True, retention="recording=1TB",
            variables=dict(options.param), conf=options.conf, allow_env=options.allow_env,
            allow_scripts=options.allow_scripts, max_ahead=None, **deployment,
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
