"""Which nodes a micro-batch leaves out, as the commit writes it down and the planner reads it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sparkstream_nb.engine.state.node_batch import InputBatch
from sparkstream_nb.journal.batch_planning import Planner, TaskShare
from sparkstream_nb.journal.entries import Ask
from sparkstream_nb.journal.inbox import Inbox
from sparkstream_nb.journal.resting import forget_resting, may_rest, write_resting
from sparkstream_nb.journal.result_rows import NodeReport
from sparkstream_nb.retention import Retention


def report(due: int | None, *, rests: bool = True) -> NodeReport:
    return NodeReport("n", 1.0, False, 10, {}, due=due, rests=rests)


REPORTS = {0: report(None), 1: report(500), 2: report(900), 3: report(None, rests=False)}


def test_a_node_rests_until_something_is_due(tmp_path: Path) -> None:
    write_resting(tmp_path, 7, REPORTS)
    assert may_rest(tmp_path, 7, 499) == {0, 1, 2}
    assert may_rest(tmp_path, 7, 500) == {0, 2}
    assert may_rest(tmp_path, 7, 1000) == {0}


def test_what_is_of_another_place_is_not_taken(tmp_path: Path) -> None:
    assert may_rest(tmp_path, 7, 0) == frozenset()
    write_resting(tmp_path, 7, REPORTS)
    assert may_rest(tmp_path, 8, 0) == may_rest(tmp_path, 6, 0) == frozenset()
    forget_resting(tmp_path)
    assert may_rest(tmp_path, 7, 0) == frozenset()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"seq": 7}', '{"seq": 7, "due": {"a": 1}}', '{"seq": 7, "due": 3}'])
def test_a_file_that_is_not_whole_lets_all_work(tmp_path: Path, text: str) -> None:
    (tmp_path / "resting.json").write_text(text)
    assert may_rest(tmp_path, 7, 0) == frozenset()


def test_only_a_micro_batch_of_one_share_without_a_query_leaves_nodes_out(tmp_path: Path) -> None:
    inbox, planner = Inbox(tmp_path), Planner.of(tmp_path, Retention(), work=True)

    def shares() -> list[TaskShare]:
        write_resting(tmp_path, start["seq"], REPORTS)
        end = planner.latest(start, 1_000_000)
        found = planner.shares(start, end)
        start.update(end)
        return list(found)

    start = dict(planner.beginning)
    inbox.append([inbox.batch(InputBatch(np.arange(400, 402)), "round_robin")])
    assert [s.resting for s in shares()] == [{0, 1, 2}]
    inbox.append([inbox.batch(InputBatch(np.arange(400, 600)), "round_robin")])
    assert [s.resting for s in shares()] == [{0, 2}]
    inbox.append([inbox.batch(InputBatch(np.arange(600, 602)), "round_robin"), Ask(text="from T select *")])
    assert [s.resting for s in shares()] == [frozenset()]
    for _ in range(2):
        inbox.append([inbox.batch(InputBatch(np.full(200_000, 602)), "round_robin")])
    assert [s.resting for s in shares()] == [frozenset()] * 2
