"""`%siddhi` and `%%siddhi`: words of a line → a call of `cluster` → what it shows."""

from __future__ import annotations

import ast
import json
import sys
import traceback
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from IPython.core.magic import Magics, line_cell_magic, magics_class
from traitlets import Int, observe

from .. import cluster
from ..cluster import App, Errors, Events
from ..cluster.deployment import milliseconds
from ..errors import Misuse, nearest
from . import display
from .arguments import HelpAsked, Options, deploy_options, line_options, overview, split, split_query

T = TypeVar("T", Events, Errors)


@magics_class
class SiddhiMagic(Magics):
    """Settings of the `%siddhi` magics; change one by `%config SiddhiMagic.displaylimit = 50`."""

    shell: Any  # IPython types it as possibly missing; a magic that runs has one

    displaylimit = Int(
        display.DISPLAY_LIMIT, min=1, help="Rows shown of a query's answer, a stream's output or the errors."
    ).tag(config=True)

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self._deploy_options = deploy_options()
        self._line_options = line_options()
        # What `%siddhi?` and `%%siddhi?` show.
        type(self).siddhi.__doc__ = help_text(self._line_options, self._deploy_options)

    @observe("displaylimit")
    def _limit_changed(self, change: Any) -> None:
        display.DISPLAY_LIMIT = change["new"]

    @line_cell_magic
    def siddhi(self, line: str, cell: str | None = None) -> Any:
        try:
            return self._line(line) if cell is None else self._cell(line, cell)
        except HelpAsked as asked:
            print(str(asked).rstrip())
            return None

    # ---------------------------------------------------------------------------------------------------- the cell

    def _cell(self, line: str, cell: str) -> Any:
        o = self._deploy_options.parse(split(line))
        variables = dict(o.param)
        if o.query:
            if not o.name:
                raise Misuse("%%siddhi --query NAME: the name of the running app is missing")
            return self._query(cluster.get(o.name), cell, o)
        if o.check:
            checked = cluster.check(cell, variables=variables)
            if checked.error is not None:
                raise checked.error
            return checked
        if o.explain:
            return cluster.explain(cell, variables=variables)
        app = self._interruptible(
            lambda: cluster.deploy(
                cell,
                name=o.name,
                nodes=o.nodes,
                mode=o.mode,
                routing=o.routing,
                shard_ids=o.shard_ids.split(",") if o.shard_ids else None,
                master=o.master,
                store=o.store,
                fresh=o.fresh,
                variables=variables,
                allow_scripts=o.allow_scripts,
                start=None if o.start is None else milliseconds(o.start, "--start"),
                timezone=o.timezone,
            ),
        )
        self._keep(o, app)
        return app

    # ---------------------------------------------------------------------------------------------------- the line

    def _line(self, line: str) -> Any:
        words = split(line.split(maxsplit=1)[0]) if line.strip() else []
        if not words or words[0] in ("--help", "-h", "help"):
            print(overview(self._line_options))
            return None
        name = words[0]
        if name not in self._line_options:
            if name.startswith("-"):
                raise Misuse(f"%siddhi takes a command first: {', '.join(self._line_options)}")
            raise Misuse(nearest(f"%siddhi has no command '{name}'", name, self._line_options))
        rest = line.split(maxsplit=1)[1] if len(line.split(maxsplit=1)) > 1 else ""
        return getattr(self, f"_do_{name}")(self._line_options[name], rest)

    def _do_feed(self, options: Options, rest: str) -> Any:
        o = options.parse(split(rest))
        app, stream = self._part_of(o.stream, "a stream")
        source = self._source(o.source)
        how = {"time": o.time, "route": o.route, "limit": o.limit}
        if o.background:
            fed: Any = app.feed(stream, source, **how, background=True)
        else:
            fed = self._interruptible(lambda: app.feed(stream, source, **how), app)
        self._keep(o, fed)
        return fed

    def _do_feeds(self, options: Options, rest: str) -> Any:
        o = options.parse(split(rest))
        if o.action:
            if o.feed is None:
                raise Misuse(f"%siddhi feeds {o.action} ID: the feed's number is missing. %siddhi feeds lists them")
            getattr(cluster.feed_of(o.feed), o.action)()
        return cluster.feeds()

    def _do_send(self, options: Options, rest: str) -> Any:
        o = options.parse(split(rest))
        app, stream = self._part_of(o.stream, "a stream")
        values = literal(o.values)
        at = None if o.at is None else milliseconds(o.at, "--at")
        self._interruptible(lambda: app.send(stream, values, at=at, node=o.node), app)

    def _do_query(self, options: Options, rest: str) -> Any:
        words, text = split_query(rest)
        o = options.parse(words)
        if not text:
            raise Misuse(f'%siddhi query {o.app} "from … select …": the query is missing')
        return self._query(cluster.get(o.app), text, o)

    def _do_view(self, options: Options, rest: str) -> Any:
        o = options.parse(split(rest))
        name, _, aggregation = o.aggregation.partition(".")
        return cluster.get(name).view(aggregation or None, per=o.per, measure=o.measure)

    def _do_output(self, options: Options, rest: str) -> Any:
        o = options.parse(split(rest))
        app, stream = self._part_of(o.stream, "a stream")
        self._interruptible(app.flush, app)  # what a cell before it sent is part of what it shows
        return self._frame(o, app.output(stream, last=o.last))

    def _do_explain(self, options: Options, rest: str) -> Any:
        return cluster.get(options.parse(split(rest)).app).explain()

    def _do_check(self, options: Options, rest: str) -> Any:
        source = options.parse(split(rest)).source
        held = self.shell.user_ns.get(source)
        if isinstance(held, str):
            text = held
        elif Path(source).is_file():
            text = Path(source).read_text(encoding="utf-8")
        else:
            raise Misuse(f"'{source}' is neither a variable that holds a text nor a file")
        checked = cluster.check(text)
        if checked.error is not None:
            raise checked.error
        return checked

    def _do_list(self, options: Options, rest: str) -> Any:
        options.parse(split(rest))
        return cluster.apps()

    def _do_stop(self, options: Options, rest: str) -> Any:
        o = options.parse(split(rest))
        if bool(o.app) == o.all:
            raise Misuse("%siddhi stop NAME, or %siddhi stop --all")
        names = sorted(cluster.apps()) if o.all else [o.app]
        feeds = [f for name in names for f in cluster.get(name).feeds.values() if f.active]
        for name in names:
            cluster.get(name).stop()
        with_feeds = f" (with feed {', '.join(str(f.id) for f in feeds)})" if feeds else ""
        print(f"stopped: {', '.join(names)}{with_feeds}" if names else "no app was running")

    def _do_errors(self, options: Options, rest: str) -> Any:
        o = options.parse(split(rest))
        return self._frame(o, cluster.get(o.app).errors)

    def _do_stats(self, options: Options, rest: str) -> Any:
        return cluster.get(options.parse(split(rest)).app).stats()

    def _do_tb(self, options: Options, rest: str) -> Any:
        options.parse(split(rest))
        last = getattr(sys, "last_value", None)
        if last is None:
            print("There was no error yet.")
        else:
            print("".join(traceback.format_exception(last)).rstrip())

    # ----------------------------------------------------------------------------------------------------- helpers

    def _query(self, app: App, text: str, o: Namespace) -> Any:
        answer = self._interruptible(lambda: app.query(text.strip(), limit=o.limit), app)
        if o.out:
            self.shell.user_ns[o.out] = answer.frame
        return answer

    def _keep(self, o: Namespace, value: Any) -> None:
        if o.out:
            self.shell.user_ns[o.out] = value

    def _frame(self, o: Namespace, shown: T) -> T:
        if o.out:
            self.shell.user_ns[o.out] = shown.frame
        return shown if o.limit is None else replace(shown, limit=o.limit)

    def _part_of(self, dotted: str, what: str) -> tuple[App, str]:
        """`App.Stream` as the app and the stream's name."""
        name, dot, part = dotted.partition(".")
        if not dot or not part:
            known = cluster.apps()
            owner = name if name in known else "NAME"
            raise Misuse(
                f"'{dotted}' does not name {what} of an app: write {owner}.{'Stream' if name in known else dotted}"
            )
        return cluster.get(name), part

    def _source(self, source: str) -> Any:
        """The variable called `source`, or the path."""
        if source in self.shell.user_ns:
            return self.shell.user_ns[source]
        if Path(source).exists():
            return Path(source)
        if source.isidentifier():
            frames = [n for n, v in self.shell.user_ns.items() if not n.startswith("_") and hasattr(v, "columns")]
            raise Misuse(nearest(f"there is no variable and no file called '{source}'", source, frames))
        raise Misuse(f"there is no file '{source}' here ({Path.cwd()})")

    def _interruptible(self, call: Any, app: App | None = None) -> Any:
        """`call()`; the Stop button, which cancels what Spark does for it, is one line in the cell."""
        try:
            return call()
        except KeyboardInterrupt:
            raise Interrupted("what was committed stays" if app is None else interrupted(app)) from None

    def offer_completions(self) -> None:
        """Registers the completion of commands, apps, streams and SiddhiQL in cells of these magics."""
        from .complete import Completer

        matcher = Completer(self.shell.user_ns, self._line_options, self._deploy_options).matches
        self.shell.Completer.custom_matchers.append(matcher)


class Interrupted(Misuse):
    """The Stop button was pressed while Spark worked."""


def interrupted(app: App) -> str:
    """What is true of an app after the Stop button, in words that agree with `%siddhi list`."""
    if app.state == "stopped":
        again = "starts again with its next event or query"
        return f"what was committed stays. {app.name} is stopped, and {again}"
    return f"what was committed stays. {app.name} is {app.state}"


def help_text(commands: dict[str, Options], cell: Options) -> str:
    """The magics' docstring: commands, and options of the cell."""
    return f"SiddhiQL in a notebook.\n\n{overview(commands)}\n\n{cell.format_help()}"


def literal(text: str) -> Any:
    """An event's values from JSON, or from Python's way of writing them. Raises `Misuse`."""
    try:
        values = json.loads(text)
    except json.JSONDecodeError as e:
        try:
            values = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            raise Misuse(f"the values are neither JSON nor Python: {e.msg} at column {e.colno}: {text}") from None
    if isinstance(values, tuple):
        return list(values)
    if isinstance(values, (list, dict)):
        return values
    raise Misuse(f"the values must be a list or a dict: {text}")
