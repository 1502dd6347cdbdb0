"""A fully distributed app as apps of their own, which exchange events by topics of Kafka or subjects of NATS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ... import argument_checks
from ...argument_types import explain_arguments
from ...charts.value_texts import format_count
from ...errors import Misuse, SiddhiError, SparkStreamError, shown
from ...lang.parser import parse
from ...lang.tree import find_annotation
from ...messaging import Messaging
from ...plan import compile_app
from ...plan.distributed.distribute import Split, Topic, distribute
from ...plan.distributed.partial_texts import PartialText, partial_texts
from ...plan.distributed.topic_connectors import subjects_of
from ...sinks.kafka_sink_place import TOPIC
from ...sinks.nats_sink import SUBJECT
from ..config.grants import Grants, server_of
from ..connectors.kafka_settings import servers_of
from ..deploying import close_app, deploy
from ..results.frontend import Displayed
from ..running.app import App

_CHANNELS = "transportChannelCreationEnabled"
"""The note for `@app:transportChannelCreationEnabled('false')`: topics are not made (`SiddhiTopologyCreatorImpl`)."""
_ONE_NODE = {"shardId": "node-1"}
_SUBSCRIBE_SECONDS = 30.0
_URL = "nats://"


@dataclass(frozen=True, repr=False)
class SplitApp(Displayed):
    """The partial apps of the app `name`, and the topics between them in `messaging` at `servers` (HOST:PORT, with
    commas).

    `notes` are differences from WSO2's manager. `makes_topics`: whether `deploy` makes those that do not exist; NATS
    has subjects, which are not made.
    """

    name: str
    messaging: Messaging
    servers: str
    apps: tuple[PartialText, ...]
    topics: tuple[Topic, ...]
    notes: tuple[str, ...]
    makes_topics: bool

    def write(self, folder: str | Path) -> list[Path]:
        """Writes the text of each app into a file `<name>.siddhi` of the folder, which is made, and returns the files.
        Raises `Misuse` if that cannot be."""
        argument_checks.check_path("folder", folder)
        out = []
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
            for app in self.apps:
                path = Path(folder) / f"{quote(app.name, safe=' ')}.siddhi"
                path.write_text(app.text, encoding="utf-8")
                out.append(path)
        except OSError as error:
            raise Misuse(f"{folder} cannot be written: {error.strerror or error}") from None
        return out

    def make_topics(self, allow: Sequence[str] = ()) -> list[str]:
        """Makes the topics that do not exist, with the partitions that the apps need, and returns their names.

        Raises NotAllowed if `allow` does not have the brokers, `Misuse` for a topic with too few partitions and for
        NATS, and SparkStreamError if Kafka does not make one.
        """
        if self.messaging is Messaging.NATS:
            raise Misuse("NATS has no topics to make: a subject exists when it is written to")
        servers = servers_of(self.servers, Grants.of(allow), f"app '{self.name}'", "makes topics at")
        from ...connections.kafka_topics import make_topics  # kafka-python is optional; servers_of has found it

        return make_topics(servers, {t.name: t.partitions for t in self.topics})

    def deploy(
        self, *, allow: Sequence[str] = (), home: str | Path | None = None, **arguments: Any
    ) -> dict[str, App]:  # fmt: skip
        """Makes the topics, unless the app says otherwise, and deploys each app on a node of its own, whose shard id is
        the app's name. `home` is the folder of their folders; `arguments` are arguments of `deploy`, the same for all.
        Returns the apps by name. If one is refused, those before it are stopped.

        NATS keeps nothing for absent subscribers: its apps are deployed from the last to the first, each when those
        before it have subscribed. Raises SparkStreamError if one cannot within 30 s.
        """
        what = f"app '{self.name}'"
        if self.topics and self.messaging is Messaging.KAFKA:
            servers_of(self.servers, Grants.of(allow), what, "exchanges events at")
            if self.makes_topics:
                self.make_topics(allow)
        elif self.topics:
            for server in self.servers.split(","):
                Grants.of(allow).check_server("nats", server, f"{what} exchanges events at")
        out: dict[str, App] = {}
        is_nats = self.messaging is Messaging.NATS
        try:
            for app in reversed(self.apps) if is_nats else self.apps:
                app_home = None if home is None else Path(home) / quote(app.name, safe=" ")
                out[app.name] = deploy(
                    app.text, name=app.name, shard_ids=[app.name], allow=allow, home=app_home, **arguments
                )  # fmt: skip
                if is_nats:
                    self._require_subscribed(out[app.name])
        except BaseException:
            for name in out:
                close_app(name)
            raise
        return {app.name: out[app.name] for app in self.apps}

    def _require_subscribed(self, app: App) -> None:
        """Wait until the sources of an app have subscribed. Raises SparkStreamError if one cannot."""
        if not app.catch_up(_SUBSCRIBE_SECONDS):
            errors = [s.last_error for s in app.stats().sources if s.last_error]
            reason = errors[0] if errors else f"{self.servers} did not answer within {_SUBSCRIBE_SECONDS:g} s"
            raise SparkStreamError(f"app '{app.name}' has not subscribed: {reason}")

    def summary(self) -> str:
        return str(self)

    def __str__(self) -> str:
        apps, topics = format_count(len(self.apps), "partial app"), format_count(len(self.topics), "topic")
        lines = [f"{self.name}: {apps}, {topics}"]
        for app in self.apps:
            reads, writes = (f"{what} {', '.join(t)}" for what, t in (("reads", app.reads), ("writes", app.writes)))
            sides = [s for s, topics in ((reads, app.reads), (writes, app.writes)) if topics]
            lines.append(f"  {app.name}" + (f": {'; '.join(sides)}" if sides else ""))
        lines += [f"  topic {t.name}, {format_count(t.partitions, 'partition')}" for t in self.topics]
        return "\n".join([*lines, *(f"  ! {note}" for note in self.notes)])


@explain_arguments
def split(
    text: str,
    *,
    kafka: str | None = None,
    nats: str | None = None,
    name: str | None = None,
    variables: Mapping[str, str] | None = None,
) -> SplitApp:
    """The partial apps of an app, as its `@dist(execGroup, parallel)` say, with Kafka or NATS between them. Nothing
    starts.

    - `kafka`: the brokers, "HOST:PORT", several with commas; or
    - `nats`: the servers of NATS, the same way.
    - `name`: the app's name, by default the one in `@app:name`, else SiddhiApp; the names of its parts and topics begin
      with it.
    - `variables`: values of `${NAME}` in the text, which are written into the texts of the partial apps.

    Raises SiddhiError for a wrong app and for one that WSO2's manager refuses, `Misuse` for streams that topics cannot
    carry.
    """
    argument_checks.require_str("text", text)
    argument_checks.check_name("name", name)
    argument_checks.optional_str_map("variables", variables)
    messaging, servers = _read_messaging(kafka, nats)
    values = dict(variables or {})
    try:
        plan = compile_app(text, _ONE_NODE, values)
        tree = parse(text, values)
        app_split = distribute(plan, name, messaging)
        apps = partial_texts(tree, plan, app_split, servers)
    except SiddhiError as error:
        raise error.with_source(text) from None
    _check_names(app_split)
    channels = find_annotation(tree.annotations, _CHANNELS)
    makes = channels is None or (channels.get(None) or "").strip().lower() != "false"
    makes = makes and messaging is Messaging.KAFKA
    return SplitApp(app_split.app, messaging, servers, apps, app_split.topics, app_split.notes, makes)


def _read_messaging(kafka: str | None, nats: str | None) -> tuple[Messaging, str]:
    """The messaging layer, and its servers, HOST:PORT with commas. Raises `Misuse` unless exactly one is given."""
    if (kafka is None) == (nats is None):
        raise Misuse("the parts exchange events by Kafka or NATS: give one of kafka='HOST:PORT' and nats='HOST:PORT'")
    messaging, addresses = (Messaging.KAFKA, kafka) if kafka is not None else (Messaging.NATS, nats)
    argument_checks.require_str(messaging.value, addresses)
    assert addresses is not None
    servers = [s.strip() for s in addresses.split(",") if s.strip()]
    if messaging is Messaging.NATS:
        servers = [s.removeprefix(_URL) for s in servers]
    if not servers:
        example = "localhost:9092" if messaging is Messaging.KAFKA else "localhost:4222"
        raise Misuse(f"{messaging.value} is HOST:PORT, such as {example}, not {shown(addresses)}")
    for server in servers:
        server_of(server, messaging.value)
    return messaging, ",".join(servers)


def _check_names(app_split: Split) -> None:
    """Raises `Misuse` for topics whose names the messaging layer does not have, or that share one."""
    if app_split.messaging is Messaging.KAFKA:
        for topic in app_split.topics:
            if not TOPIC.fullmatch(topic.name):
                raise Misuse(
                    f"Kafka has no topic '{topic.name}', as names have up to 249 letters, digits, '.', '_' and '-': "
                    "give the app or its stream another name"
                )
        return
    subjects = [(subject, t.stream) for t in app_split.topics for subject in subjects_of(t)]
    stream_by_subject: dict[str, str] = {}
    for subject, stream in subjects:
        if not SUBJECT.fullmatch(subject):
            raise Misuse(
                f"NATS has no subject '{subject}', as names have no blanks, no '*' and '>', and something on both "
                "sides of a '.': give the app or its stream another name"
            )
        other = stream_by_subject.setdefault(subject, stream)
        if other != stream:
            raise Misuse(f"streams '{other}' and '{stream}' would share the subject '{subject}': rename one of them")
