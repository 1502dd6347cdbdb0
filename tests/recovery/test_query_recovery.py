"""When a query is started again, and when not: without Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sparkstream_nb.errors import SparkStreamError
from sparkstream_nb.journal.entries import StepsEntry
from sparkstream_nb.journal.inbox import Inbox
from sparkstream_nb.recovery.batch_care import Aside, BatchCare, EventsBlamed
from sparkstream_nb.recovery.query_recovery import PLAIN_TRIES, TRIAL_TRIES, QueryRecovery
from sparkstream_nb.recovery.trial_report import StepRange


class Query:
    """A query that fails as often as it is told to."""

    def __init__(self, fails: Callable[[int], str | None]) -> None:
        self.fails, self.instructions = fails, BatchCare()
        self.begun, self.batch = 0, 7
        self.seen: list[BatchCare] = []
        self.gone = self.committed = False
        self.cancelled = self.ended = 0

    @property
    def active(self) -> bool:
        return self.begun > 0 and self.failure() is None

    def failure(self) -> str | None:
        return self.fails(self.begun) if self.begun else None

    def ended_for_good(self) -> bool:
        return self.gone

    def planned_batch(self) -> tuple[int, tuple[int, int]]:
        return self.batch, (0, 2)

    def is_committed(self, batch: int) -> bool:
        return self.committed

    def attempts(self) -> int:
        return self.ended

    def begin(self) -> None:
        self.begun += 1
        self.seen.append(self.instructions)

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
    assert tried(made) == PLAIN_TRIES + TRIAL_TRIES
    assert said == ["The query ended and was started again: the disk is full"] * (PLAIN_TRIES + TRIAL_TRIES)
    assert query.seen[PLAIN_TRIES] == BatchCare()
    assert query.seen[PLAIN_TRIES + 1 :] == [BatchCare(entries=(0, 2))] * TRIAL_TRIES
    begun = query.begun
    made.start()  # a person who sends something tries again
    assert query.begun == begun + 1
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
    assert all(care == BatchCare() for care in query.seen)


def test_events_that_trials_have_found_are_set_aside(tmp_path: Path) -> None:
    culprits = BatchCare(skipped_steps=(Aside(StepRange(11, 12), "MemoryError: 9 GB"),), asks=(7,))

    def fail(begun: int) -> str | None:
        if query.instructions.why(StepRange(11, 12)):
            return None
        return str(EventsBlamed(culprits)) if query.instructions.entries == (0, 2) else "killed"

    query = Query(fail)
    made, said = mending(query, tmp_path)
    made.start()
    assert tried(made) == 100  # again and again, as it runs
    assert query.begun == 1 + PLAIN_TRIES + 1 + 1
    assert BatchCare.of(tmp_path) == culprits
    assert said[-2:] == [
        "An event was set aside: MemoryError: 9 GB",
        "An on-demand query was set aside: the process that took it ended: out of memory, or a fault",
    ]


def test_a_micro_batch_whose_results_are_in_a_database_is_not_tried_first(tmp_path: Path) -> None:
    query = Query(lambda _: "killed")
    query.committed = True
    made, _ = mending(query, tmp_path)
    query.ended = PLAIN_TRIES + 1
    made.start()
    tried(made)
    assert all(care == BatchCare() for care in query.seen)


def test_a_process_that_ended_often_proves_nothing_and_tries_first(tmp_path: Path) -> None:
    query = Query(lambda _: None)
    made, said = mending(query, tmp_path)
    query.ended = PLAIN_TRIES + 1
    made.start()
    assert query.seen == [BatchCare(entries=(0, 2))]
    assert (said, BatchCare.of(tmp_path)) == ([], BatchCare())


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
    made._should_run = True
    made._run(_Once())  # type: ignore[arg-type]
    assert said[-1] == "it did not start"


class _Once:
    def wait(self, _: float) -> bool:
        return False
