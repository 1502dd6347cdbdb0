"""What Spark Connect hands over: its owner commits each micro-batch once, wherever one of the two was killed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from sparkstream_nb.journal import result_rows
from sparkstream_nb.journal.checkpoints import SparkCheckpoint
from sparkstream_nb.journal.journal import COLUMNS
from sparkstream_nb.journal.result_codec import to_ipc
from sparkstream_nb.journal.shared import Shared
from sparkstream_nb.outputs.commit import Commit, CommittedRun, Progress
from sparkstream_nb.outputs.output_files import OutputFiles
from sparkstream_nb.plan import compile_app
from sparkstream_nb.runners.spark.handover import CommittedUpTo, ConnectIntake, clear, left
from sparkstream_nb.stores import DuckDBStore

PLAN = compile_app("define stream S (v int);")


class Owner:
    """An app's owner, in the folder `home` with its store; another one in the same folder is the next process."""

    def __init__(self, home: Path, shared: Shared | None) -> None:
        self.home, self.shared = home, shared
        self.store = DuckDBStore(home / "store.duckdb")
        self.progress = Progress()
        run = CommittedRun("app", "run", ["n"], PLAN)
        commit = Commit(run, self.store, OutputFiles(home / "out", ["n"]), self.progress)
        self.intake = ConnectIntake(home, shared, commit)
        self.progress.batch, self.progress.last = self.intake.position.batch, self.intake.position.last

    def hand(self, batch: int) -> None:
        """What the server does: a micro-batch of ten entries, with an error in it, becomes a file."""
        mark = result_rows.NodeDone(0, 10 * batch, 10 * batch + 9, 10, result_rows.NodeReport("n", 1.0, False, 0, {}))
        error = result_rows.Errors(0, 10 * batch, 10 * batch + 9, 1, b'["S", 1, [null], "no"]\n')
        columns = dict(zip(COLUMNS, map(list, zip(*map(result_rows.encode, [error, mark]), strict=True)), strict=True))
        self.intake.files.put(f"handed/{batch:012d}.arrows", to_ipc(pa.table(columns, schema=result_rows.ARROW_SCHEMA)))

    def errors(self) -> int:
        return self.store.errors("app").num_rows


@pytest.fixture(params=["a folder", "an address"])
def owner(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Owner]:
    shared = None if request.param == "a folder" else Shared((tmp_path / "meeting").as_uri())
    (tmp_path / "home").mkdir()
    found: list[Owner] = []

    def next_process() -> Owner:
        for before in found:
            before.store.close()
        found.append(Owner(tmp_path / "home", shared))
        return found[-1]

    return next_process


def test_each_is_committed_once_and_goes(owner: Callable[[], Owner]) -> None:
    first = owner()
    first.hand(0)
    first.hand(1)
    assert left(first.home, first.shared) == [0, 1]
    first.intake.take()
    assert (first.progress.batch, first.progress.last, first.errors()) == (1, 19, 2)
    assert left(first.home, first.shared) == []
    assert [f for f in first.intake.files.names("handed") if f.endswith("arrows")] == []
    again = owner()
    assert (again.progress.batch, again.progress.last) == (1, 19)
    again.hand(2)
    again.intake.take()
    assert (again.progress.last, again.errors()) == (29, 3)


def test_one_that_cannot_be_removed_is_taken_all_the_same(
    owner: Callable[[], Owner], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where an object's server has removed it, and then answers no more."""
    first = owner()
    first.hand(0)

    def remove(files: object, *names: str) -> None:
        raise OSError("no answer")

    with monkeypatch.context() as patched:
        patched.setattr(type(first.intake.files), "remove", remove)
        with pytest.raises(OSError, match="no answer"):
            first.intake.take()
    first.hand(1)
    first.intake.take()
    assert (first.progress.last, first.errors()) == (19, 2)


def test_what_another_spark_did_meanwhile_is_committed(owner: Callable[[], Owner]) -> None:
    """The app ran on this machine between two deployments over Connect: its checkpoint tells how far."""
    first = owner()
    first.hand(0)
    first.intake.take()
    checkpoint = SparkCheckpoint.of(first.home, first.shared)
    for log in ("offsets", "commits"):
        checkpoint.files.put(f"{log}/4", b'v1\n{}\n{"seq": 50, "at": 900, "skip": 0}')
    first.hand(3)
    clear(first.home, first.shared)
    assert left(first.home, first.shared) == []
    again = owner()
    assert (again.progress.batch, again.progress.last) == (4, 49)
    again.hand(5)
    again.intake.take()
    assert (again.progress.last, again.errors()) == (59, 2)


def test_one_that_comes_again_is_not_left(owner: Callable[[], Owner]) -> None:
    """A server that is killed before it notes a micro-batch as done hands it over once more."""
    first = owner()
    first.hand(0)
    first.intake.take()
    first.hand(0)
    assert left(first.home, first.shared) == []
    again = owner()
    assert [f for f in again.intake.files.names("handed") if f.endswith("arrows")] == []
    again.hand(1)
    again.intake.take()
    assert (again.progress.last, again.errors()) == (19, 2)


def test_an_owner_that_is_killed_before_its_note_takes_it_again(owner: Callable[[], Owner]) -> None:
    """So it is with the last file of a version that left that in place, without a note."""
    first = owner()
    for batch in range(3):
        first.hand(batch)
    first.intake.take()
    first.hand(2)
    (first.home / "taken.json").write_text('{"batch": ')
    again = owner()
    assert again.intake.position == CommittedUpTo()
    assert left(again.home, again.shared) == [2]
    again.intake.take()
    assert (again.progress.last, again.errors()) == (29, 3)
