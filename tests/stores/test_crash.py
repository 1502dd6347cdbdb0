"""A process that dies in the middle of a commit leaves the store as it was before."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from sparkstream_nb.errors import StoreError
from sparkstream_nb.plan.nodes import DURATIONS
from sparkstream_nb.stores import DuckDBStore
from sparkstream_nb.stores.store_protocol import BatchKey

from .trades import NOON, partials_of, plan_of, rows_of

A = "TradeAggregation"
ALWAYS = (-(2**62), 2**62)

PROGRAM = textwrap.dedent(
    """
    import os, signal, sys
    sys.path.insert(0, sys.argv[1])
    from trades import NOON, partials_of, plan_of
    from sparkstream_nb.stores import DuckDBStore
    from sparkstream_nb.stores.store_protocol import BatchKey

    class Dying(DuckDBStore):
        merges = 0

        def __init__(self, path, last):
            super().__init__(path)
            self.last = last

        def _merge(self, c, layout, duration, rows):
            super()._merge(c, layout, duration, rows)
            self.merges += 1
            if self.merges == self.last:
                os.kill(os.getpid(), signal.SIGKILL)

    plan = plan_of()
    partials = {("TradeAggregation", "node-1"): partials_of(plan, [["x", 1.0, 5, NOON]])}

    def work(merges):
        store = Dying(f"{sys.argv[2]}/{merges}.duckdb", merges)
        store.prepare(plan.aggregations.values())
        for batch in range(3):
            store.commit(BatchKey("app", "run", batch), partials)
        os.kill(os.getpid(), signal.SIGKILL)

    for merges in sys.argv[3:]:
        child = os.fork()
        if not child:
            try:
                work(int(merges))
            finally:
                os._exit(1)
        print(merges, os.waitpid(child, 0)[1], flush=True)
    """
)
MERGES = (1, 6, 9, 14, 99)


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What processes left that died after so many merges, or after all: a file for each. They are forks of one, as to
    load the engine takes longer than all else."""
    folder = tmp_path_factory.mktemp("died")
    command = [sys.executable, "-c", PROGRAM, str(Path(__file__).parent), str(folder), *map(str, MERGES)]
    done = subprocess.run(command, timeout=250, check=False, capture_output=True, text=True)
    died = {int(line.split()[0]): os.waitstatus_to_exitcode(int(line.split()[1])) for line in done.stdout.splitlines()}
    assert died == dict.fromkeys(MERGES, -signal.SIGKILL), done.stderr
    return folder


@pytest.mark.parametrize("merges", MERGES)
def test_killed_in_the_middle(left: Path, merges: int) -> None:
    """Six tables are merged in each of three batches; the process dies after `merges` of them, or after all."""
    path = left / f"{merges}.duckdb"
    plan = plan_of()
    store = DuckDBStore(path)
    store.prepare(plan.aggregations.values())
    committed = min(3, (merges - 1) // 6)
    # Spark repeats the batch that was not committed, and may repeat the one that was.
    for batch in range(max(0, committed - 1), 3):
        part = partials_of(plan, [["x", 1.0, 5, NOON]])
        assert store.commit(BatchKey("app", "run", batch), {(A, "node-1"): part}) is (batch >= committed)
    for d in DURATIONS:
        (row,) = rows_of(store.read(A, d, *ALWAYS))
        assert (row["AGG_SUM_quantity"], row["AGG_COUNT_price"]) == (15, 3)
    store.close()


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "x.duckdb"
    path.write_text("this is not a database, and it is long enough to be looked at" * 100)
    said = r"x\.duckdb cannot be used: .*not a valid DuckDB database file\. If it is damaged"
    with pytest.raises(StoreError, match=said):
        DuckDBStore(path)
