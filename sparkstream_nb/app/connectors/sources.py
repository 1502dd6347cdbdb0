"""The sources of a deployment: what an app's annotations, grants and secrets make of them."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ...connections.calls import Desks
from ...errors import Misuse, SiddhiBindError, SparkStreamError, shown
from ...journal.private import private_folder, write_private
from ...mapping.decoding import Decoder, decoder
from ...plan.connectors.incoming import RESPONSES, IncomingSource, incoming_sources
from ...plan.connectors.kafka import CONFIGURATION, CONSUMER
from ...plan.connectors.mapping import JsonSource, PassThrough, SourceMapping
from ...plan.connectors.outside import SINK_ID
from ...plan.connectors.source_options import SOURCES
from ...plan.nodes import Plan
from ...sources.files import FilesPlace, FilesReader
from ...sources.http import HttpListener, HttpReader
from ...sources.intake import IntakeSetup
from ...sources.nats import NatsReader
from ...sources.reader import SourceReader
from ...sources.responses import ResponseReader
from ...sources.tcp import TcpPlace, TcpReader
from ...stores.address import Secret, from_jdbc
from ...system import path_of, put_in_place, to_disk
from ...types import Schema
from ..config.conf import NodeFile
from ..config.grants import Grants
from ..config.http_logins import logins_of
from ..config.secrets import References, check_password
from .kafka_settings import servers_of, settings_of
from .nats_places import NatsGate

if TYPE_CHECKING:
    from ...sources.cdc import CdcReader
    from ...sources.kafka import KafkaSourcePlace

TCP_PORT = 9892
"""The port of siddhi-io-tcp's server, which is a setting of the server for WSO2."""
_TOKEN = 24
"""Bytes of chance in a token."""
_TRUTH = {"true": True, "false": False}
_ACTIONS = ("keep", "delete", "move")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
"""Names of topics, by Kafka's `Topic.LEGAL_CHARS`."""


@dataclass(frozen=True)
class MessageReader:
    """The decoder of a source's messages; `time` is the position of the attribute with their time, or None."""

    decoder: Decoder
    time: int | None


class SourcePlans:
    """The sources that an app was deployed with, and what they may reach: readers are made of it, as often as an app is
    opened. Raises SiddhiBindError, at the annotation, for a source that is wrong or not allowed."""

    def __init__(
        self,
        plan: Plan,
        grants: Grants,
        references: References,
        home: Path,
        files: Sequence[NodeFile] = (),
        desks: Desks | None = None,
    ) -> None:
        """`files`: the deployment files, which may have users; `desks`: where responses to calls are taken."""
        self._plan, self._grants, self._references, self._home = plan, grants, references, home
        self._files, self._desks = files, desks or Desks()
        self._sources = incoming_sources(plan)
        self.setups(lambda: None)

    def __len__(self) -> int:
        return len(self._sources)

    def setups(self, latest: Callable[[], int | None]) -> list[IntakeSetup]:
        """The sources, each with a reader of its own. `latest()` is the last time (ms) of an event that is taken."""
        return [self._setup(source, latest) for source in self._sources]

    def messages_of(self, name: str) -> MessageReader | None:
        """The decoder of the source of this name; None if there is no such source."""
        for s in self._sources:
            if quote(s.name, safe="") == name:
                schema = self._plan.schema(s.stream)
                rows = isinstance(s.mapping.format, PassThrough) or s.type == "cdc"
                mapping = _rows_as_json(schema, s.mapping) if rows else s.mapping
                return MessageReader(decoder(mapping, schema), _time_of(s, schema))
        return None

    def _setup(self, source: IncomingSource, latest: Callable[[], int | None]) -> IntakeSetup:
        try:
            place, reader = self._reader(source, latest)
        except SiddhiBindError:
            raise
        except SparkStreamError as error:
            wrong = SiddhiBindError(str(error), source.span)
            raise (wrong.with_source(self._plan.text) if self._plan.text else wrong) from None
        schema = self._plan.schema(source.stream)
        return IntakeSetup(
            name=quote(source.name, safe=""),
            stream=source.stream,
            type=source.type,
            shown=place,
            schema=schema,
            reader=reader,
            time=_time_of(source, schema),
            together=source.mapping.together and not _line_by_line(source),
            keeps_errors=source.on_error == "STORE",
        )

    def _reader(self, source: IncomingSource, latest: Callable[[], int | None]) -> tuple[str, SourceReader]:
        """(where a source reads, as it may be shown; its reader)."""
        schema = self._plan.schema(source.stream)
        given = _SourceOptions(source.options, f"the source of stream '{source.stream}'")
        if source.type == "kafka":
            from ...sources.kafka import EventTime, KafkaReader  # kafka-python is loaded where an app needs it

            place = _kafka(given, self._grants, self._references)
            servers = ",".join(place.options["bootstrap_servers"])
            attribute = _time_of(source, schema)
            time = None if attribute is None else EventTime(attribute, latest)
            return f"{', '.join(place.topics)} at {servers}", KafkaReader(place, source.mapping, schema, time)
        if source.type == "file":
            files = _files(given, self._grants)
            decodes = None if files.mode == "parquet" else decoder(source.mapping, schema)
            return str(files.path) + ("/" if files.folder else ""), FilesReader(files, schema, decodes)
        if source.type == "cdc":
            return _make_cdc_reader(given, source.mapping, schema, self._grants, self._references)
        if source.type == "tcp":
            tcp = _tcp(given, self._grants, f"{self._plan.name or 'SiddhiApp'}/{source.stream}")
            return f"tcp://localhost:{tcp.port}/{tcp.channel}", TcpReader(tcp, decoder(source.mapping, schema))
        if source.type == "nats":
            subject = NatsGate(self._grants, self._references, given.what).subject(source.options)
            return f"{subject.subject} at {subject.servers}", NatsReader(subject, decoder(source.mapping, schema))
        if source.type in RESPONSES:
            sink_id, name = given.text(SINK_ID), quote(source.name, safe="")
            reader = ResponseReader(self._desks.of(sink_id), name, decoder(source.mapping, schema))
            return f"responses to {sink_id}", reader
        listener, url = _listener(given, self._grants, _Token(self._home / "sources" / f"{source.name}.token"))
        if given.flag("basic.auth.enabled", False):
            logins = logins_of(source.options, self._files, self._references, given.what)
            listener, url = replace(listener, logins=logins), url.partition(", token in ")[0]
        return url, HttpReader(listener, decoder(source.mapping, schema))


def _rows_as_json(schema: Schema, mapping: SourceMapping) -> SourceMapping:
    """The reader of rejected rows of parquet files and tables: they are kept as JSON."""
    return replace(mapping, format=JsonSource(), places=tuple(f"$['{name}']" for name in schema.names))


def _time_of(source: IncomingSource, schema: Schema) -> int | None:
    return None if source.time is None else schema.find(source.time)


def _line_by_line(source: IncomingSource) -> bool:
    """True if a message is a line of a file: no chunk, but an event."""
    return source.type == "file" and source.options.get("mode", "text.full").lower() in ("line", "parquet")


@dataclass(frozen=True)
class _SourceOptions:
    """The options of `what`, a source in words."""

    given: Mapping[str, str]
    what: str

    def text(self, key: str, default: str = "") -> str:
        value = self.given.get(key, default).strip()
        if "${" in value:
            raise Misuse(f"{self.what}: '{key}' cannot have a reference such as ${{sec:...}} in it: it is shown")
        return value

    def flag(self, key: str, default: bool) -> bool:
        value = self.given.get(key, str(default)).lower()
        if value not in _TRUTH:
            raise Misuse(f"{self.what}: '{key}' is 'true' or 'false', not {shown(value)}")
        return _TRUTH[value]

    def one_of(self, key: str, among: tuple[str, ...], default: str) -> Any:
        value = self.text(key, default).lower()
        if value not in among:
            raise Misuse(f"{self.what}: '{key}' is one of {', '.join(among)}, not {shown(value)}")
        return value

    def whole(self, key: str, default: int, most: int) -> int:
        text = self.text(key, str(default))
        if not text.isdecimal() or not 0 < int(text) <= most:
            raise Misuse(f"{self.what}: '{key}' is a whole number from 1 to {most:,}, not {shown(text)}")
        return int(text)


# -------------------------------------------------------------------------------------------------------------- kafka


def _kafka(o: _SourceOptions, grants: Grants, references: References) -> KafkaSourcePlace:
    servers = servers_of(o.given["bootstrap.servers"], grants, o.what, "reads from Kafka at")
    topics = tuple(dict.fromkeys(t.strip() for t in o.text("topic.list").split(",") if t.strip()))
    for topic in topics:
        if not _NAME.fullmatch(topic):
            raise Misuse(f"{o.what}: {shown(topic)} is not the name of a topic")
    o.one_of("threading.option", ("single.thread", "topic.wise", "partition.wise"), "single.thread")
    o.flag("is.binary.message", False)
    o.flag("enable.async.commit", True)
    from ...sources.kafka import KafkaSourcePlace

    options = settings_of(o.given.get(CONFIGURATION, ""), CONSUMER, references, o.what)
    options["bootstrap_servers"] = list(servers)
    latest = options.pop("auto_offset_reset", "earliest") == "latest"
    return KafkaSourcePlace(
        topics=topics,
        partitions=_partitions(o),
        group=o.text("group.id"),
        starts=_starts(o, topics),
        latest=latest,
        commits=o.flag("enable.offsets.commit", True),
        options=options,
    )


def _partitions(o: _SourceOptions) -> frozenset[int] | None:
    text = o.text("partition.no.list")
    if not text:
        return None
    numbers = [p.strip() for p in text.split(",")]
    if not all(p.isdecimal() for p in numbers):
        raise Misuse(f"{o.what}: 'partition.no.list' is numbers such as '0,1', not {shown(text)}")
    return frozenset(map(int, numbers))


def _starts(o: _SourceOptions, topics: tuple[str, ...]) -> Mapping[tuple[str, int], int]:
    """`topic.offsets.map`, as siddhi-io-kafka has it: `topic=o0,topic2=o1`; partition 0 of each."""
    out = {}
    for part in [p.strip() for p in o.text("topic.offsets.map").split(",") if p.strip()]:
        topic, equals, offset = (x.strip() for x in part.partition("="))
        if not equals or topic not in topics or not offset.isdecimal():
            raise Misuse(f"{o.what}: 'topic.offsets.map' is TOPIC=OFFSET,... of its topics, not {shown(part)}")
        out[topic, 0] = int(offset)
    return out


# -------------------------------------------------------------------------------------------------------------- files


def _files(o: _SourceOptions, grants: Grants) -> FilesPlace:
    folder, file = o.text("dir.uri"), o.text("file.uri")
    if folder and file:
        raise Misuse(f"{o.what}: give 'dir.uri' or 'file.uri', not both")
    mode = o.one_of("mode", SOURCES["file"]["mode"].values, "text.full")
    path = _path(o, folder or file)
    grants.folder_of(path, f"{o.what} reads", file=bool(file))
    tailing = o.flag("tailing", mode == "line")
    if tailing and mode != "line":
        raise Misuse(f"{o.what}: tailing='true' goes with mode='line': a file in mode '{mode}' is read whole")
    # siddhi-io-file deletes by default. Here nothing is deleted that the app does not ask for.
    after = o.one_of("action.after.process", _ACTIONS, "keep")
    if after != "keep" and tailing:
        raise Misuse(f"{o.what}: action.after.process='{after}' needs tailing='false': a file that grows has no end")
    target = o.text("move.after.process")
    if (after == "move") != bool(target):
        raise Misuse(f"{o.what}: action.after.process='move' and 'move.after.process' go together: give both")
    move_to = None
    if target:
        move_to = _path(o, target)
        grants.folder_of(move_to / "x", f"{o.what} moves files to")
        if move_to.resolve() == (path if folder else path.parent).resolve():
            raise Misuse(f"{o.what}: 'move.after.process' is the folder that is read: give another one")
    interval = "dir.polling.interval" if folder else "file.polling.interval"
    return FilesPlace(
        path=path.resolve(),
        folder=bool(folder),
        mode=mode,
        tailing=tailing,
        header=o.flag("header.present", False),
        pattern=_pattern(o),
        after=after,
        move_to=None if move_to is None else move_to.resolve(),
        every=o.whole(interval, 1000, 86_400_000) / 1000,
    )


def _pattern(o: _SourceOptions) -> re.Pattern[str]:
    """`file.name.pattern`, a regular expression for the whole name, as siddhi-io-file has it."""
    text = o.text("file.name.pattern", ".*")
    try:
        return re.compile(text, re.DOTALL)  # a name may have a line break in it
    except re.error:
        raise Misuse(
            f"{o.what}: file.name.pattern is a regular expression such as '.*\\.csv', not {shown(text)}"
        ) from None


def _path(o: _SourceOptions, text: str) -> Path:
    if any(c < " " or c == "\x7f" for c in text):
        raise Misuse(f"{o.what}: a path has a control character in it")
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", text.removeprefix("file://")):
        raise Misuse(f"{o.what}: a file source reads paths of this machine, not {text.split('://')[0]}://...")
    return path_of(text).expanduser().absolute()


# ---------------------------------------------------------------------------------------------------------------- cdc


def _make_cdc_reader(
    o: _SourceOptions, mapping: SourceMapping, schema: Schema, grants: Grants, references: References
) -> tuple[str, CdcReader]:
    from ...sources.cdc import CdcReader  # they load SQLAlchemy
    from ...stores.polling import PolledTable

    url, written = o.text("url"), o.given["password"].strip()
    database = from_jdbc(url)
    if database.is_file:
        raise Misuse(f"{o.what}: {database} is a file, and servers are polled: PostgreSQL, MySQL or MariaDB")
    grants.check_database(database, f"{o.what} reads from")
    if database.user is not None or database.password is not None:
        raise Misuse(f"{o.what}: 'url' has user or password in it: give 'username' and 'password'")
    check_password(written, o.what)
    table, column = o.text("table.name"), o.text("polling.column")
    place, _, name = table.rpartition(".")
    if place and database.kind != "postgresql" and place != database.name:
        raise Misuse(f"{o.what}: '{place}' is another database than {database}: write table.name='{name}'")
    every = o.whole("polling.interval", 1, 86_400)
    # No secret is looked up for a database that is not allowed.
    user = references.resolve(o.given["username"].strip(), o.what)
    database = replace(database, user=user, password=Secret(references.resolve(written, o.what)), pool=1)
    reader = CdcReader(PolledTable(database, table, column), mapping, schema, every)
    return f"{table}.{column} in {database}", reader


# ---------------------------------------------------------------------------------------------------------------- tcp


def _tcp(o: _SourceOptions, grants: Grants, channel: str) -> TcpPlace:
    """The address at which a source listens; `channel`: of a source without a `context`."""
    port = o.whole("port", TCP_PORT, 65_535)
    grants.check_server("tcp", f"localhost:{port}", f"{o.what} listens at")
    return TcpPlace("127.0.0.1", port, o.text("context", channel))


# --------------------------------------------------------------------------------------------------------------- http


@dataclass(frozen=True)
class _Token:
    """The secret of a listener, in a file that only its owner reads; made when it is first asked for."""

    file: Path

    def __call__(self) -> str:
        found = self.file.read_text(encoding="ascii").strip() if self.file.exists() else ""
        if len(found) < _TOKEN:  # none yet, or what a crash left of one
            private_folder(self.file.parent)
            new, found = self.file.with_suffix(".new"), secrets.token_urlsafe(_TOKEN)
            write_private(new, found.encode())
            to_disk(new)
            put_in_place(new, self.file)
        return found


def _listener(o: _SourceOptions, grants: Grants, token: _Token) -> tuple[HttpListener, str]:
    url = grants.check_url(o.text("receiver.url"), f"{o.what} listens at")
    if url.host not in ("localhost", "127.0.0.1") or url.scheme != "http":
        raise Misuse(f"{o.what}: it listens on this machine alone, http://localhost:PORT/PATH, not {url.base}")
    o.whole("worker.count", 1, 1000)
    seconds = o.whole("socket.idle.timeout", 120_000, 86_400_000) / 1000
    path = "/" + "/".join(quote(segment) for segment in url.path)
    return HttpListener("127.0.0.1", url.port, path, seconds, token), f"{url.base}{path}, token in {token.file}"
