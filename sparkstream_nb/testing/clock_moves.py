"""Bound of a test's movements of the clock: what recurs by the clock alone gives rows without end in a long wait."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

from ..engine.state.cron_times import CronTimes
from ..errors import Misuse
from ..plan.nodes import AbsentState, EveryState, LogicalState, NextState, Plan, State, StateInput, TriggerDef

MOST_FIRINGS = 1_000_000
"""Firings of timers in one movement of the clock. A million take 0.1 s of a trigger and 20 s of a cron expression."""
_DAY_MS = 86_400_000


@dataclass(frozen=True)
class RecurringTimer:
    """A timer that fires without events: its name, its period (ms), and its cron expression, if it has one:
    `period_ms` is the mean on a day on which that fires then."""

    name: str
    period_ms: int
    cron: CronTimes | None = None

    def count_firings(self, start_ms: int, end_ms: int) -> int:
        """Firings between two times, counted up to `MOST_FIRINGS`; of a cron expression only on whole days."""
        most = min((end_ms - start_ms) // self.period_ms, MOST_FIRINGS + 1)
        if self.cron is None or most <= MOST_FIRINGS:
            return most
        count, time = 0, self.cron.after(start_ms)
        while time is not None and time + _DAY_MS <= end_ms and count <= MOST_FIRINGS:
            count, time = count + self.cron.times_a_day, self.cron.after(time + _DAY_MS - 1)
        return count


def list_recurring_timers(plan: Plan, timezone: str) -> list[RecurringTimer]:
    """The timers of an app that fire by the clock alone: triggers, `output snapshot every`, `every not ... for`."""
    timers = [t for trigger in plan.triggers.values() for t in _timers_of(trigger, timezone)]
    for query in plan.queries:
        rate = query.rate
        if rate is not None and rate.kind == "snapshot" and rate.unit == "time":
            timers.append(RecurringTimer(f"'output snapshot' of query {query.name}", max(rate.every, 1)))
        if isinstance(query.input, StateInput):
            name = f"'every not' of query {query.name}"
            timers += [RecurringTimer(name, max(period, 1)) for period in _list_periods(query.input.state)]
    return timers


def check_clock_move(timers: list[RecurringTimer], start_ms: int, end_ms: int) -> None:
    """Raises `Misuse` if the clock cannot move from one time to another in one step, as too many timers would fire."""
    counts = [(timer.count_firings(start_ms, end_ms), timer) for timer in timers]
    if sum(count for count, _ in counts) > MOST_FIRINGS:
        _, timer = max(counts, key=lambda c: c[0])
        raise Misuse(
            f"the clock would move by {end_ms - start_ms:,} ms, in which timers fire more than {MOST_FIRINGS:,} times: "
            f"{timer.name} fires every {timer.period_ms:,} ms. "
            "Wait for a shorter time, or leave the timer out of the app under test"
        )


def _timers_of(trigger: TriggerDef, timezone: str) -> Iterator[RecurringTimer]:
    if trigger.every is not None:
        yield RecurringTimer(f"trigger {trigger.id}", max(trigger.every, 1))
    elif trigger.cron is not None:
        times = CronTimes(trigger.cron, timezone)
        yield RecurringTimer(f"trigger {trigger.id}", _DAY_MS // times.times_a_day, times)


def _list_periods(state: State) -> Iterator[int]:
    """The periods (ms) of the states under `every` that come about without events."""
    if isinstance(state, EveryState):
        period = _time_without_events(state.state)
        if period is not None:
            yield period
    for part in (getattr(state, f.name) for f in fields(state)):
        if isinstance(part, State):
            yield from _list_periods(part)


def _time_without_events(state: State) -> int | None:
    """The time (ms) after which a state has come about if no event comes; None: it needs an event."""
    if isinstance(state, AbsentState):
        return state.wait
    if isinstance(state, NextState):
        first, then = _time_without_events(state.first), _time_without_events(state.then)
        return None if first is None or then is None else first + then
    if isinstance(state, LogicalState):
        times = [t for t in map(_time_without_events, (state.left, state.right)) if t is not None]
        if state.op == "or":
            return min(times, default=None)
        return max(times) if len(times) == 2 else None
    return None
