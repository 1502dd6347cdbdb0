"""The apps of a manager: checked, split into execution groups, deployed under their names, replaced and removed.

Apps arrive over HTTP (`manager_http.py`), or as files in a directory (`manager_watch.py`). A `Deployer` runs them.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ... import argument_checks
from ...engine.scripts import refuse_scripts
from ...errors import Misuse, SiddhiBindError, SiddhiError, SparkStreamError, nearest
from ...lang.tree import find_annotation
from ...messaging import Messaging
from ...plan import compile_app
from ...plan.connectors.outside import outside_annotations
from ...plan.distributed.distribute import Split, distribute
from ...plan.distributed.partial_apps import without_sources
from ...plan.gaps import refuse
from ...plan.nodes import Plan
from ...plan.query_parts import connector_type
from ...system import memory_of_process
from ..config.conf import DISTRIBUTED
from ..deploying import apps, close_app, get
from ..results.answers import Stats
from ..results.overview import AppOverview, Overview
from ..results.prometheus_text import prometheus_text
from ..running.app import App
from ..running.overviews import app_overview

MOST_BYTES = 1_000_000
"""The most bytes of an app's text, as UTF-8."""
MOST_STATEMENTS = 2_000
"""Definitions, queries and partitions of an app: to compile these takes some two seconds."""
STATISTICS = "statistics"
"""A word for all apps in the place of a name; so no app is called by it."""
_SECRET = re.compile(r"\$\{(sec|env):")
_ONE_NODE = {"shardId": "node-1"}
"""A deployment gives every node its shard id; an app is checked as if it ran on one of them."""
_STATEMENT_END = re.compile(
    r"""
    \"{3}.*?(?:\"{3}|\Z) | '[^'\n]*'? | "[^"\n]*"? | --[^\n]* | /\*.*?(?:\*/|\Z)  # texts and comments
    | (;)""",
    re.DOTALL | re.VERBOSE,
)
_IN_PATHS = re.compile(r"[/\\\x00-\x1f\x7f]|^\.{1,2}$")


class NoSuchApp(Misuse):
    """No app of the manager has this name."""


class NameTaken(Misuse):
    """The name belongs to an app which this request may not replace or remove."""


class ManagerClosed(SparkStreamError):
    """The manager is ending, and takes no more apps."""


@dataclass(frozen=True)
class HostedApp:
    """A deployed app, as a `Deployer` reports it.

    `state`: "running", "stopped" or "failed". `placement`: the node (several, with commas) of each app that it was
    split into, by its name; empty if it is not known.
    """

    state: str
    placement: Mapping[str, str] = field(default_factory=dict)


class Deployer(Protocol):
    """Runs apps under their names."""

    def deploy(self, text: str, name: str) -> None:
        """Runs an app, in place of one of this name. Raises SparkStreamError if it cannot."""
        ...

    def names(self) -> Sequence[str]:
        """The names in use, by any deployer."""
        ...

    def get(self, name: str) -> HostedApp:
        """The app of this name. Raises `Misuse` if there is none."""
        ...

    def stats(self, name: str) -> Stats:
        """The figures of the app of this name. Raises `Misuse` if there is none."""
        ...

    def overview(self, name: str) -> AppOverview:
        """The app of this name at a glance. Raises `Misuse` if there is none."""
        ...

    def remove(self, name: str) -> None:
        """Stop an app and release its name. Raises `Misuse` if there is none."""
        ...


class ClusterDeployer:
    """Apps of this process. `start` deploys a text under a name, as `sparkstream_nb.app.deploy` does."""

    def __init__(self, start: Callable[[str, str], App]) -> None:
        self._start = start

    def deploy(self, text: str, name: str) -> None:
        self._start(text, name)

    def names(self) -> Sequence[str]:
        return [name for name, app in apps().items() if not app.closed]

    def get(self, name: str) -> HostedApp:
        app = get(name)
        return HostedApp(app.state, {a: ", ".join(nodes) for a, nodes in app.placement.items() if nodes})

    def stats(self, name: str) -> Stats:
        return get(name).stats()

    def overview(self, name: str) -> AppOverview:
        return app_overview(get(name))

    def remove(self, name: str) -> None:
        close_app(name)


@dataclass(frozen=True)
class CheckedApp:
    """The text of a right app, its name, and its split into execution groups."""

    name: str
    text: str
    split: Split


@dataclass(frozen=True)
class ManagedApp:
    """An app of a manager. `file`: the file of the watched directory that it is from; None if it came over HTTP."""

    app: CheckedApp
    hosted_app: HostedApp
    file: str | None = None

    @property
    def active(self) -> bool:
        """True if it runs."""
        return self.hosted_app.state == "running"


@dataclass(frozen=True)
class _ManagedApp:
    app: CheckedApp
    file: str | None


def checked_app(
    text: str,
    name: str | None = None,
    properties: Mapping[str, str] | None = None,
    messaging: Messaging = Messaging.KAFKA,
) -> CheckedApp:
    """The app of a text, called as it says itself, else `name`. `properties`, `messaging`: from the deployment files.

    Raises SiddhiError, with line and caret, if it is wrong, needs a declared gap, a script, a secret or a database by
    its address, or if WSO2's manager refuses its `@dist`; and `Misuse` if it has too many statements, or if its name is
    missing or cannot be part of a path.
    """
    _refuse_too_many(text)
    plan = compile_app(text, {**(properties or {}), **_ONE_NODE})
    app_name = plan.name or name
    if app_name is None:
        raise Misuse("the app has no name: begin it with @app:name('NAME')")
    argument_checks.check_name("the app's name", app_name)
    if _IN_PATHS.search(app_name) or app_name == STATISTICS:
        raise Misuse(f"an app cannot be called '{app_name}': give it a name of letters, digits, - and _")
    try:
        refuse(without_sources(plan))
        refuse_scripts(plan, allowed=False)
        _refuse_databases(plan)
        _refuse_sinks(plan)
        return CheckedApp(app_name, text, distribute(plan, app_name, messaging))
    except SiddhiError as error:
        raise error.with_source(text) from None


def _refuse_too_many(text: str) -> None:
    """Checked before the text is parsed: while a manager compiles a client's text, it answers no request."""
    count = sum(m[1] is not None for m in _STATEMENT_END.finditer(text))
    if count > MOST_STATEMENTS:
        raise Misuse(
            f"an app of a manager has at most {MOST_STATEMENTS:,} definitions and queries, and this one some "
            f"{count:,}: divide it into several apps"
        )


def _refuse_databases(plan: Plan) -> None:
    """Who may send apps is not who owns the passwords, files and servers of this machine: only deployment files may
    name those."""
    annotations = [d.annotations for d in plan.tables.values()] + [d.annotations for d in plan.aggregations.values()]
    for store in filter(None, (find_annotation(element_annotations, "store") for element_annotations in annotations)):
        secret = any(_SECRET.search(e.value) for e in store.elements)
        if secret or store.get("jdbc.url") is not None:
            what = "secrets of its machine" if secret else "a database by its address"
            raise SiddhiBindError(
                f"an app that comes to a manager cannot name {what}",
                store.span,
                hint="Define the database as a data source of the deployment file, and write datasource='NAME'.",
            )


def _refuse_sinks(plan: Plan) -> None:
    """Who may send apps may not let them write to this machine's files, or to the servers that it reaches."""
    for stream, sink in outside_annotations(plan):
        type_ = connector_type(sink, plan.properties)
        raise SiddhiBindError(
            f"an app that comes to a manager cannot publish outside, as the sink of type '{type_}' of stream "
            f"'{stream.source.id}' does",
            sink.span,
            hint="Deploy it by hand with --allow, or leave the sink out.",
        )


class Manager:
    """The apps that one manager has. May be used from several threads: apps are deployed and removed one at a time."""

    def __init__(
        self,
        deployer: Deployer,
        properties: Mapping[str, str] | None = None,
        messaging: Messaging = Messaging.KAFKA,
    ) -> None:
        """`properties`: from the deployment files, for `ref` in apps; `messaging`: the layer between their parts."""
        self._deployer, self._properties, self._messaging = deployer, dict(properties or {}), messaging
        self._entries: dict[str, _ManagedApp] = {}
        self._lock = threading.Lock()
        self._closed = False

    def check(self, text: str, name: str | None = None) -> CheckedApp:
        """The app of a text, as in `checked_app`."""
        return checked_app(text, name, self._properties, self._messaging)

    def add(self, app: CheckedApp) -> ManagedApp:
        """Deploy an app under a name that is not in use. Raises `NameTaken`, and the deployer's errors."""
        with self._lock:
            self._check_open()
            if app.name in self._entries or app.name in self._deployer.names():
                raise NameTaken(f"there is an app '{app.name}' already: PUT replaces it, DELETE removes it")
            return self._deploy(app, None)

    def put(self, app: CheckedApp, file: str | None = None) -> tuple[ManagedApp, bool]:
        """Deploys an app in place of one of its name that came the same way, if there is one; and whether it is new.

        Raises `NameTaken` if the name belongs to an app which came another way (`file`: see `ManagedApp`), and what
        the deployer raises.
        """
        with self._lock:
            self._check_open()
            previous_entry = self._entries.get(app.name)
            if previous_entry is None and app.name in self._deployer.names():
                raise NameTaken(f"an app '{app.name}' that is not this manager's runs already: stop it first")
            if previous_entry is not None:
                _check_way(previous_entry, file)
            return self._deploy(app, file), previous_entry is None

    def remove(self, name: str, file: str | None = None) -> None:
        """Stops an app and forgets it. Raises `NoSuchApp`, and `NameTaken` if it came another way than `file`."""
        with self._lock:
            self._check_open()
            entry = self._entry(name)
            _check_way(entry, file)
            self._stop(name)

    def get(self, name: str) -> ManagedApp:
        """An app by its name. Raises `NoSuchApp`."""
        return self._describe_entry(self._entry(name))

    def all(self) -> list[ManagedApp]:
        """All apps, by name."""
        return [self._describe_entry(entry) for _, entry in sorted(dict(self._entries).items())]

    def metrics(self) -> str:
        """The figures of all apps, as Prometheus reads them. Apps that are removed meanwhile are left out."""
        app_stats = []
        for name in sorted(self._entries):
            with contextlib.suppress(Misuse):
                app_stats.append(self._deployer.stats(name))
        return prometheus_text(app_stats)

    def overview(self) -> Overview:
        """All apps at a glance; one that was stopped by hand has no figures."""
        app_overviews = []
        for name in sorted(self._entries):
            try:
                app_overviews.append(self._deployer.overview(name))
            except Misuse:
                app_overviews.append(AppOverview(name, "stopped", DISTRIBUTED))
        return Overview(tuple(app_overviews), memory_of_process())

    def close(self) -> None:
        """Stops all apps, after the one that is being deployed. Later requests are refused with `ManagerClosed`."""
        with self._lock:
            self._closed = True
            for name in list(self._entries):
                with contextlib.suppress(SparkStreamError):  # the others are to be stopped too
                    self._stop(name)

    def _deploy(self, app: CheckedApp, file: str | None) -> ManagedApp:
        try:
            self._deployer.deploy(app.text, app.name)
        except BaseException:
            if app.name not in self._deployer.names():
                self._entries.pop(app.name, None)  # its former version was stopped for this one
            raise
        entry = self._entries[app.name] = _ManagedApp(app, file)
        return self._describe_entry(entry)

    def _stop(self, name: str) -> None:
        del self._entries[name]
        if name in self._deployer.names():
            self._deployer.remove(name)

    def _entry(self, name: str) -> _ManagedApp:
        entries = dict(self._entries)
        if name not in entries:
            raise NoSuchApp(nearest(f"no app is called '{name}'", name, entries))
        return entries[name]

    def _describe_entry(self, entry: _ManagedApp) -> ManagedApp:
        try:
            hosted_app = self._deployer.get(entry.app.name)
        except Misuse:  # it was stopped by hand, or is being replaced at this moment
            hosted_app = HostedApp("stopped")
        return ManagedApp(entry.app, hosted_app, entry.file)

    def _check_open(self) -> None:
        if self._closed:
            raise ManagerClosed("this manager is ending, and takes no more apps")


def _check_way(entry: _ManagedApp, file: str | None) -> None:
    """Raise `NameTaken` unless the app came the same way: this keeps a file and its app together."""
    if entry.file == file:
        return
    if entry.file is None:
        raise NameTaken(f"there is an app '{entry.app.name}' already, which came over HTTP: DELETE it there first")
    what = "change or remove that file" if file is None else "give one of the two files another @app:name"
    raise NameTaken(f"app '{entry.app.name}' comes from the file {entry.file} of the watched directory: {what}")
