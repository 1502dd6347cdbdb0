"""Engine hosts: an engine stays where it is, whichever worker works for its partition, and either ends with the
other."""

from __future__ import annotations

import contextlib
import itertools
import operator
import os
import pickle
import socket
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pytest

from sparkstream_nb.app import deploy
from sparkstream_nb.engine.state.node_batch import InputBatch, StreamRows
from sparkstream_nb.errors import Misuse
from sparkstream_nb.journal import result_rows
from sparkstream_nb.journal.entries import to_json
from sparkstream_nb.journal.inbox import Inbox
from sparkstream_nb.journal.journal import entries_from
from sparkstream_nb.plan import compile_app
from sparkstream_nb.runners.node_spec import NodeSpec, NodeWork
from sparkstream_nb.runners.operator.operator_spec import InputFrame, OperatorRequest, OperatorSpec, plan_operator
from sparkstream_nb.runners.spark import forks, frames, hosts
from sparkstream_nb.runners.spark.host import Host
from sparkstream_nb.runners.spark.hosts import Columns, HostPlace, Line, PackedWork
from sparkstream_nb.runners.spark.settings import check_master

APP = "define stream S (k string, v int); from S#window.length(3) select k, sum(v) as s insert into O;"
_runs = itertools.count()


class State:
    """A node's state in this process. `asked`: how often it was asked for a piece."""

    def __init__(self) -> None:
        self.found: tuple[str, str] | None = None
        self.pieces: dict[str, bytes] = {}
        self.asked = 0

    def version(self) -> tuple[str, str] | None:
        return self.found

    def set_version(self, version: str, digests: str) -> None:
        self.found = version, digests

    def piece(self, digest: str) -> bytes | None:
        self.asked += 1
        return self.pieces.get(digest)

    def put_piece(self, digest: str, piece: bytes) -> None:
        self.pieces[digest] = piece

    def remove_piece(self, digest: str) -> None:
        del self.pieces[digest]


class Died(BaseException):
    """What a worker does in place of ending."""


class Node:
    """A node with its inbox and state, which this process works for as a worker of Spark's."""

    def __init__(self, folder: Path, run: str) -> None:
        self.folder, self.run, self.state = folder, run, State()
        self.spec = NodeSpec(0, "node-1", pickle.dumps(compile_app(APP)))
        self.inbox = Inbox(folder)
        self.taken = 0

    def given(self, value: int) -> Columns:
        """The rows that Spark brings of a micro-batch with one event."""
        at = np.array([1000 + self.taken], np.int64)
        columns: list[Any] = [pa.array(["a"]), pa.array([value], pa.int32())]
        batch = InputBatch(at, {"S": StreamRows(np.zeros(1, np.int64), at, columns)})
        self.inbox.append([self.inbox.batch(batch, "round_robin")])
        found = [e for e, _ in entries_from(self.folder)][self.taken :]
        self.taken += len(found)
        return result_rows.to_columns([result_rows.Entries(0, found[0].seq, found[-1].seq, to_json(found))])

    def work(self, **named: Any) -> PackedWork[NodeWork]:
        return PackedWork.of(self.run, NodeWork(self.run, {0: self.spec}, self.folder, **named))

    def take(self, value: int, **named: Any) -> tuple[list[int], bool]:
        """The sums that come out of an event, and whether the engine was restored."""
        return self.results(self.given(value), **named)

    def results(self, given: Columns, **named: Any) -> tuple[list[int], bool]:
        assert hosts.folder is not None
        found = hosts.work_in_host(HostPlace(hosts.folder, 0), self.work(**named), self.state, 0, given)
        assert found is not None
        out = result_rows.from_columns(found)
        (mark,) = [r for r in out if isinstance(r, result_rows.NodeDone)]
        sums = [s for r in out if isinstance(r, result_rows.StreamEvents) for s in r.table()["s"].to_pylist()]
        return sums, mark.report.restored

    @property
    def address(self) -> Path:
        assert hosts.folder is not None
        return hosts.folder / f"{hosts.prefix(self.run)}0"


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    forks.start()
    monkeypatch.setattr(hosts, "folder", forks.folder())

    def die() -> None:
        raise Died

    monkeypatch.setattr(hosts, "_die", die)
    run = f"{os.getpid()}-{next(_runs)}"
    yield Node(tmp_path, run)
    hosts.end(forks.folder(), run)


def ended(process: psutil.Process, seconds: float = 10) -> bool:
    """Whether a process, not a child of this one, ends within `seconds`."""
    end = time.monotonic() + seconds
    with contextlib.suppress(psutil.NoSuchProcess):  # it ends between two questions
        while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            if time.monotonic() > end:
                return False
            time.sleep(0.01)
    return True


def host_of(node: Node) -> psutil.Process:
    """The process of the node's host: the one child of the fork server whose files have its socket."""
    assert forks._running is not None
    server = psutil.Process(forks._running[0].pid)
    (found,) = [
        p for p in server.children() if any(c.laddr == str(node.address) for c in p.net_connections(kind="unix"))
    ]
    return found


def test_an_engine_stays_where_it_is_for_other_workers(node: Node) -> None:
    """Each micro-batch is another connection, as of another worker."""
    assert [node.take(v) for v in (1, 2, 3, 4)] == [([1], False), ([3], False), ([6], False), ([9], False)]
    assert node.state.asked == 0


def test_a_state_that_is_not_the_engines_is_restored(node: Node) -> None:
    """A micro-batch that a worker carried through elsewhere, or that Spark threw away."""
    node.take(1)
    before, pieces = node.state.found, dict(node.state.pieces)
    given = node.given(2)
    assert node.results(given) == ([3], False)
    node.state.found, node.state.pieces = before, pieces
    assert node.results(given) == ([3], True)


def test_a_host_that_was_killed_is_replaced(node: Node) -> None:
    node.take(1)
    host = host_of(node)
    host.kill()
    assert ended(host)
    assert node.take(2) == ([3], True)
    assert node.take(3) == ([6], False)


def test_a_worker_ends_as_its_host_does(node: Node) -> None:
    """As where an event ends its process."""
    node.take(1)
    given = node.given(2)
    with pytest.raises(Died):
        node.results(given, check=os.abort)
    assert node.results(given) == ([3], True)


def test_a_host_ends_where_its_worker_does_not_leave_it(node: Node) -> None:
    """As where Spark ends a worker between two nodes of its partition."""
    assert hosts.folder is not None
    host = hosts.connect_host(HostPlace(hosts.folder, 0), node.work())
    assert host is not None
    host.work(node.state, 0, node.given(1))
    process = host_of(node)
    host.__exit__(KeyboardInterrupt)
    assert ended(process)
    assert node.take(2) == ([3], True)


def test_a_host_works_for_several_nodes_of_one_worker(node: Node) -> None:
    assert hosts.folder is not None
    work = PackedWork.of(node.run, NodeWork(node.run, {0: node.spec, 5: node.spec}, node.folder))
    other, sums = State(), []
    for value in (1, 2):
        given = node.given(value)
        host = hosts.connect_host(HostPlace(hosts.folder, 0), work)
        assert host is not None
        with host:
            for key, state in ((0, node.state), (5, other)):
                rows = result_rows.from_columns(host.work(state, key, given))
                sums += [s for r in rows if isinstance(r, result_rows.StreamEvents) for s in r.table()["s"].to_pylist()]
    assert sums == [1, 1, 3, 3]


def test_results_of_nodes_are_in_one_frame_while_they_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "FRAME_BYTES", 100)
    sizes = [40, 50, 30, 200, 1]
    results = [result_rows.to_columns([result_rows.NodePart(i, 0, 0, 1, b"x" * n)]) for i, n in enumerate(sizes)]
    assert [frame["node"].tolist() for frame in frames._frames_of(results)] == [[0, 1, 2], [3], [4]]


def test_a_host_ends_as_its_worker_does(node: Node) -> None:
    """As where Spark ends the work of a query that is stopped."""
    node.take(1)
    given, host = node.given(2), host_of(node)
    work = node.work(check=partial(time.sleep, 600))
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(node.address))
        line = Line(connection)
        line.send(work.digest)
        assert line.receive() == (hosts.BEGUN, True)
        line.send(work.data)
        line.send((0, given))
        assert line.receive()[:2] == (hosts.STATE, "version")
        line.send((True, node.state.version()))
        line.close()
    assert ended(host)
    assert node.results(given) == ([3], True)


@pytest.mark.parametrize(
    ("check", "error", "said"),
    [
        (partial(operator.truediv, 1, 0), ZeroDivisionError, "^division by zero$"),
        (partial(PackedWork.unpack, None), AttributeError, "has no attribute 'data'"),
        (partial(check_master, "nowhere"), Misuse, "'nowhere' is not the address of a Spark"),
    ],
)
def test_an_error_is_raised_in_the_worker(
    check: Callable[[], None], error: type[Exception], said: str, node: Node
) -> None:
    node.take(1)
    given, host = node.given(2), host_of(node)
    with pytest.raises(error, match=said):
        node.results(given, check=check)
    assert ended(host), "as a worker of Spark's after an error"
    assert node.results(given) == ([3], True)


def test_an_error_of_the_state_is_raised_in_the_worker(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(node.state, "put_piece", failing)
    with pytest.raises(OSError, match="No space left on device"):
        node.take(1)


def test_what_cannot_be_pickled_is_told_as_text() -> None:
    class Local(Exception):
        pass

    found = pickle.loads(hosts.pack_error(Local("here")))
    assert (type(found), str(found)) == (RuntimeError, "Local: here")


def test_hosts_end_with_the_run(node: Node) -> None:
    node.take(1)
    host = host_of(node)
    hosts.end(forks.folder(), "another")
    assert node.take(2) == ([3], False)
    hosts.end(forks.folder(), node.run)
    assert ended(host)
    assert not node.address.exists()


def test_a_host_without_work_ends_where_its_state_is_small_or_its_app_gone(tmp_path: Path) -> None:
    listener, lifeline = socket.socketpair()
    with listener, lifeline:
        host = Host(listener, lifeline)
        host._work = NodeWork("run", {}, tmp_path)
        assert host._may_end(1)
        host._sizes[0] = 100_000_000
        assert not host._may_end(1)
        assert not host._may_end(100)
        host._work = NodeWork("run", {}, tmp_path / "gone")
        assert host._may_end(1)
        host._work = operator_spec()
        assert not host._may_end(9)
        assert host._may_end(10)


def test_without_a_server_the_worker_works(node: Node, tmp_path: Path) -> None:
    assert hosts.work_in_host(HostPlace(tmp_path, 0), node.work(), node.state, 0, node.given(1)) is None


def operator_spec() -> OperatorSpec:
    frame = InputFrame("S", {"at": "timestamp", "k": "string", "v": "int"}, "at", None)
    return plan_operator("spec", APP.partition(";")[2], [frame], OperatorRequest())


@pytest.mark.timeout(120)
def test_an_app_on_spark_keeps_its_engines_until_it_stops(spark: object, tmp_path: Path) -> None:
    text = "define stream S (k string, v int); from S#window.length(3) select k, v insert into O;"
    app = deploy(text, name="hosted", home=tmp_path / "home", nodes=4)
    folder = forks.folder()
    assert folder is not None
    of_run = f"{hosts.prefix(app.runtime.stream.job.run)}*"
    for v in range(6):
        app.send("S", [[f"k{k}", v] for k in range(8)], at=1000 + v)
        app.flush()
        assert not any(n.restored for n in app.runtime.progress.nodes.values())
    assert len(app.output("O")) == 48
    assert len(list(folder.glob(of_run))) == 2, "local[2] has two partitions"
    app.stop()
    assert not list(folder.glob(of_run))
