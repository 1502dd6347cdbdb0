"""Routes events whose evaluation failed, as `@OnError` of their stream says.

Siddhi's `StreamJunction.handleError` drops the rest of the event's chunk and hides the event from the stream's later
readers. Here only the event itself is dropped, and only in the query that failed on it. Once per such query it goes to
the fault stream (`STREAM`), to the log (`LOG`), or else to the errors of the step (`STORE`, or no annotation).
"""

from __future__ import annotations

from ...plan.query_parts import may_fail as may_fail


class ErrorObject(str):
    """The value of `_error` in a fault stream: the message of the error. `exception` is Siddhi's class for it."""

    __slots__ = ()
    exception = "SiddhiAppRuntimeException"


class Undelivered(ErrorObject):
    """The error of an event that a sink published to a topic without a source."""

    __slots__ = ()
    exception = "ConnectionUnavailableException"


def fault_stream(stream: str) -> str:
    """The id of a stream's fault stream."""
    return f"!{stream}"
