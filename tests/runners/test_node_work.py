"""What a node sets aside, and what it drops, in its own process: without Spark."""

from __future__ import annotations

import io
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import sqlalchemy as sa

from sparkstream_nb.engine.columnar import ordering
from sparkstream_nb.engine.state.node_batch import InputBatch, StreamRows
from sparkstream_nb.errors import StoreError
from sparkstream_nb.journal import result_rows
from sparkstream_nb.journal.entries import Ask, EventsEntry
from sparkstream_nb.journal.inbox import Inbox
from sparkstream_nb.journal.journal import entries_from
from sparkstream_nb.journal.result_codec import QueryFailed
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.state_units import state_tokens, units_of
from sparkstream_nb.recovery.batch_care import DIED, Aside, BatchCare, is_elsewhere
from sparkstream_nb.recovery.trial_report import StepRange, Suspect, TrialOutcome, TrialReport
from sparkstream_nb.runners.app_node import AppNode
from sparkstream_nb.runners.node_spec import NodeSpec, NodeWork
from sparkstream_nb.runners.node_state import MemoryState
from sparkstream_nb.runners.node_work import NodeInput, _Attempt, _NodeBatch

APP = """
define stream S (k string, o object);
@info(name = 'sorted') from S#window.timeBatch(1 sec) select k, o order by o insert into Sorted;
@info(name = 'counted') from S#window.length(10) select k, count() as n insert into Counted;
"""


def spec_of(text: str) -> NodeSpec:
    plan = compile_app(text)
    return NodeSpec(0, "node-1", pickle.dumps(plan), tokens=state_tokens(plan, units_of(plan)))


def put_out(folder: Path, text: str, events: list[tuple[int, str, Any]]) -> tuple[dict[str, int], list[list[Any]]]:
    """How many events of each stream a careful node puts out, and its errors."""
    spec = spec_of(text)
    at = np.array([e[0] for e in events], np.int64)
    columns: list[Any] = [pa.array([e[1] for e in events]), [e[2] for e in events]]
    inbox = Inbox(folder)
    inbox.append([inbox.batch(InputBatch(at, {"S": StreamRows(np.arange(len(at)), at, columns)}), "round_robin")])
    entries = [e for e, _ in entries_from(folder) if isinstance(e, EventsEntry)]
    batch = _NodeBatch(NodeWork("run", {0: spec}, folder), MemoryState(None), 0, NodeInput(list(entries)))
    found = _Attempt(batch, AppNode(("run", 0), spec), careful=True).run()
    counts: dict[str, int] = {}
    errors: list[list[Any]] = []
    for row in found:
        if isinstance(row, result_rows.StreamEvents):
            counts[row.name] = counts.get(row.name, 0) + row.rows
        elif isinstance(row, result_rows.Errors):
            errors += [json.loads(line) for line in row.lines.splitlines()]
    return counts, errors


def unsortable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a timer fail: objects that are "poison" cannot be sorted."""
    ranks = ordering._ranks

    def failing(values: Any) -> Any:
        if "poison" in values:
            raise TypeError("these cannot be sorted")
        return ranks(values)

    monkeypatch.setattr(ordering, "_ranks", failing)


EVENTS = [(0, "a", 1), (10, "b", "poison"), (2_000, "c", 3), (2_010, "d", 2), (4_000, "e", 1), (6_000, "f", 1)]
DROPPED = "its state is dropped, as it cannot continue: TypeError: these cannot be sorted"


def test_what_makes_a_timer_fail_is_dropped_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unsortable(monkeypatch)
    counts, errors = put_out(tmp_path, APP, EVENTS)
    assert errors == [["", 2_000, [], f"query sorted: {DROPPED}"]]
    assert counts == {"Counted": 6, "Sorted": 3}


def test_a_partition_begins_anew_with_all_its_queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unsortable(monkeypatch)
    queries = APP[APP.index("@info") :]
    text = APP.replace(queries, f"partition with (k of S) begin {queries} end;")
    counts, errors = put_out(tmp_path, text, [(at, "a", o) for at, _, o in EVENTS])
    assert errors == [["", 2_000, [], f"partition partition0: {DROPPED}"]]
    assert counts == {"Counted": 6, "Sorted": 3}


def test_a_window_begins_anew_with_those_that_count_its_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unsortable(monkeypatch)
    text = """
    define stream S (k string, o object);
    define window W (k string, o object) timeBatch(1 sec);
    from S select k, o insert into W;
    @info(name = 'sorted') from W select k, o order by o insert into Sorted;
    @info(name = 'sum') from W select count() as n insert into Counted;
    """
    _, errors = put_out(tmp_path, text, EVENTS)
    assert errors == [["", 2_000, [], f"query sum, window W: {DROPPED}"]]


def test_what_an_on_demand_query_raises_is_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = spec_of("define table T (k string, o object);")
    node = AppNode(("run", 0), spec)

    def failing(_: Any) -> Any:
        raise TypeError("no such order")

    monkeypatch.setattr(node.engine, "answer", failing)
    answers = node.answer(Ask(text="from T select k, o order by o"))
    assert answers[0] == QueryFailed("SiddhiRuntimeError", "The query cannot be answered: TypeError: no such order")


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (TypeError("not so"), "TypeError: not so"),
        (sa.exc.IntegrityError("INSERT", {}, Exception("too small")), "IntegrityError: (builtins.Exception) too small"),
        (sa.exc.OperationalError("INSERT", {}, Exception("gone")), None),
        (StoreError("The store is closed."), None),
        (OSError(28, "No space left on device"), None),
        (KeyboardInterrupt(), None),
    ],
)
def test_what_fails_with_events_is_reported(error: BaseException, why: str | None) -> None:
    file = io.BytesIO()
    with pytest.raises(type(error)), TrialReport(file).record(StepRange(3, 4), None, is_elsewhere):
        raise error
    outcome = TrialOutcome.of(file.getvalue().splitlines())
    if isinstance(error, KeyboardInterrupt):  # as if the process had ended
        assert outcome == TrialOutcome(suspect=Suspect(StepRange(3, 4)))
    else:
        assert outcome == TrialOutcome(suspect=None if why is None else Suspect(StepRange(3, 4)), why=why)


def test_what_is_set_aside_is_kept_with_the_reason(tmp_path: Path) -> None:
    care = BatchCare(skipped_steps=(Aside(StepRange(3, 4), "TypeError: not so"), Aside(StepRange(9, 12))), asks=(7,))
    care.write(tmp_path)
    assert BatchCare.of(tmp_path) == care
    assert care.why(StepRange(3, 4)) == "TypeError: not so"
    assert care.why(StepRange(10, 12)) == DIED
    assert care.why(StepRange(4, 9)) is None
