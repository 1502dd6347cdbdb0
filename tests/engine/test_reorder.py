"""A reordering step against a model that moves event after event through dictionaries, however its input is cut."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from random import Random
from typing import Any

import numpy as np
import pytest

from sparkstream_nb.engine.columnar.column_data import Column, StringPool
from sparkstream_nb.engine.columnar.rows import EVENT_PHASE, ORDER_KEY_BITS, Clock, Rows
from sparkstream_nb.engine.reorder import ReorderStep, step
from sparkstream_nb.engine.state.snapshot import pack, unpack
from sparkstream_nb.types import Type

SCHEDULER, BASE = 3, 70
MOST = 2**63 - 1

Step = tuple[int, list[list[tuple[int, int, float]]]]
"""Where the clock goes, and the chunks that come: events of one instance, each (instance, time, value)."""
Left = list[tuple[int, list[int]]]
"""What leaves: per chunk its order key, and its events by number."""


class Instance:
    def __init__(self) -> None:
        self.held: dict[int, list[int]] = {}
        self.fresh: dict[int, list[int]] = {}
        self.k = self.greatest = self.counter = 0
        self.sent = self.scheduled = -1
        self.alpha = self.error = 0.0
        self.data: list[float] = []
        self.times: list[int] = []


class Model:
    """`batch` None: `kslack`."""

    def __init__(self, partitioned: bool, timeout: int, most: int, drop: bool, batch: int | None) -> None:
        self.timeout, self.most, self.drop, self.batch = timeout, most, drop, batch
        self.instances: defaultdict[int, Instance] = defaultdict(Instance)
        self.owner, self.due, self.idle = None if partitioned else 0, timeout, False
        self.instances[0].scheduled = -1 if partitioned else timeout
        self.alpha, self.length = 1.0, 0

    def run(self, steps: list[Step]) -> Left:
        out: Left = []
        clock, number = -1, 0
        for s, (time, chunks) in enumerate(steps):
            order_key = (BASE + s) << ORDER_KEY_BITS
            moved, clock = time >= clock, max(time, clock)
            while moved and self.timeout != -1 and not self.idle and self.due <= clock:
                out.append((order_key | SCHEDULER, self.fire()))
            for chunk in chunks:
                left: list[int] = []
                for instance, t, value in chunk:
                    self.event(instance, number, t, value, clock, left)
                    number += 1
                out.append((order_key | EVENT_PHASE, left))
        return [(order_key, left) for order_key, left in out if left]

    def event(self, instance: int, number: int, time: int, value: float, now: int, left: list[int]) -> None:
        b = self.instances[instance]
        b.times.append(time)
        b.data.append(value)
        if self.drop and time < b.sent:
            return
        if self.idle:
            b.scheduled += math.ceil((now - b.scheduled) / 1000.0) * 1000
            self.owner, self.due, self.idle = instance, b.scheduled, False
        b.fresh.setdefault(time, []).append(number)
        if self.batch is not None:
            self.adapt(b, time)
        if time <= b.greatest:
            return
        b.greatest = time
        disorder = time - min(b.fresh)
        if disorder > b.k:
            b.k = self.most if disorder >= self.most else math.floor(disorder * self.alpha + 0.5)
        for t, numbers in b.fresh.items():
            b.held.setdefault(t, []).extend(numbers)
        b.fresh = {}
        for t in sorted(t for t in b.held if t + b.k <= b.greatest):
            b.sent = t
            left += b.held.pop(t)

    def fire(self) -> list[int]:
        left: list[int] = []
        b = Instance() if self.owner is None else self.instances[self.owner]
        for shelf in (b.held, b.fresh) if self.batch is not None else (b.held,):
            for t in sorted(t for t in shelf if t < self.timeout + self.due):
                left += shelf.pop(t)
        if b.held or (self.batch is not None and b.fresh):
            b.scheduled += 1000
            self.due = b.scheduled
        else:
            self.idle = True
        return left

    def adapt(self, b: Instance, time: int) -> None:
        b.counter += 1
        if self.batch is None or b.counter <= self.batch:
            return
        error = wanted(b.data) - (self.coverage(b, time) if self.length else 1.0)
        self.alpha = abs(b.alpha + 0.5 * error + 0.8 * (error - b.error))
        b.error, b.alpha = error, self.alpha
        self.length = min(math.floor(self.alpha * b.k + 0.5), b.k)
        b.counter = 0
        b.data.clear()

    def coverage(self, b: Instance, time: int) -> float:
        high, low = time - self.length, time - self.length - 10_000_000_000
        covered = total = 0
        low_met = high_met = False
        for t in b.times:
            low_met, high_met = low_met or low <= t, high_met or high <= t
            if low_met and low <= t <= high:
                covered += not high_met
                total += 1
        b.times = [t for t in b.times if t > low]
        return covered / total if total else 1.0


def wanted(data: list[float]) -> float:
    error, critical = 0.03, abs(statistics.NormalDist().inv_cdf(0.025))
    n, mean = len(data), sum(data) / len(data)
    variance = sum((mean - x) * (mean - x) for x in data) / n
    spread = critical**2 * ((mean**2 + variance**2) / (n * mean**2))
    a, order_keys = 1 + spread, []
    for b, c in ((2 * error - 2 - spread, (1 - error) ** 2), (-(2 + 2 * error + spread), (1 + error) ** 2)):
        if (inner := b**2 - 4 * a * c) >= 0:
            order_keys += [(-b - math.sqrt(inner)) / (2 * a), (-b + math.sqrt(inner)) / (2 * a)]
    return min(order_keys, default=0.0)


def fed(r: Random, n: int, instances: int) -> list[Step]:
    """Steps with about `n` events, some much later than others; also steps that bring none, or move the clock back."""
    late, share, gap = r.choice([5, 60, 3000]), r.random(), r.choice([1, 20, 700])
    # Times far before those of the clock too, and behind it: they are not those of the app's clock.
    off = r.choice([0, 0, -1000, 5000])
    clock, steps, count = 1000, list[Step](), 0
    while count < n:
        clock += r.randint(0, gap) if r.random() < 0.95 else r.choice([1000, 9000])
        chunks = []
        for _ in range(r.choice([1, 1, 1, 1, 0, 2])):
            instance, size = r.randrange(instances), r.choice([1, 1, 1, 4])
            times = [clock + off - (r.randint(0, late) if r.random() < share else 0) for _ in range(size)]
            chunks.append([(instance, t, float(r.randint(1, 50))) for t in times])
            count += size
        steps.append((clock - r.choice([0, 0, 0, 40]), chunks))
    return steps


class Fed:
    """Steps as rows and a clock, of which parts go through a reordering step."""

    def __init__(self, steps: list[Step], partitioned: bool) -> None:
        chunks = [(s, chunk) for s, (_, own) in enumerate(steps) for chunk in own]
        self.sizes = np.cumsum([0, *(sum(map(len, own)) for _, own in steps)])
        self.time = np.array([t for _, c in chunks for _, t, _ in c], np.int64)
        self.value = np.array([v for _, c in chunks for _, _, v in c], np.float64)
        self.instance = np.array([p for _, c in chunks for p, _, _ in c], np.int32) if partitioned else None
        self.chunk = np.repeat(np.arange(len(chunks)), [len(c) for _, c in chunks])
        steps_of = np.repeat([s for s, _ in chunks], [len(c) for _, c in chunks]).astype(np.int64)
        self.order_key = (BASE + steps_of) << ORDER_KEY_BITS | EVENT_PHASE
        self.clock = Clock.over(np.array([t for t, _ in steps], np.int64), -1, BASE)[0]

    def through(self, through: ReorderStep, a: int, b: int, instances: int) -> Left:
        """What leaves at the steps a ≤ s < b."""
        own = slice(self.sizes[a], self.sizes[b])
        number = Column(Type.INT, np.arange(len(self.time), dtype=np.int32)[own])
        instance = None if self.instance is None else self.instance[own]
        rows = Rows([number], self.time[own] + 5, self.order_key[own], self.chunk[own], None, instance)
        args = [Column(Type.LONG, self.time[own]), Column(Type.DOUBLE, self.value[own])]
        out = through.run(rows, args, self.clock.part(a, b), instances)
        left = []
        for chunk in out.by_chunk():
            assert len(set(chunk.order_key.tolist())) == 1
            numbers = chunk.columns[0].values
            assert np.array_equal(chunk.ts, self.time[numbers] + 5)
            assert self.instance is None or np.array_equal(chunk.instance, self.instance[numbers])
            left.append((int(chunk.order_key[0]), numbers.tolist()))
        return left


@pytest.mark.thorough
@pytest.mark.parametrize("adaptive", [False, True], ids=["kslack", "akslack"])
@pytest.mark.parametrize("instances", [1, 4])
def test_as_the_model_in_all_cuts(adaptive: bool, instances: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step, "_SMALL", 8)
    r, strings, partitioned = Random(f"{adaptive}{instances}"), StringPool(), instances > 1
    for n in [30] * 150 + [300] * 20 + [6000]:
        timeout, drop = r.choice([-1, -1, 0, 70, 1000, 4000]), r.random() < 0.3
        most = r.choice([MOST, MOST, 0, 30, 2000])
        batch = r.choice([15, 40]) if adaptive else None
        steps = fed(r, n, instances)
        constants: list[Any] = [timeout, most, drop] if batch is None else [batch, timeout, most, drop]

        def made(constants: list[Any] = constants) -> ReorderStep:
            return ReorderStep([Type.INT], constants, SCHEDULER, adaptive, partitioned)

        expected = Model(partitioned, timeout, most, drop, batch).run(steps)
        rows, whole, cut = Fed(steps, partitioned), made(), made()
        assert rows.through(whole, 0, len(steps), instances) == expected
        left, a = Left(), 0
        while a < len(steps):
            b = min(len(steps), a + r.choice([1, 3, 10, n // 3]))
            seen = 1 + int(rows.instance[: rows.sizes[b]].max(initial=-1)) if rows.instance is not None else 1
            left += rows.through(cut, a, b, seen)
            if r.random() < 0.3:
                blob, cut = pack(cut.state(), strings), made()
                cut.load(unpack(blob, strings))
                assert pack(cut.state(), strings) == blob
            a = b
        assert left == expected
        assert pack(cut.state(), strings) == pack(whole.state(), strings)


def test_what_has_left_takes_no_room() -> None:
    kslack = ReorderStep([Type.LONG], [], SCHEDULER, False, False)
    n, most = 1000, 0
    for batch in range(50):
        time = np.arange(batch * n, (batch + 1) * n) ^ 3
        order_key = np.arange(batch * n, (batch + 1) * n) << ORDER_KEY_BITS | EVENT_PHASE
        column = Column(Type.LONG, time)
        left = kslack.run(Rows([column], time, order_key, order_key), [column], Clock.over(time, 0, batch * n)[0], 1)
        assert batch == 0 or not np.any(np.diff(left.columns[0].values) < 0)
        most = max(most, kslack.log.capacity)
        assert kslack.bytes <= 8 * 16
    assert most < 5 * n
