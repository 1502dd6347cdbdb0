"""Declarations of the windows: their arguments, and the properties that the rest of the package relies on.

`BUILT_IN` is the one place that names the windows, besides the engine's table of their kernels
(`engine.windows.WINDOWS`); `plan.window_declarations` adds windows of other packages.
`tests/engine/test_declarations.py` checks the declarations against the windows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypedDict, Unpack

from .rules import (
    all_of,
    at_least_one,
    attribute_at,
    attributes_from,
    cron_window,
    external_time_batch,
    lossy_frequent,
    not_negative,
    session_window,
    sort_window,
    timestamp_windows,
)
from .signature import Check, Signature, signatures


@dataclass(frozen=True)
class WindowDeclaration:
    """A window's properties for the binder, shard safety and the engine. No field whose omission would be wrong
    silently has a default.
    """

    signature: str
    """A line for each overload (see `signature.py`). The arguments are constants, or, without a `!`, attributes of the
    event."""

    processing_mode: Literal["slide", "batch", "group", "replace"]
    """Siddhi's `ProcessingMode`, more or less. `slide`: events expire one by one, so that `min` and `max` must keep
    values that may become the extreme. `batch`: events are collected and emitted together, as one chunk. `group`:
    groups of events expire together. `replace`: events expire one by one, but Siddhi calls it BATCH, and `min` and
    `max` keep only the best.
    """

    retained_by: Literal["clock", "start", "key", "unique key", "events"]
    """The cause of an event's leaving, for shard safety: the clock alone; the clock once the batches have a
    `start.time`; the events of its `session.key`; the clock and the events of its `unique.key`; or any events that the
    window gets.
    """

    in_partition: Literal["apart", "expired", "shared"]
    """`apart` if the instances of a partition on one node are independent, for shard safety. `expired`: the times of
    their expired events do not, as Siddhi's timers fire in turns; `shared`: their outputs do not.
    """

    reads: Literal["arguments", "expression", "selection"]
    """The attributes that the window reads: those among its arguments; besides those, the ones that its `expression`
    names, which are all where an event brings it; or, without attributes among the arguments, all that the query
    selects."""

    resets_per_chunk: bool
    """True if each chunk, but perhaps the first, begins with a RESET if the query wants the CURRENT events alone, and
    there is no other (unless `stream.current.event` is set)."""

    single_chunk: bool
    """True if all output caused by one event is at most one chunk, and nothing is emitted without an event."""

    carries_group_id: bool
    """True if events may enter with their group id as a further column, which the window hands on unseen."""

    timers_emit: Literal["nothing", "expired", "current"]
    """Output when only the clock moves: `nothing` for windows without timers, `expired` if events only leave,
    `current` if current events are emitted too.
    """

    example: str
    """A call for tests and for compiling ahead: a text for `example_call`."""

    check: Check | None = None
    """Checks of the arguments beyond the signature."""

    def example_call(self, **words: Unpack[ExampleWords]) -> str:
        """The window's call over a stream."""
        return self.example.format(**words)


class ExampleWords(TypedDict):
    """The words of an example call. `count` is a length in events, `few` one in keys, or in events that the
    window looks through; `at`, `key` and `value` are attributes: a timestamp, a text and a number."""

    count: int
    few: int
    time: str
    at: str
    key: str
    value: str


class _UniqueFields(TypedDict, total=False):
    """Fields of `WindowDeclaration` in which the windows of siddhi-execution-unique differ."""

    retained_by: Literal["events", "unique key"]
    in_partition: Literal["apart", "shared"]
    resets_per_chunk: bool
    single_chunk: bool
    carries_group_id: bool
    timers_emit: Literal["nothing", "expired", "current"]


def _unique(
    signature: str, arguments: str, check: Check | None = None, **fields: Unpack[_UniqueFields]
) -> WindowDeclaration:
    """A window of siddhi-execution-unique, called with the key and `arguments`."""
    name = signature.strip().partition("(")[0]
    usual = WindowDeclaration(
        signature,
        processing_mode="batch" if fields.get("resets_per_chunk") else "replace",
        retained_by="events",
        in_partition="shared",
        reads="arguments",
        resets_per_chunk=False,
        single_chunk=False,
        carries_group_id=True,
        timers_emit="nothing",
        example=f"{name}({{key}}{arguments})",
        check=check,
    )
    return replace(usual, **fields)


def _unique_length_batch(name: str) -> WindowDeclaration:
    return _unique(
        f"""
        {name}(unique.key prim, window.length int!)
        """,
        ", {few}",
        not_negative(f"the length of a '{name}' window", 1),
        resets_per_chunk=True,
        carries_group_id=False,
    )


def _unique_time_batch(name: str) -> WindowDeclaration:
    return _unique(
        f"""
        {name}(unique.key prim, window.time dur!)
        {name}(unique.key prim, window.time dur!, start.time dur!)
        """,
        ", {time}",
        all_of(at_least_one(name), not_negative(f"the start time of a '{name}' window", 2)),
        resets_per_chunk=True,
        carries_group_id=False,
        timers_emit="current",
    )


_UNIQUE: Mapping[str, WindowDeclaration] = {
    "unique:ever": _unique(
        """
        unique:ever(unique.key prim, ...)
        """,
        "",
        retained_by="unique key",
        in_partition="apart",
        single_chunk=True,
    ),
    "unique:first": _unique(
        """
        unique:first(unique.key prim, ...)
        """,
        "",
        retained_by="unique key",
        in_partition="apart",
        single_chunk=True,
    ),
    "unique:length": _unique(
        """
        unique:length(unique.key prim, window.length int!)
        """,
        ", {few}",
        not_negative("the length of a 'unique:length' window", 1),
        in_partition="apart",
        single_chunk=True,
    ),
    "unique:time": _unique(
        """
        unique:time(unique.key prim, window.time dur!)
        """,
        ", {time}",
        not_negative("the time of a 'unique:time' window", 1),
        retained_by="unique key",
        timers_emit="expired",
    ),
    "unique:lengthBatch": _unique_length_batch("unique:lengthBatch"),
    "unique:firstLengthBatch": _unique_length_batch("unique:firstLengthBatch"),
    "unique:timeBatch": _unique_time_batch("unique:timeBatch"),
    "unique:firstTimeBatch": _unique_time_batch("unique:firstTimeBatch"),
    "unique:timeLengthBatch": _unique(
        """
        unique:timeLengthBatch(unique.key prim, window.time dur!, window.length int!)
        unique:timeLengthBatch(unique.key prim, window.time dur!, start.time dur!, window.length int!)
        """,
        ", {time}, {few}",
        all_of(
            at_least_one("unique:timeLengthBatch"),
            not_negative("a number of a 'unique:timeLengthBatch' window", 2, 3),
        ),
        resets_per_chunk=True,
        carries_group_id=False,
        timers_emit="current",
    ),
    "unique:externalTimeBatch": _unique(
        """
        unique:externalTimeBatch(unique.key prim, time.stamp long, window.time dur!)
        unique:externalTimeBatch(unique.key prim, time.stamp long, window.time dur!, start.time int!)
        unique:externalTimeBatch(unique.key prim, time.stamp long, window.time dur!, start.time int!, time.out dur!)
        unique:externalTimeBatch(unique.key prim, time.stamp long, window.time dur!, start.time int!, time.out dur!, replace.time.stamp.with.batch.end.time bool!)
        """,  # noqa: E501
        ", {at}, {time}",
        all_of(
            attribute_at("unique:externalTimeBatch", 1),
            not_negative("a time of a 'unique:externalTimeBatch' window", 2, 4),
        ),
        resets_per_chunk=True,
        timers_emit="current",
    ),
}

BUILT_IN: Mapping[str, WindowDeclaration] = {
    "length": WindowDeclaration(
        """
        length(window.length int!)
        """,
        processing_mode="slide",
        retained_by="events",
        in_partition="apart",
        reads="arguments",
        resets_per_chunk=False,
        single_chunk=True,
        carries_group_id=True,
        timers_emit="nothing",
        example="length({count})",
        check=not_negative("the length of a 'length' window", 0),
    ),
    "lengthBatch": WindowDeclaration(
        """
        lengthBatch(window.length int!)
        lengthBatch(window.length int!, stream.current.event bool!)
        """,
        processing_mode="batch",
        retained_by="events",
        in_partition="apart",
        reads="arguments",
        resets_per_chunk=True,
        single_chunk=False,
        carries_group_id=True,
        timers_emit="nothing",
        example="lengthBatch({count})",
        check=not_negative("the length of a 'lengthBatch' window", 0),
    ),
    "time": WindowDeclaration(
        """
        time(window.time dur!)
        """,
        processing_mode="slide",
        retained_by="clock",
        in_partition="expired",
        reads="arguments",
        resets_per_chunk=False,
        single_chunk=False,
        carries_group_id=True,
        timers_emit="expired",
        example="time({time})",
        check=not_negative("the time of a 'time' window", 0),
    ),
    "timeBatch": WindowDeclaration(
        """
        timeBatch(window.time dur!)
        timeBatch(window.time dur!, start.time dur!)
        timeBatch(window.time dur!, stream.current.event bool!)
        timeBatch(window.time dur!, start.time dur!, stream.current.event bool!)
        """,
        processing_mode="batch",
        retained_by="start",
        in_partition="shared",
        reads="arguments",
        resets_per_chunk=True,
        single_chunk=False,
        carries_group_id=True,
        timers_emit="current",
        example="timeBatch({time})",
        check=not_negative("a time of a 'timeBatch' window", 0, 1),
    ),
    "timeLength": WindowDeclaration(
        """
        timeLength(window.time dur!, window.length int!)
        """,
        processing_mode="slide",
        retained_by="events",
        in_partition="expired",
        reads="arguments",
        resets_per_chunk=False,
        single_chunk=False,
        carries_group_id=True,
        timers_emit="expired",
        example="timeLength({time}, {count})",
        check=not_negative("time and length of a 'timeLength' window", 0, 1),
    ),
    "externalTime": WindowDeclaration(
        """
        externalTime(timestamp long, window.time dur!)
        """,
        processing_mode="slide",
        retained_by="events",
        in_partition="apart",
        reads="arguments",
        resets_per_chunk=False,
        single_chunk=True,
        carries_group_id=True,
        timers_emit="nothing",
        example="externalTime({at}, {time})",
        check=timestamp_windows("externalTime", 1),
    ),
    "externalTimeBatch": WindowDeclaration(
        """
        externalTimeBatch(timestamp long, window.time dur!)
        externalTimeBatch(timestamp long, window.time dur!, start.time dur)
        externalTimeBatch(timestamp long, window.time dur!, start.time dur, timeout dur!)
        externalTimeBatch(timestamp long, window.time dur!, start.time dur, timeout dur!, replace.with.batchtime bool!)
        """,
        processing_mode="batch",
        retained_by="events",
        in_partition="apart",
        reads="arguments",
        resets_per_chunk=True,
        single_chunk=False,
        carries_group_id=True,
        timers_emit="current",
        example="externalTimeBatch({at}, {time})",
        check=external_time_batch,
    ),
    "session": WindowDeclaration(
        """
        session(session.gap dur!)
        session(session.gap dur!, session.key string)
        session(session.gap dur!, session.key string, allowed.latency dur!)
        """,
        processing_mode="group",
        retained_by="key",
        in_partition="shared",
        reads="arguments",
        resets_per_chunk=False,
        single_chunk=False,
        carries_group_id=True,
        timers_emit="expired",
        example="session({time}, {key})",
        check=session_window,
    ),
    "batch": WindowDeclaration(
        """
        batch()
        batch(window.length int!)
        """,
        processing_mode="batch",
        retained_by="events",
        in_partition="apart",
        reads="arguments",
        resets_per_chunk=True,
        single_chunk=False,
        carries_group_id=True,
        timers_emit="nothing",
        example="batch()",
        check=not_negative("the length of a 'batch' window", 0),
    ),
    "delay": WindowDeclaration(
        """
        delay(window.delay dur!)
        """,
        processing_mode="slide",
        retained_by="events",
        in_partition="shared",
        reads="arguments",
        resets_per_chunk=False,
        single_chunk=False,
        carries_group_id=True,
        timers_emit="current",
        example="delay({time})",
        check=not_negative("the time of a 'delay' window", 0),
    ),
    "cron": WindowDeclaration(
        """
        cron(cron.expression string!)
        """,
        processing_mode="batch",
        retained_by="clock",
        in_partition="shared",
        reads="arguments",
        resets_per_chunk=False,
        single_chunk=False,
        carries_group_id=True,
        timers_emit="current",
        example="cron('*/1 * * * * ?')",
        check=cron_window,
    ),
    "sort": WindowDeclaration(
        """
        sort(window.length int!, attribute num|string, ...)
        """,
        processing_mode="slide",
        retained_by="events",
        in_partition="apart",
        reads="arguments",
        resets_per_chunk=False,
        single_chunk=True,
        carries_group_id=True,
        timers_emit="nothing",
        example="sort({few}, {value})",
        check=sort_window,
    ),
    "expression": WindowDeclaration(
        """
        expression(expression string)
        """,
        processing_mode="slide",
        retained_by="events",
        in_partition="shared",
        reads="expression",
        resets_per_chunk=False,
        single_chunk=False,
        carries_group_id=False,
        timers_emit="nothing",
        example="expression('count() < {count}')",
    ),
    "expressionBatch": WindowDeclaration(
        """
        expressionBatch(expression string|bool)
        expressionBatch(expression string|bool, include.triggering.event bool)
        expressionBatch(expression string|bool, include.triggering.event bool, stream.current.event bool!)
        """,
        processing_mode="batch",
        retained_by="events",
        in_partition="shared",
        reads="expression",
        resets_per_chunk=False,
        single_chunk=False,
        carries_group_id=False,
        timers_emit="nothing",
        example="expressionBatch('count() < {count}')",
    ),
    "frequent": WindowDeclaration(
        """
        frequent(event.count int!)
        frequent(event.count int!, attribute string)
        """,
        processing_mode="slide",
        retained_by="events",
        in_partition="apart",
        reads="selection",
        resets_per_chunk=False,
        single_chunk=False,
        carries_group_id=True,
        timers_emit="nothing",
        example="frequent({few}, {key})",
        check=all_of(not_negative("the count of a 'frequent' window", 0), attributes_from("frequent", 1)),
    ),
    "lossyFrequent": WindowDeclaration(
        """
        lossyFrequent(support.threshold double!)
        lossyFrequent(support.threshold double!, error.bound double!)
        lossyFrequent(support.threshold double!, error.bound double!, attribute string)
        """,
        processing_mode="slide",
        retained_by="events",
        in_partition="apart",
        reads="selection",
        resets_per_chunk=False,
        single_chunk=False,
        carries_group_id=True,
        timers_emit="nothing",
        example="lossyFrequent(0.01, 0.005, {key})",
        check=lossy_frequent,
    ),
    **_UNIQUE,
}

TABLE: Mapping[str, Signature] = signatures(
    "".join(d.signature for d in BUILT_IN.values()),
    checks={name: d.check for name, d in BUILT_IN.items() if d.check is not None},
)
