"""Destinations that take messages in turn (`strategy='roundRobin'`); those that are away are passed over."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..mapping import Message
from .target import OutputPlace, Target, TargetUnavailable, Undeliverable

LEFT_ALONE = 5.0
"""Seconds in which a destination that was away is not tried, while others are there."""
AT_ONCE = 50
"""Messages of one call, where destinations take several: a position is written down for all of them."""


class Turns(Target):
    """Gives each message to the next destination that takes it. `clock` is in seconds, and monotonic."""

    def __init__(self, targets: Sequence[Target], clock: Callable[[], float] = time.monotonic) -> None:
        self._targets, self._clock = list(targets), clock
        self.at_once = min(AT_ONCE, *(t.at_once for t in targets))
        # Each target has templates of its own, under names that others may have too.
        self.templates: Mapping[str, str] = {
            f"{i} {name}": text for i, t in enumerate(targets) for name, text in t.templates.items()
        }
        self._next = 0
        self._until = [0.0] * len(targets)

    def open(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        self._next = int(state.get("next", 0)) % len(self._targets)
        self._until = [0.0] * len(self._targets)
        for target in self._targets:
            target.open({})
        return self.state()

    def send(self, messages: Sequence[Message], places: Sequence[OutputPlace]) -> int:
        """Raises TargetUnavailable if all destinations are unavailable, and Undeliverable if the next one does not take
        it.

        A message is sent when the one before it was taken: passed over, it would come behind later ones.
        """
        for i, message in enumerate(messages):
            turn = self._next
            try:
                if self._send_in_turn(message, places[i]) == 0:
                    return i
            except (TargetUnavailable, Undeliverable):
                if i == 0:
                    raise
                self._next = turn  # with the next call it has its turn
                return i
        return len(messages)

    def _send_in_turn(self, message: Message, place: OutputPlace) -> int:
        """Number of events sent of one message."""
        count, why = len(self._targets), ""
        order = [(self._next + i) % count for i in range(count)]
        now = self._clock()
        # Those that were away a moment ago come last: all others may be away by now.
        for number in sorted(order, key=lambda n: self._until[n] > now):
            try:
                sent_events = self._targets[number].send([self._own(number, message)], [place])
            except TargetUnavailable as error:
                self._until[number], why = self._clock() + LEFT_ALONE, str(error)
                continue
            finally:
                self._next = (number + 1) % count
            self._until[number] = 0.0
            return sent_events
        raise TargetUnavailable(f"all {count} destinations are away; {why}")

    def _own(self, number: int, message: Message) -> Message:
        """The message with the properties of one target."""
        if not message.properties:
            return message
        names = self._targets[number].templates
        return replace(message, properties={name: message.properties[f"{number} {name}"] for name in names})

    def state(self) -> Mapping[str, Any]:
        return {"next": self._next}

    def close(self) -> None:
        for target in self._targets:
            target.close()

    def cancel(self) -> None:
        for target in self._targets:
            target.cancel()
