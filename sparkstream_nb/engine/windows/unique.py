"""`unique:ever`, `unique:first`, `unique:length` and `unique:time`: events come and go one by one, one of each key.

Siddhi's faults are here too. Its windows of length and time keep for ever which event of a key came last, also when
that has left, and take it out of a list (`ComplexEventChunk`) whose end stays where it was when the last of several
events is taken out: later events are not in the list until that is empty (`lost_end`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...plan.nodes import Ref
from ...types import Type
from ..columnar.arrays import grown
from ..columnar.column_data import Array
from ..columnar.frame import frame_of
from ..columnar.key_ids import key_numbers
from ..columnar.rows import BEFORE_ALL, CURRENT, ENTER, EXPIRED, LEAVE, Clock, Rows
from ..columnar.timers import Schedule
from ..expressions import Env, compile_expr
from ..notation.kernels import compiled, inlined, struct
from ..state.key_hash import TextKeys
from .declared_state import numbers, per_instance, scheduled_times
from .frequent import COUNT, LAST, CountedKeys
from .timed_window import Due, Event, TimedWindow, timed_window
from .unique_keys import KeyedWindow, UniqueKey
from .window_protocol import Emission, Feed, Untimed, WindowSetup

_FACTOR = np.int64(-7046029254386353131)

NOT_LISTED = -2
"""The place before an event that is in no list."""


class UniqueEverWindow(CountedKeys):
    """The last event of every key: a new one pushes out the one before. Also `unique:first`, which keeps the first
    event and drops the others. Keys that are no attributes are columns of the log behind the stream's."""

    keeps_first = False

    def __init__(self, setup: WindowSetup) -> None:
        self.columns = len(setup.types)
        args = [a for a in setup.args if not isinstance(a, Ref)]
        self._evaluate = [compile_expr(a, setup.context) for a in args]
        super().__init__(replace(setup, types=(*setup.types, *(a.type for a in args))), len(setup.args))
        key_columns = iter(range(self.columns, self.columns + len(args)))
        self.keys = [a.attr if isinstance(a, Ref) else next(key_columns) for a in setup.args]

    def run(self, rows: Rows, clock: Clock, instances: int, hashes: Array | None) -> Rows:
        if self._evaluate:
            resolve = frame_of(rows).resolve
            env = Env(len(rows), self.setup.strings, rows.ts, lambda: clock.at(rows.order_key), resolve)
            key_columns = [evaluate(env) for evaluate in self._evaluate]
            if env.failed_rows is not None:
                self.setup.refuse(rows, env.failed_rows, "its unique key failed")
                stay = np.flatnonzero(~env.failed_rows)
                rows, key_columns = rows.take(stay), [c.take(stay) for c in key_columns]
            rows = rows.with_columns([*rows.columns, *key_columns])
        result = super().run(rows, clock, instances, hashes)
        if not self._evaluate:
            return result
        places = list(range(self.columns))
        if self.setup.findable:  # the ranks for joins belong before the stream's last column, not before the last one
            places.insert(self.columns - 1, len(result.columns) - 2)
        return result.pick(places)

    @compiled
    def _step(self, rows: Feed, ids: Array, now: Array, out: Emission) -> int:
        """`UniqueEverWindowProcessor.process`, or `UniqueFirstWindowProcessor.process`. Returns how many rows are put
        out, each in the chunk of the row that brought it."""
        for i in range(rows.count):
            pos = rows.first + i
            k = ids[i]
            out.chunks = rows.chunk[i]
            has_key = self.key[COUNT, k] > 0
            if has_key and not self.keeps_first:
                out.put(self.key[LAST, k], EXPIRED, now[i], rows.order_key[i])
            if not (has_key and self.keeps_first):
                self._count(k, pos, self.log.instance[pos], rows.order_key[i], out)
        return out.count


class UniqueFirstWindow(UniqueEverWindow):
    """The first event of every key, for ever."""

    keeps_first = True


@struct
class UniqueList(KeyedWindow):
    """Events of instances in lists, in the order in which they came. `before` is each event's neighbour."""

    before: Array
    findable: bool
    chains = ("events",)
    loses_end = True
    lost_end = per_instance()

    def _begin_list(self, setup: WindowSetup, numbers_of_keys: int) -> None:
        self.findable, self.ops_only = setup.findable, setup.ops_only
        self.key = UniqueKey(setup.args[0], setup, apart=True, by_value=False, nullable=False)
        self._begin(setup, numbers_of_keys)
        self.before = np.full(0, NOT_LISTED, np.int32)

    def _enlist(self, rows: Rows, ids: Array, instances: int) -> int:
        at = self._add(rows, ids, instances)
        self.before = grown(self.before, self.log.capacity, NOT_LISTED)
        self.before[at : at + len(rows)] = NOT_LISTED
        return at

    @inlined
    def _append(self, pos: int, p: int) -> None:
        """Appends an event to its list, or behind the lost end of that."""
        if self.log.head[0][p] < 0:
            self.lost_end[p] = 0
        if self.lost_end[p] == 0:
            self.before[pos] = self.log.tail[0][p]
            self.log.push(0, pos, p)

    @inlined
    def _remove(self, pos: int, p: int) -> None:
        """Takes an event out of its list (`ComplexEventChunk.remove`)."""
        neighbour = self.before[pos]
        later = self.log.next[pos]
        self.before[pos] = NOT_LISTED
        if neighbour >= 0:
            self.log.next[neighbour] = later
        else:
            self.log.head[0][p] = later
        if later >= 0:
            self.before[later] = neighbour
        else:
            self.log.tail[0][p] = neighbour
            if neighbour >= 0 and self.loses_end:
                self.lost_end[p] = 1

    def _result(self, count: int, rows: Rows, out: Emission) -> Rows:
        if self.ops_only:
            result = out.beside(count, self.log, rows)
        else:
            result = self._strip(out.rows(count, self.log, rows.instance is not None))
        end = self.log.end
        self._compact()
        if self.log.end != end:
            self._find_neighbours()
        return result

    def _find_neighbours(self) -> None:
        """`before` of all events, from the lists."""
        log = self.log
        self.before = np.full(log.capacity, NOT_LISTED, np.int32)
        self._link_back(log.instances)

    @compiled
    def _link_back(self, instances: int) -> None:
        for p in range(instances):
            neighbour = -1
            at: Any = np.int64(self.log.head[0][p])
            while at >= 0:
                self.before[at] = neighbour
                neighbour = at
                at = np.int64(self.log.next[at])

    def load(self, state: dict[str, Any]) -> None:
        super().load(state)
        self._find_neighbours()


@struct
class UniqueLengthWindow(UniqueList, Untimed):
    """The last event of each of n keys; a new key pushes out the oldest event, another event of a key the one before.

    Of a chunk Siddhi takes the first event alone. It looks for the event before behind the place where it ended last
    (`cursor`), and nowhere any more once the event there was pushed out (`stuck`). Where a condition can look into the
    window, which moves that place, each event is looked for in the whole list instead.
    """

    stamps, moves, is_ordered = None, True, False
    places = ("cursor",)
    count = per_instance()
    cursor = per_instance(fill=-1)
    stuck = per_instance()

    def __init__(self, setup: WindowSetup) -> None:
        self.length = int(setup.constant(1))
        self._begin_list(setup, 1)
        self.loses_end = not setup.findable

    def run(self, rows: Rows, clock: Clock, instances: int, hashes: Array | None) -> Rows:
        rows = rows.where(np.append(True, rows.chunk[1:] != rows.chunk[:-1])[: len(rows)])
        rows, ids = self.key.take(rows, clock)
        at = self._enlist(rows, ids, instances)
        out = Emission((2 + 2 * self.findable) * len(rows), self.ops_only)
        count = self._step(Feed(rows, at), self.ids, clock.at(rows.order_key), out)
        return self._result(count, rows, out)

    @compiled
    def _step(self, rows: Feed, ids: Array, now: Array, out: Emission) -> int:
        """`UniqueLengthWindowProcessor.processEventChunk`; `ids` are the keys' by position. Returns how many rows are
        put out, each in the chunk of the row that brought it."""
        for i in range(rows.count):
            pos = rows.first + i
            p: Any = self.log.instance[pos]
            k = ids[pos]
            order_key = rows.order_key[i]
            out.chunks = rows.chunk[i]
            previous = self.by_key[0, k]
            self.by_key[0, k] = pos
            self.log.alive[pos] = True
            enters = True
            leaver: Any = np.int64(-1)
            if previous >= 0:
                if self.findable:
                    if self.before[previous] != NOT_LISTED:
                        leaver = previous
                        self._remove(previous, p)
                elif self.stuck[p] == 0:
                    if previous > self.cursor[p] and self.before[previous] != NOT_LISTED:
                        self._remove(previous, p)
                    self.cursor[p] = self.log.tail[0][p]
                self._append(pos, p)
                self.log.alive[previous] = self.before[previous] != NOT_LISTED
                out.put(previous, EXPIRED, now[i], order_key)
            else:
                self.count[p] += 1
                first: Any = np.int64(self.log.head[0][p])
                if self.count[p] > self.length and first >= 0:
                    if self.cursor[p] == first:
                        self.stuck[p] = 1
                        self.cursor[p] = -1
                    leaver = first
                    self._poll(first, p)
                    self.log.alive[first] = self.by_key[0, ids[first]] == first
                    out.put(first, EXPIRED, now[i], order_key)
                elif self.count[p] > self.length:  # of length 0
                    enters = False
                    out.put(pos, EXPIRED, 0 if self.ops_only else self.log.ts[pos], order_key)
                if enters:
                    self._append(pos, p)
            if self.findable:
                if leaver >= 0:
                    out.put(leaver, LEAVE, now[i], order_key)
                if enters:
                    out.put(pos, ENTER, self.log.ts[pos], order_key)
            out.put(pos, CURRENT, 0 if self.ops_only else self.log.ts[pos], order_key)
        return out.count

    @inlined
    def _poll(self, first: int, p: int) -> None:
        """Takes the first event out of a list."""
        later = self.log.next[first]
        self.before[first] = NOT_LISTED
        self.log.head[0][p] = later
        if later >= 0:
            self.before[later] = -1
        else:
            self.log.tail[0][p] = -1


SEEN, IDENTITY, TIME = 1, 2, 3
"""Numbers of a key of `unique:time`: 0 once it has had an event, and of its last event a hash of its values, and its
timestamp."""


@timed_window
class UniqueTimeWindow(TimedWindow, UniqueList):
    """Each event leaves at its time + t, or when another event of its key comes.

    An event whose key came before, and whose last event has left already, lets no other event expire
    (`UniqueTimeWindowProcessor`); where it equals that event it leaves at once.
    """

    identity: Array
    stamps, moves, is_ordered = None, True, False
    newest = numbers(BEFORE_ALL)
    timers = scheduled_times()

    def __init__(self, setup: WindowSetup) -> None:
        self.span, self.scheduler = int(setup.constant(1)), setup.scheduler
        self._begin_list(setup, 4)
        self._width, self._texts = len(setup.names), TextKeys(setup.strings)

    @inlined
    def _expire(self, pos: int, p: int, now: int, order_key: int, out: Emission) -> None:
        """An event leaves."""
        self._remove(pos, p)
        self.log.alive[pos] = False
        if self.findable:
            out.put(pos, LEAVE, now, order_key)
        out.put(pos, EXPIRED, now, order_key)

    @inlined
    def _expire_first(self, p: int, now: int, order_key: int, out: Emission) -> None:
        """The first events of a list leave whose time has come."""
        while self.log.head[0][p] >= 0 and self.log.ts[self.log.head[0][p]] - now + self.span <= 0:
            first: Any = np.int64(self.log.head[0][p])
            self.by_key[0, self.ids_by_position[first]] = -1
            self._expire(first, p, now, order_key, out)

    @inlined
    def on_timer(self, due: Due, schedule: Schedule, out: Emission) -> None:
        self._expire_first(due.instance, due.now, due.order_key, out)

    @inlined
    def on_event(self, event: Event, schedule: Schedule, out: Emission) -> None:
        p = event.instance
        pos = event.pos
        k: Any = self.ids_by_position[pos]
        time = self.log.ts[pos]
        previous: Any = self.by_key[0, k]
        seen = self.by_key[SEEN, k] == 0
        equal = seen and self.by_key[TIME, k] == time and self.by_key[IDENTITY, k] == self.identity[event.row]
        self.by_key[SEEN, k] = 0
        self.by_key[TIME, k] = time
        self.by_key[IDENTITY, k] = self.identity[event.row]
        self._append(pos, p)
        in_list = self.before[pos] != NOT_LISTED
        self.by_key[0, k] = pos if in_list else -1
        self.log.alive[pos] = in_list
        if self.findable and in_list:
            out.put(pos, ENTER, time, event.order_key)
        if self.newest[0] < time:
            schedule.notify(p, time + self.span)
            self.newest[0] = time
        if previous < 0 and equal and in_list:
            previous = np.int64(pos)
            self.by_key[0, k] = -1
        if previous >= 0:
            later: Any = np.int64(self.log.next[previous])
            self._expire(previous, p, event.now, event.order_key, out)
            if later >= 0 and self.log.ts[later] - event.now + self.span <= 0:
                self.by_key[0, self.ids_by_position[later]] = -1
                self._expire(later, p, event.now, event.order_key, out)
                self._expire_first(p, event.now, event.order_key, out)
        elif not seen:
            self._expire_first(p, event.now, event.order_key, out)
        out.put(pos, CURRENT, time, event.order_key)

    def run(self, rows: Rows, clock: Clock, instances: int, hashes: Array | None) -> Rows:
        rows, ids = self.key.take(rows, clock)
        n = len(rows)
        at = self._enlist(rows, ids, instances)
        self.timers.room(n, instances)
        self.ids_by_position, self.identity = self.ids, self._identities(rows)
        out = Emission((2 + 2 * self.findable) * (at + n) + 1, self.ops_only)
        return self._result(self.step(rows, at, clock, hashes, out), rows, out)

    def _identities(self, rows: Rows) -> Array:
        """int64[n]: hashes of the rows' values, to compare events of one key (`StreamEvent.equals`)."""
        out = np.zeros(len(rows), np.int64)
        for column in rows.columns[: self._width]:
            if column.type is Type.STRING:  # not by its codes, which are others after a restart
                words, null = self._texts.numbers([column, None], len(rows))[0], column.null
            else:
                words, null = key_numbers(column, self.key.setup.strings)
            out = (out ^ (words if null is None else np.where(null, -1, words))) * _FACTOR
        return out

    def next_due(self) -> int | None:
        return self.timers.next_due()
