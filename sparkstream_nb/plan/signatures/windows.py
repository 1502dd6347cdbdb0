"""Windows. The arguments are constants, or attributes of the event where no `!` stands."""

from __future__ import annotations

from collections.abc import Mapping

from .core import Signature, signatures
from .rules import (
    all_of,
    attributes_from,
    cron_window,
    lossy_frequent,
    not_negative,
    session_window,
    sort_window,
    timestamp_windows,
)

TABLE: Mapping[str, Signature] = signatures(
    """
    length(window.length int!)
    lengthBatch(window.length int!)
    lengthBatch(window.length int!, stream.current.event bool!)
    time(window.time dur!)
    timeBatch(window.time dur!)
    timeBatch(window.time dur!, start.time dur!)
    timeBatch(window.time dur!, stream.current.event bool!)
    timeBatch(window.time dur!, start.time dur!, stream.current.event bool!)
    timeLength(window.time dur!, window.length int!)
    externalTime(timestamp long, window.time dur!)
    externalTimeBatch(timestamp long, window.time dur!)
    externalTimeBatch(timestamp long, window.time dur!, start.time dur)
    externalTimeBatch(timestamp long, window.time dur!, start.time dur, timeout dur!)
    externalTimeBatch(timestamp long, window.time dur!, start.time dur, timeout dur!, replace.with.batchtime bool!)
    session(session.gap dur!)
    session(session.gap dur!, session.key string)
    session(session.gap dur!, session.key string, allowed.latency dur!)
    batch()
    batch(window.length int!)
    delay(window.delay dur!)
    cron(cron.expression string!)
    sort(window.length int!, attribute num|string, ...)
    expression(expression string)
    expressionBatch(expression string|bool)
    expressionBatch(expression string|bool, include.triggering.event bool)
    expressionBatch(expression string|bool, include.triggering.event bool, stream.current.event bool!)
    frequent(event.count int!)
    frequent(event.count int!, attribute string)
    lossyFrequent(support.threshold double!)
    lossyFrequent(support.threshold double!, error.bound double!)
    lossyFrequent(support.threshold double!, error.bound double!, attribute string)
    """,
    checks={
        "length": not_negative("the length of a 'length' window", 0),
        "lengthBatch": not_negative("the length of a 'lengthBatch' window", 0),
        "time": not_negative("the time of a 'time' window", 0),
        "timeBatch": not_negative("a time of a 'timeBatch' window", 0, 1),
        "timeLength": not_negative("time and length of a 'timeLength' window", 0, 1),
        "externalTime": timestamp_windows("externalTime", 1),
        "externalTimeBatch": timestamp_windows("externalTimeBatch", 1, 3),
        "session": session_window,
        "batch": not_negative("the length of a 'batch' window", 0),
        "delay": not_negative("the time of a 'delay' window", 0),
        "cron": cron_window,
        "sort": sort_window,
        "frequent": all_of(not_negative("the count of a 'frequent' window", 0), attributes_from("frequent", 1)),
        "lossyFrequent": lossy_frequent,
    },
)

# Windows that collect and then send at once, so that a chunk holds a whole batch (`BatchingWindowProcessor`).
BATCHING = frozenset({"lengthBatch", "timeBatch", "externalTimeBatch", "batch", "cron", "expressionBatch"})
