"""A fully distributed app as apps of their own, which exchange events by the topics of a Kafka broker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ... import argument_checks
from ...argument_types import explain_arguments
from ...errors import Misuse, SiddhiError, shown
from ...lang.parser import parse
from ...lang.tree import find_annotation
from ...plan import compile_app
from ...plan.distributed.distribute import Topic, distribute
from ...plan.distributed.partial_texts import PartialText, partial_texts
from ...sinks.kafka_sink_place import TOPIC
from ..config.grants import Grants, server_of
from ..connectors.kafka_settings import servers_of
from ..deploying import close_app, deploy
from ..results.frontend import Displayed
from ..running.app import App

_CHANNELS = "transportChannelCreationEnabled"
"""The note for `@app:transportChannelCreationEnabled('false')`: topics are not made (`SiddhiTopologyCreatorImpl`)."""
_ONE_NODE = {"shardId": "node-1"}


@dataclass(frozen=True, repr=False)
class SplitApp(Displayed):
    """The partial apps of the app `name`, and the topics between them at `brokers` (HOST:PORT, with commas).

    `notes` are differences from WSO2's manager. `makes_topics`: whether `deploy` makes those that do not exist.
    """

    name: str
    brokers: str
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

        Raises NotAllowed if `allow` does not have the brokers, `Misuse` for a topic with too few partitions, and
        SparkStreamError if Kafka does not make one.
        """
        servers = servers_of(self.brokers, Grants.of(allow), f"app '{self.name}'", "makes topics at")
        from ...connections.kafka_topics import make_topics  # kafka-python is optional; servers_of has found it

        return make_topics(servers, {t.name: t.partitions for t in self.topics})

    def deploy(
        self, *, allow: Sequence[str] = (), home: str | Path | None = None, **arguments: Any
    ) -> dict[str, App]:  # fmt: skip
        """Makes the topics, unless the app says otherwise, and deploys each app on a node of its own, whose shard id is
        the app's name. `home` is the folder of their folders; `arguments` are arguments of `deploy`, the same for all.
        Returns the apps by name. If one is refused, those before it are stopped.
        """
        if self.topics:
            servers_of(self.brokers, Grants.of(allow), f"app '{self.name}'", "exchanges events at")
            if self.makes_topics:
                self.make_topics(allow)
        out: dict[str, App] = {}
        try:
            for app in self.apps:
                app_home = None if home is None else Path(home) / quote(app.name, safe=" ")
                out[app.name] = deploy(
                    app.text, name=app.name, shard_ids=[app.name], allow=allow, home=app_home, **arguments
                )  # fmt: skip
        except BaseException:
            for name in out:
                close_app(name)
            raise
        return out

    def summary(self) -> str:
        return str(self)

    def __str__(self) -> str:
        lines = [f"{self.name}: {_many(len(self.apps), 'partial app')}, {_many(len(self.topics), 'topic')}"]
        for app in self.apps:
            reads, writes = (f"{what} {', '.join(t)}" for what, t in (("reads", app.reads), ("writes", app.writes)))
            sides = [s for s, topics in ((reads, app.reads), (writes, app.writes)) if topics]
            lines.append(f"  {app.name}" + (f": {'; '.join(sides)}" if sides else ""))
        lines += [f"  topic {t.name}, {_many(t.partitions, 'partition')}" for t in self.topics]
        return "\n".join([*lines, *(f"  ! {note}" for note in self.notes)])


@explain_arguments
def split(
    text: str, *, kafka: str, name: str | None = None, variables: Mapping[str, str] | None = None
) -> SplitApp:  # fmt: skip
    """The partial apps of an app, as its `@dist(execGroup, parallel)` say, with Kafka between them. Nothing starts.

    - `kafka`: the brokers, "HOST:PORT", several with commas.
    - `name`: the app's name, by default the one in `@app:name`, else SiddhiApp; the names of its parts and topics begin
      with it.
    - `variables`: values of `${NAME}` in the text, which are written into the texts of the partial apps.

    Raises SiddhiError for a wrong app and for one that WSO2's manager refuses, `Misuse` for streams that topics cannot
    carry.
    """
    argument_checks.require_str("text", text)
    argument_checks.require_str("kafka", kafka)
    argument_checks.check_name("name", name)
    argument_checks.optional_str_map("variables", variables)
    brokers = [s.strip() for s in kafka.split(",") if s.strip()]
    if not brokers:
        raise Misuse(f"kafka is HOST:PORT, such as localhost:9092, not {shown(kafka)}")
    for broker in brokers:
        server_of(broker, "kafka")
    values = dict(variables or {})
    try:
        plan = compile_app(text, _ONE_NODE, values)
        tree = parse(text, values)
        app_split = distribute(plan, name)
        apps = partial_texts(tree, plan, app_split, ",".join(brokers))
    except SiddhiError as error:
        raise error.with_source(text) from None
    for topic in app_split.topics:
        if not TOPIC.fullmatch(topic.name):
            raise Misuse(
                f"Kafka has no topic '{topic.name}', as names have up to 249 letters, digits, '.', '_' and '-': "
                "give the app or its stream another name"
            )
    channels = find_annotation(tree.annotations, _CHANNELS)
    makes = channels is None or (channels.get(None) or "").strip().lower() != "false"
    return SplitApp(app_split.app, ",".join(brokers), apps, app_split.topics, app_split.notes, makes)


def _many(count: int, thing: str) -> str:
    return f"{count:,} {thing}{'' if count == 1 else 's'}"
