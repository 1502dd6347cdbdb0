"""Leaves messages for the `inMemory` sources of a topic of the same app (`connections.message_topics`)."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from ..connections.call_responses import POLL, Response
from ..connections.message_topics import MessageTopics
from ..errors import shown
from ..mapping import Message
from ..plan.query_parts import template_attributes
from .target import OutputPlace, Target, TargetUnavailable, Undeliverable


class MemoryTarget(Target):
    """Sends messages to `topic`, which may name attributes as `{{attribute}}`."""

    at_once = 500

    def __init__(self, topic: str, topics: MessageTopics) -> None:
        self.topic, self._topics = topic, topics
        self.templates: Mapping[str, str] = {"topic": topic} if template_attributes(topic) else {}
        self._cancel_event = threading.Event()

    def open(self, state: Mapping[str, object]) -> Mapping[str, object]:
        self._cancel_event.clear()
        return {}

    def send(self, messages: Sequence[Message], places: Sequence[OutputPlace]) -> int:
        responses: list[Response] = []
        count = 0
        for message in messages:
            topic = message.properties.get("topic", self.topic)
            names = self._topics.sources.get(topic, ())
            if not names:
                if count == 0:
                    raise Undeliverable(f"no source listens to topic {shown(topic)}")
                break  # messages before it are left first
            for name in names:
                responses.append(Response(message.body, {}))
                self._topics.desk.leave(name, responses[-1])
            count += 1
        for response in responses:
            self._wait(response)
        return count

    def close(self) -> None:
        """There is nothing to close."""

    def cancel(self) -> None:
        self._cancel_event.set()

    def _wait(self, response: Response) -> None:
        """Waits until a message is on the disk. Raises TargetUnavailable if it will not be."""
        while not response.on_disk.wait(POLL):
            if self._cancel_event.is_set():
                raise TargetUnavailable("the app stops")
        if response.is_lost:
            raise TargetUnavailable("a source of its topic does not read")
