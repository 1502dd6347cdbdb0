"""Common parts of the fast readers of many plain messages: the messages that they leave are read one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..engine.columnar.column_data import Array
from ..types import Schema
from .attribute_values import Values, join_columns

FEWEST = 64
"""Messages that are worth a fast reader."""
_SMALLEST = 2048
"""Batches of this size that do not fit a fast reader are read one by one, and not cut in halves."""


@dataclass(frozen=True)
class EventBatch:
    """Events of messages: their columns, and the number of each one's message, ascending.

    It has all events of a message, or none.
    """

    columns: list[Values]
    messages: Array


BatchReader = Callable[[Sequence[bytes]], EventBatch | None]
"""Reads messages; those that are not in the answer are left. None if they do not fit as a whole."""


def read_in_halves(read: BatchReader, messages: Sequence[bytes]) -> list[EventBatch]:
    """Results of `read` for messages. If they do not fit, because of a few among them, it gets halves of them."""
    events = read(messages)
    if events is not None:
        return [events]
    if len(messages) <= _SMALLEST:
        return []
    half = len(messages) // 2
    out = read_in_halves(read, messages[:half])
    for part in read_in_halves(read, messages[half:]):
        out.append(EventBatch(part.columns, part.messages + half))
    return out


def concat_batches(schema: Schema, parts: Sequence[EventBatch]) -> EventBatch:
    """The parts of one batch after each other. Raises ValueError for no parts."""
    if not parts:
        raise ValueError("no parts to concatenate")
    if len(parts) == 1:
        return parts[0]
    columns = [join_columns([p.columns[k] for p in parts]) for k in range(len(schema))]
    return EventBatch(columns, np.concatenate([p.messages for p in parts]))
