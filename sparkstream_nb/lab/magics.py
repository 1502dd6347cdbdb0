"""`%siddhi` and `%%siddhi`: words of a line → a call of `app` → the display of its result."""

from __future__ import annotations

import re
import sys
import traceback
from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from IPython.core.magic import Magics, line_cell_magic, magics_class
from traitlets import Int, List, Unicode, observe

from .. import app as api
from ..app import App, Errors, Events, Feed
from ..app.deployment.deployment import milliseconds
from ..app.deployment.fed import FedBefore
from ..app.generating import generate_usual, stream_in_app
from ..app.results.frontend import Displayed
from ..errors import Misuse, did_you_mean, lines_below, nearest
from ..lang.format import format_text
from ..options import HelpAsked, Options, compared_of, deployment_of, play_of, read_text, reading_of, write_text
from ..testing import reporting, suite_runner
from ..wording import speak_of_options
from . import display
from .arguments import (
    OTHER_NAMES,
    SQL_OPTIONS,
    STUDIED,
    deploy_options,
    help_text,
    line_options,
    literal,
    overview,
    split,
    split_query,
    with_body,
)
from .attachable import removed_text
from .complete import Completer
from .export_lines import export_line, report_line, save_line
from .inspection import install
from .select_line import select_events
from .sql_lines import QUERY_BEGINNINGS, answer_line
from .trace_line import trace_feed

T = TypeVar("T", Events, Errors)

_CALL = re.compile(r"[A-Za-z_][\w.]*[(\[].*[)\]]")


@magics_class
class SiddhiMagic(Magics):
    """Settings of the `%siddhi` magics; change one by `%config SiddhiMagic.displaylimit = 50`."""

    shell: Any  # IPython types it as possibly missing; a magic that runs has one

    displaylimit = Int(
        display.DISPLAY_LIMIT, min=1, help="Rows shown of a query's answer, a stream's output or the errors."
    ).tag(config=True)

    allow = List(
        Unicode(), help="Places that the text of every app may reach, as --allow of a cell: ['file=out', 'http=http://host']."
    ).tag(config=True)

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self._deploy_options = deploy_options()
        self._line_options = line_options()
        self._cell_text = ""
        self._fed_before = FedBefore()
        # What `%siddhi?` and `%%siddhi?` show.
        type(self).siddhi.__doc__ = help_text(self._line_options, self._deploy_options)

    @observe("displaylimit")
    def _limit_changed(self, change: Any) -> None:
        display.DISPLAY_LIMIT = change["new"]

    @line_cell_magic
    def siddhi(self, line: str, cell: str | None = None) -> Any:
        try:
            with speak_of_options():
                return self._line(line) if cell is None else self._cell(line, cell)
        except HelpAsked as help_request:
            print(str(help_request).rstrip())
            return None

    # ---------------------------------------------------------------------------------------------------- the cell

    def _cell(self, line: str, cell: str) -> Any:
        if "--sql" in split(line):  # its other options are those of %siddhi sql
            return self._ask_sql(line, cell)
        o = self._deploy_options.parse(split(line))
        if not cell.strip():
            raise Misuse("the cell is empty: write the app below the line %%siddhi. %siddhi --help lists the commands")
        if o.query:
            if o.fmt:
                raise Misuse("--fmt formats an app, not a query: leave --query out")
            if not o.name:
                raise Misuse("the name of the running app is missing: write %%siddhi NAME --query")
            app = api.get(o.name)
            with lines_below(self._lines_above(cell)):
                return self._query(app, cell, o)
        if o.fmt:
            return self._format_cell(line, cell)
        if o.compare:
            return self._compare(cell, o)
        how, above = deployment_of(o), self._lines_above(cell)
        how["allow"] = [*self.allow, *how["allow"]]
        compile_options = {name: how[name] for name in ("variables", "conf", "allow_env")}
        if o.check:
            return _check_text(cell, above, **compile_options)
        if o.explain:
            return api.explain(cell, lines_before=above, **compile_options)
        if o.repair:
            return api.repair(cell, lines_before=above, **compile_options)
        if o.graph:
            return api.graph(cell, lines_before=above, mode=how["mode"], **compile_options)
        if o.changes:
            with lines_below(above):
                print(api.changes(cell, name=o.name, **how))
            return None
        with lines_below(above):
            app = self._interruptible(lambda: api.deploy(cell, name=o.name, **how))
        plan_name = app.plan.name
        if o.name and plan_name and plan_name != o.name:
            print(
                f"The app is called {o.name}, as the line above says; @app:name('{plan_name}') in the text has no "
                "effect."
            )
        app.lines_before = above
        app.remember(variable=o.out, lines_before=above)
        self._keep(o, app)
        return app

    # ---------------------------------------------------------------------------------------------------- the line

    def _line(self, line: str) -> Any:
        words = split(line.split(maxsplit=1)[0]) if line.strip() else []
        if not words or words[0] in ("--help", "-h", "help"):
            print(overview(self._line_options))
            return None
        name = "list" if words[0] == "apps" else words[0]  # as `sparkstream apps` in a shell
        if name not in self._line_options:
            if name == "deploy":
                arguments = "".join(f" {word}" for word in line.split()[1:])
                raise Misuse(
                    f"a cell deploys an app: write %%siddhi{arguments} as its first line and the app's text below"
                )
            if name.startswith("-"):
                raise Misuse(f"the command comes first, as in %siddhi list. Commands: {', '.join(self._line_options)}")
            if name in OTHER_NAMES:
                raise Misuse(f"%siddhi has no command '{name}'. Did you mean '{OTHER_NAMES[name]}'?")
            raise Misuse(nearest(f"%siddhi has no command '{name}'", name, self._line_options))
        rest = line.split(maxsplit=1)[1] if len(line.split(maxsplit=1)) > 1 else ""
        return getattr(self, f"_do_{name}")(self._line_options[name], rest)

    def _do_feed(self, options: Options, rest: str) -> Any:
        o = options.parse(split(rest))
        app, stream_sources = self._feed_sources(o)
        sources: Any = {}
        for stream, name in stream_sources:
            sources.setdefault(stream, []).append(self._source(name))
        how = {**reading_of(o), "route": o.route, "limit": o.limit, **play_of(o)}
        fed_with: tuple[Any, ...] = (sources,)
        if o.random is not None:
            stream = self._app_and_stream(o.stream)[1]
            events = generate_usual(stream_in_app(app, stream), o.random, o.seed, o.rate)
            # --rate was the rate of the event times, and is not the pace.
            fed_with, how = (stream, events.frame), {**how, "time": events.time, "rate": None}
        elif not o.sources:
            fed_with = (stream_sources[0][0], self._source(stream_sources[0][1]))
        again = [(s, name) for s, name in stream_sources if self._fed_before.has(app.home, s, self._source(name))]
        background = o.background or o.paused or o.together
        if background:
            how |= {name: True for name in ("paused", "together") if getattr(o, name)}
            feed: Any = app.feed(*fed_with, **how, background=True)
        else:
            feed = self._interruptible(lambda: app.feed(*fed_with, **how), app)
        if (background or feed.events) and not isinstance(feed, api.FrameFeed):
            for stream, name in stream_sources:
                self._fed_before.add(app.home, stream, self._source(name))
            for stream, name in again:
                twice = "its events are counted twice. %%siddhi --fresh starts from scratch."
                print(f"{name} was fed to {app.name}.{stream} before: {twice}")
        self._keep(o, feed)
        return feed

    def _feed_sources(self, o: Any) -> tuple[App, list[tuple[str, str]]]:
        """The app that is fed, and (stream, name of a source) pairs; none of events that are generated."""
        if o.random is not None:
            self._check_random(o)
            return self._app_and_stream(o.stream)[0], []
        if o.seed is not None:
            raise Misuse("%siddhi feed: --seed is the seed of generated events: add --random N")
        if not o.sources:
            if o.source is None:
                raise Misuse(f"%siddhi feed {o.stream} SOURCE: the variable or file to feed is missing")
            app, stream = self._app_and_stream(o.stream)
            return app, [(stream, o.source)]
        if o.source is not None:
            raise Misuse(f"%siddhi feed NAME --from STREAM=SOURCE: '{o.source}' is one word too many")
        return api.get(o.stream), o.sources

    @staticmethod
    def _check_random(o: Any) -> None:
        """Raises `Misuse` for a source beside `--random`, and for options that say how one is read."""
        if o.source is not None or o.sources:
            source = o.source or "=".join(o.sources[0])
            raise Misuse(f"%siddhi feed: --random generates the events, and {source} has some too: leave one out")
        read = {"--time": o.time, "--time-format": o.time_format, "--time-zone": o.time_zone, "--map": o.map,
                "--decimal": o.decimal, "--missing": o.missing}  # fmt: skip
        for option, value in read.items():
            if value:
                raise Misuse(f"%siddhi feed: {option} says how a source is read, and --random has none: leave it out")

    def _do_feeds(self, options: Options, rest: str) -> Any:
        o = options.parse(split(rest))
        if o.action:
            if o.feed is None:
                raise Misuse(f"%siddhi feeds {o.action} ID: the feed's number is missing. %siddhi feeds lists them")
            self._control(api.feed_of(o.feed), o)
        return api.all_feeds()

    def _control(self, feed: Feed, o: Any) -> None:
        """Carries out an action of `%siddhi feeds`. Raises `Misuse` for options that it does not have."""
        if (o.events or o.until) and o.action != "step":
            raise Misuse("--events and --until are for %siddhi feeds step ID")
        if (o.speed or o.rate) and o.action != "pace":
            raise Misuse("--speed and --rate are for %siddhi feeds pace ID")
        if o.action == "step" and o.until is not None:
            feed.step_until(o.until)
        elif o.action == "step":
            feed.step(o.events or 1)
        elif o.action == "pace":
            feed.set_pace(o.speed, o.rate)
        else:
            getattr(feed, o.action)()

    def _do_send(self, options: Options, rest: str) -> Any:
        o = options.parse(split(rest))
        app, stream = self._app_and_stream(o.stream)
        values = literal(o.values)
        at = None if o.at is None else milliseconds(o.at, "--at")
        print(self._interruptible(lambda: app.send(stream, values, at=at, node=o.node, wait=True), app))

    def _do_query(self, options: Options, rest: str) -> Any:
        words, text = split_query(rest)
        o = options.parse(words)
        app, dot, part = o.app.partition(".")
        if dot and o.app not in api.apps() and app in api.apps():
            raise Misuse(f'the query needs a source: write %siddhi query {app} "from {part} select *"')
        if not text:
            raise Misuse(f'the query is missing: write %siddhi query {o.app} "from ... select ..."')
        return self._query(api.get(o.app), text, o)

    def _do_sql(self, options: Options, rest: str) -> Any:
        words, text = split_query(rest, QUERY_BEGINNINGS, SQL_OPTIONS)
        o = options.parse(words)
        if o.text is not None:
            raise Misuse(f"an SQL query begins with select or from, and not with '{o.text}'")
        if not text:
            return api.sql_relations()
        return answer_line(text, o, self.shell.user_ns, self._interruptible)

    def _do_view(self, options: Options, rest: str) -> Any:
        o = options.parse(split(rest))
        name, _, aggregation = o.aggregation.partition(".")
        return api.get(name).view(aggregation or None, per=o.per, measure=o.measure)

    def _do_output(self, options: Options, rest: str) -> Any:
        o = options.parse(split(rest))
        app, stream = self._app_and_stream(o.stream)
        self._interruptible(app.flush, app)  # events sent by an earlier cell are part of the output
        return self._frame(o, app.output(stream, last=o.last))

    def _do_tail(self, options: Options, rest: str) -> Any:
        o = options.parse(split(rest))
        app, stream = self._app_and_stream(o.stream)
        return app.tail(stream, last=o.last, latest=o.latest, number=o.number, newest=o.newest)

    def _do_chart(self, options: Options, rest: str) -> Any:
        o = options.parse(split(rest))
        app, stream = self._app_and_stream(o.stream)
        return app.chart(stream, y=o.y, by=o.by, x=o.x, last=o.last, kind=o.kind)

    def _do_explain(self, options: Options, rest: str) -> Any:
        o = options.parse(split(rest))
        app = api.get(o.app)
        return app.repair() if o.repair else app.explain()

    def _do_divergence(self, options: Options, rest: str) -> Any:
        return self._recorded_answer(options, rest, lambda app, o: app.divergence(o.nodes, o.routing))

    def _do_profile(self, options: Options, rest: str) -> Any:
        o = options.parse(split(rest))
        app = api.get(o.app)
        profile = self._interruptible(lambda: app.profile(o.nodes, o.routing), app)
        self._keep(o, profile)
        return profile

    def _do_at(self, options: Options, rest: str) -> Any:
        o = options.parse(split(rest))
        app = api.get(o.app)
        moment = self._interruptible(
            lambda: app.at(o.time, event=o.event, output=o.output, nodes=o.nodes, routing=o.routing), app
        )
        self._keep(o, moment)
        return moment if o.query is None else moment[o.query]

    def _do_follow(self, options: Options, rest: str) -> Any:
        o = options.parse(split(rest))
        app = api.get(o.app)
        answer = self._interruptible(
            lambda: app.follow(o.event, output=o.output, nodes=o.nodes, routing=o.routing), app
        )
        self._keep(o, answer)
        return answer

    def _do_whynot(self, options: Options, rest: str) -> Any:
        o = options.parse(split(rest))
        app = api.get(o.app)
        answer = self._interruptible(
            lambda: app.why_not(
                o.output, dict(o.values), at=o.at, events=o.event, nodes=o.nodes, routing=o.routing
            ), app,
        )  # fmt: skip
        self._keep(o, answer)
        return answer

    def _do_select(self, options: Options, rest: str) -> Any:
        o = options.parse(split(rest))
        selection = select_events(o)
        self._keep(o, selection)
        return selection

    def _do_study(self, options: Options, rest: str) -> Any:
        return self._recorded_answer(options, rest, lambda app, o: app.study(o.nodes, o.routing))

    def _do_failover(self, options: Options, rest: str) -> Any:
        return self._recorded_answer(options, rest, _failover_of)

    def _recorded_answer(self, options: Options, rest: str, ask: Callable[[Any, Namespace], Any]) -> Any:
        """The answer of an app about its recorded input; its frame goes to the variable `--out`."""
        o = options.parse(split(rest))
        app = api.get(o.app)
        answer = self._interruptible(lambda: ask(app, o), app)
        if o.out:
            self.shell.user_ns[o.out] = answer.frame
        return answer

    def _do_cluster(self, options: Options, rest: str) -> Any:
        return api.get(options.parse(split(rest)).app).cluster

    def _do_fault(self, options: Options, rest: str) -> Any:
        o = options.parse(split(rest))
        nodes = api.get(o.app).cluster
        if o.other is not None and o.kind not in ("cut", "slow"):
            raise Misuse(f"%siddhi fault: {o.kind} has one node, and '{o.other}' is one more")
        if o.by is not None and o.kind != "slow":
            raise Misuse(f"%siddhi fault: {o.kind} takes no --by: leave it out")
        if o.kind in ("kill", "restart"):
            if o.until is not None:
                raise Misuse(f"%siddhi fault: {o.kind} has no end: leave --until out")
            (nodes.kill if o.kind == "kill" else nodes.restart)(o.node, o.at)
            return
        if o.until is None:
            what = "slow link" if o.kind == "slow" else o.kind
            raise Misuse(f"%siddhi fault: when does the {what} end? Add --until TIME")
        if o.kind == "pause":
            nodes.pause(o.node, (o.at, o.until))
        elif o.other is None:
            ends = "the other one, `database` or `clients`" if o.kind == "cut" else "the other one or `database`"
            raise Misuse(f"%siddhi fault: {o.kind} has two ends: a node, and {ends}")
        elif o.kind == "slow":
            if o.by is None:
                raise Misuse("%siddhi fault: by how much is the link slower? Add --by MS")
            nodes.slow(o.node, o.other, o.by, (o.at, o.until))
        else:
            nodes.cut(o.node, o.other, (o.at, o.until))

    def _do_graph(self, options: Options, rest: str) -> Any:
        return api.get(options.parse(split(rest)).app).graph()

    def _do_trace(self, options: Options, rest: str) -> Any:
        o = options.parse(split(rest))
        trace = trace_feed(o, api.apps(), self._source)
        self._keep(o, trace)
        return trace

    def _do_check(self, options: Options, rest: str) -> Any:
        o = options.parse(split(rest))
        variable_text = self._held_text(o.source)
        text = read_text(o.source) if variable_text is None else variable_text
        return _check_text(text, variables=dict(o.param), conf=o.conf, allow_env=o.allow_env)

    def _do_fmt(self, options: Options, rest: str) -> Any:
        o = options.parse(split(rest))
        variable_text = self._held_text(o.source)
        if variable_text is not None:
            print(format_text(variable_text), end="")
            return
        text = read_text(o.source)
        new_text = format_text(text)
        if new_text != text:
            write_text(o.source, new_text)
        print(f"{o.source}: {'was formatted already' if new_text == text else 'formatted'}")

    def _do_test(self, options: Options, rest: str) -> Any:
        o = options.parse(split(rest))
        run = suite_runner.RunOptions(allow_scripts=o.allow_scripts, only=o.k or "")
        how = reporting.ReportOptions(run, o.update, o.coverage, o.quiet)
        report = self._interruptible(lambda: reporting.run_paths(o.paths, how))
        self._keep(o, report)
        return report

    def _do_list(self, options: Options, rest: str) -> Any:
        options.parse(split(rest))
        return api.apps()

    def _do_attach(self, options: Options, rest: str) -> Any:
        o = options.parse(split(rest))
        if o.app is None:
            return api.attachable(o.home)
        how = {"variables": dict(o.param), "master": o.master}
        app = self._interruptible(lambda: api.attach(o.app, o.home, **how))
        variable = app.remembered_variable if o.out is None else o.out
        if variable is not None:
            self.shell.user_ns[variable] = app
        return app

    def _do_stop(self, options: Options, rest: str) -> Any:
        o = options.parse(split(rest))
        if bool(o.app) == o.all:
            raise Misuse("which app? Write %siddhi stop NAME, or %siddhi stop --all")
        names = sorted(api.apps()) if o.all else [o.app]
        feeds = [f for name in names for f in api.get(name).feeds.values() if f.active]
        for name in names:
            api.get(name).stop()
        with_feeds = f" (with feed {', '.join(str(f.id) for f in feeds)})" if feeds else ""
        print(f"stopped: {', '.join(names)}{with_feeds}" if names else "no app was running")

    def _do_remove(self, options: Options, rest: str) -> Any:
        o = options.parse(split(rest))
        if o.home and len(o.apps) > 1:
            raise Misuse("--home is the folder of one app: remove the others by themselves")
        for name in o.apps:
            print(removed_text((api.empty_trash_of if o.trash else api.remove_app)(name, o.home)))

    def _do_save(self, options: Options, rest: str) -> Any:
        print(save_line(options.parse(split(rest))))

    def _do_export(self, options: Options, rest: str) -> Any:
        o = options.parse(split(rest))
        return self._interruptible(lambda: export_line(o))

    def _do_report(self, options: Options, rest: str) -> Any:
        o = options.parse(split(rest))
        print(self._interruptible(lambda: report_line(o)))

    def _do_errors(self, options: Options, rest: str) -> Any:
        o = options.parse(split(rest))
        app = api.get(o.app)
        if o.replay is None:
            return self._frame(o, app.errors)
        every = not o.replay or [] in o.replay
        ids = None if every else [id for ids in o.replay for id in ids]
        print(app.replay(ids, decimal=o.decimal, missing=o.missing))
        return None

    def _do_stats(self, options: Options, rest: str) -> Any:
        o = options.parse(split(rest))
        if o.app is None:
            if o.prometheus:
                raise Misuse("--prometheus is of one app: %siddhi stats NAME --prometheus")
            return api.overview()
        stats = api.get(o.app).stats()
        if not o.prometheus:
            return stats
        print(stats.prometheus(), end="")
        return None

    def _do_tb(self, options: Options, rest: str) -> Any:
        options.parse(split(rest))
        last = getattr(sys, "last_value", None)
        if last is None:
            print("There was no error yet.")
        else:
            print("".join(traceback.format_exception(last)).rstrip())

    # ----------------------------------------------------------------------------------------------------- helpers

    def _query(self, app: App, text: str, o: Namespace) -> Any:
        as_wso2 = o.as_node or o.as_wso2
        answer = self._interruptible(lambda: app.query(text.rstrip(), limit=o.limit, as_wso2=as_wso2), app)
        if o.out:
            self.shell.user_ns[o.out] = answer.frame
        return replace(answer, beside=True) if o.by_shard else answer

    def _ask_sql(self, line: str, cell: str) -> Any:
        """The answer to the SQL query of a cell."""
        o = self._line_options["sql"].parse([word for word in split(line) if word != "--sql"])
        if o.text is not None:
            raise Misuse(f"the query has the apps' names in it: write %%siddhi --sql without '{o.text}'")
        return answer_line(cell, o, self.shell.user_ns, self._interruptible)

    def _compare(self, cell: str, o: Namespace) -> Any:
        if not o.name:
            raise Misuse("the name of the running app is missing: write %%siddhi NAME --compare")
        app, routing = api.get(o.name), None if o.nodes is None else o.routing
        with lines_below(self._lines_above(cell)):
            comparison = self._interruptible(
                lambda: app.compare(cell, feed=o.over, nodes=o.nodes, routing=routing, **compared_of(o)), app
            )
        if o.out:
            self.shell.user_ns[o.out] = comparison.frame
        return comparison

    def _lines_above(self, body: str) -> int:
        """The number of lines of the running cell above `body`: the magic's, and blank ones before it."""
        cell_text, text = self._cell_text.rstrip(), body.rstrip()
        return cell_text[: len(cell_text) - len(text)].count("\n") if cell_text.endswith(text) else 1

    def _format_cell(self, line: str, body: str) -> None:
        """Puts the formatted text below the cell's magic line."""
        above = self._lines_above(body)
        with lines_below(above):
            new_text = format_text(body).rstrip("\n")
        if new_text == body.rstrip("\n"):
            print("The cell was formatted already.")
            return
        lines_before = self._cell_text.splitlines()[:above] if self._cell_text else [f"%%siddhi {line}"]
        self.shell.set_next_input("\n".join([*lines_before, new_text]), replace=True)

    def _held_text(self, source: str) -> str | None:
        """The text of the variable `source`; None for a file. Raises `Misuse` if it is neither."""
        value = self.shell.user_ns.get(source)
        if isinstance(value, str):
            return value
        if not Path(source).exists():
            texts = [n for n, v in self.shell.user_ns.items() if not n.startswith("_") and isinstance(v, str)]
            hint = did_you_mean(source, texts) or ""
            raise Misuse(f"'{source}' is neither a variable that holds a text nor a file. {hint}".strip())
        return None

    def _keep(self, o: Namespace, value: Any) -> None:
        if o.out:
            self.shell.user_ns[o.out] = value

    def _frame(self, o: Namespace, result: T) -> T:
        if o.out:
            self.shell.user_ns[o.out] = result.frame
        return result if o.limit is None else replace(result, limit=o.limit)

    def _app_and_stream(self, full_name: str) -> tuple[App, str]:
        """`App.Stream` as the app and the stream's name."""
        apps = api.apps()
        owner = next((n for n in sorted(apps, key=len, reverse=True) if full_name.startswith(f"{n}.")), None)
        name, dot, stream = (owner, ".", full_name[len(owner) + 1 :]) if owner else full_name.partition(".")
        if not dot or not stream:
            example = f"{full_name}.Stream" if full_name in apps else f"NAME.{full_name}"
            raise Misuse(f"'{full_name}' is not a stream of an app: write {example}, the app's name first")
        return api.get(name), stream

    def _source(self, source: str) -> Any:
        """The variable called `source`, or the path."""
        if source in self.shell.user_ns:
            return self.shell.user_ns[source]
        if Path(source).exists():
            return Path(source)
        if source.isidentifier():
            frames = [n for n, v in self.shell.user_ns.items() if not n.startswith("_") and hasattr(v, "columns")]
            hint = did_you_mean(source, frames)
            frame_list = f"Data frames: {', '.join(sorted(frames))}" if frames else "No variable holds a data frame yet"
            raise Misuse(f"there is no variable and no file called '{source}'. {hint or frame_list}")
        if _CALL.fullmatch(source):
            raise Misuse(f"{source} is neither a variable nor a file: write frame = {source} first, and feed frame")
        raise Misuse(f"there is no file '{source}' in {Path.cwd()}")

    def _interruptible(self, call: Any, app: App | None = None) -> Any:
        """`call()`; the Stop button, which cancels Spark's work for it, gives one line in the cell."""
        try:
            return call()
        except KeyboardInterrupt as stop:
            state = "committed results stay" if app is None else describe_interrupted(app)
            sentences = [state, *getattr(stop, "__notes__", ())]
            raise Interrupted(". ".join(sentences).rstrip(".")) from None

    def watch_cells(self) -> None:
        """Record the text of each cell that runs, for the lines' numbers: a magic gets only the text below it."""
        self.shell.events.register("pre_run_cell", self._cell_begins)

    def _cell_begins(self, info: Any) -> None:
        self._cell_text = info.raw_cell or ""

    def offer_completions(self) -> None:
        """Registers the completion of commands, apps, streams and SiddhiQL in cells of these magics."""
        matcher = Completer(self.shell.user_ns, self._line_options, self._deploy_options).matches
        self.shell.Completer.custom_matchers.append(matcher)

    def offer_inspection(self) -> None:
        """Answers Shift-Tab in SiddhiQL, where a kernel runs."""
        kernel = getattr(self.shell, "kernel", None)
        if kernel is not None:
            install(kernel)

    def offer_bare_cells(self) -> None:
        """Lets a cell that is nothing but its `%%siddhi` line run, as `%%siddhi --help` does."""
        # A line transform: a console asks the cleanup transforms whether a cell is complete before its body is typed.
        transforms = self.shell.input_transformer_manager.line_transforms
        if with_body not in transforms:
            transforms.insert(0, with_body)


class Interrupted(Misuse):
    """The Stop button was pressed while Spark worked."""


def describe_interrupted(app: App) -> str:
    """The state of an app after the Stop button, in words that agree with `%siddhi list`."""
    if app.state == "stopped":
        again = "starts again with its next event or query"
        return f"committed results stay. {app.name} is stopped, and {again}"
    return f"committed results stay. {app.name} is {app.state}"


def _check_text(text: str, lines_before: int = 0, **compile_options: Any) -> Any:
    """Checks an app's text. Raises `SiddhiError` if something is wrong."""
    check = api.check(text, lines_before=lines_before, **compile_options)
    if check.error is not None and not check.ok:
        raise check.error
    return check


def _failover_of(app: App, o: Namespace) -> Displayed:
    figures = {name: values for name in STUDIED if (values := getattr(o, name)) is not None}
    if figures and o.seeds is None:
        raise Misuse(f"%siddhi failover: --{next(iter(figures))} is for a study: add --seeds 1000")
    return app.failover() if o.seeds is None else app.failover_study(o.seeds, **figures)
