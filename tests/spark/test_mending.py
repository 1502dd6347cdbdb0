"""When a query is started again, and when not: without Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sparkstream_nb.errors import SparkStreamError
from sparkstream_nb.journal.entries import StepsEntry
from sparkstream_nb.journal.inbox import Inbox
from sparkstream_nb.recovery.crash_bisection import Aside, CrashBisection, StepRange, Trying, WorkPlace, record_attempt
from sparkstream_nb.recovery.query_recovery import PLAIN_TRIES, QueryRecovery


class Query:
    """A query that fails as often as it is told to."""

    def __init__(self, fails: Callable[[int], str | None]) -> None:
        self.fails, self.care = fails, CrashBisection()
        self.begun, self.batch = 0, 7
        self.seen: list[CrashBisection] = []
        self.gone = False
        self.cancelled = 0

    @property
    def active(self) -> bool:
        return self.begun > 0 and self.failure() is None

    def failure(self) -> str | None:
        return self.fails(self.begun) if self.begun else None

    def ended_for_good(self) -> bool:
        return self.gone

    def planned_batch(self) -> tuple[int, tuple[int, int]]:
        return self.batch, (0, 2)

    def attempts(self) -> int:
        return 0

    def begin(self) -> None:
        self.begun += 1
        self.seen.append(self.care)

    def cancel(self) -> None:
        self.cancelled += 1


def mending(query: Query, folder: Path) -> tuple[QueryRecovery, list[str]]:
    inbox = Inbox(folder)
    inbox.append([StepsEntry(steps=n, clock=n, route="round_robin") for n in (10, 6)])
    said: list[str] = []
    return QueryRecovery(query, folder, said.append), said


def tried(made: QueryRecovery) -> int:
    """Lets it try until it gives up; how often it did."""
    count = 0
    while made.again() and count < 100:
        count += 1
    return count


def test_what_fails_elsewhere_than_in_events_stays_failed(tmp_path: Path) -> None:
    query = Query(lambda _: "the disk is full")
    made, said = mending(query, tmp_path)
    made.start()
    assert tried(made) == PLAIN_TRIES + 1
    assert said == ["The query ended and was started again: the disk is full"] * 3
    assert query.seen[-1] == CrashBisection(entries=(0, 2), suspects=StepRange(0, 16))
    made.start()  # a person who sends something tries again
    assert query.begun == 5
    made.leave(0.0)
    assert not made.again()


def test_a_failure_of_another_micro_batch_counts_anew(tmp_path: Path) -> None:
    query = Query(lambda begun: None if begun == 20 else "again")
    made, _ = mending(query, tmp_path)
    made.start()
    while query.begun < 20:
        assert made.again()
        query.batch += 1
    assert query.active
    assert all(care == CrashBisection() for care in query.seen)


def test_a_step_that_ends_its_process_is_found(tmp_path: Path) -> None:
    poison = 11

    def run(begun: int) -> str | None:
        care = query.care
        if care.why(StepRange(poison, poison + 1)):
            return None
        if care.suspects is not None:
            size = -(-len(care.suspects) // 32)
            first = care.suspects.first + (poison - care.suspects.first) // size * size
            tried = StepRange(first, min(first + size, care.suspects.end))
            with record_attempt(WorkPlace(tmp_path, "0"), Trying(tried)):
                left = (tmp_path / "marks" / "trying-0").read_text()
            (tmp_path / "marks" / "trying-0").write_text(left)  # the process ended in between
        return "killed"

    query = Query(run)
    made, said = mending(query, tmp_path)
    made.start()
    while query.failure() is not None:
        assert made.again()
    assert CrashBisection.of(tmp_path).aside == (Aside(StepRange(poison, poison + 1)),)
    assert any(line.startswith("An event was set aside") for line in said)


def test_spark_that_has_ended_is_not_asked_again(tmp_path: Path) -> None:
    query = Query(lambda _: "gone")
    made, said = mending(query, tmp_path)
    made.start()
    query.gone = True
    assert not made.again()
    assert (query.begun, said) == (1, [])


def test_a_start_that_fails_is_told(tmp_path: Path) -> None:
    query = Query(lambda _: "gone")
    made, said = mending(query, tmp_path)
    made.start()

    def refused() -> None:
        raise SparkStreamError("it did not start")

    query.begin = refused  # type: ignore[method-assign]
    made.leave(0.0)
    made._wanted = True
    made._run(_Once())  # type: ignore[arg-type]
    assert said[-1] == "it did not start"


class _Once:
    def wait(self, _: float) -> bool:
        return False
