"""An engine host: a process that keeps the engines of one Spark partition of an app's run, and works for the worker
that Spark gives the partition to (`hosts.py`).

It works for one worker at a time: another that connects meanwhile, such as one of a later attempt, waits. It ends

- with the fork server, which has the other end of its lifeline;
- when its worker dies in the middle, since Spark kills a worker to end its work;
- after it has raised an error, as Spark's workers do: anything left in memory goes with it;
- after a minute without work, as Spark's workers do, if its engines are made again soon, or its app is gone; a host of
  an operator, whose end it does not learn, after ten;
- when the fork server learns that the run has ended.
"""

from __future__ import annotations

import os
import pickle
import select
import socket
import sys
import threading
from typing import Any

from ...journal import result_rows
from ..node_spec import NodeWork
from ..node_work import process_entries
from ..operator.operator_spec import OperatorSpec
from ..operator.operator_tasks import work_micro_batch
from .hosts import BEGUN, DONE, ENDED, GONE, RAISED, SMALL_STATE, STATE, Line, pack_error

IDLE_SECONDS = 60.0
_OPERATOR_IDLE = 10
"""The number of `IDLE_SECONDS` without work after which a host of an operator ends."""


class _State:
    """The state of a node, which the worker reads and writes. A `NodeState`."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def version(self) -> tuple[str, str] | None:
        value: tuple[str, str] | None = self._ask("version")
        return value

    def set_version(self, version: str, digests: str) -> None:
        self._ask("set_version", version, digests)

    def piece(self, digest: str) -> bytes | None:
        value: bytes | None = self._ask("piece", digest)
        return value

    def put_piece(self, digest: str, piece: bytes) -> None:
        self._ask("put_piece", digest, piece)

    def remove_piece(self, digest: str) -> None:
        self._ask("remove_piece", digest)

    def _ask(self, method: str, *arguments: Any) -> Any:
        self._line.send((STATE, method, arguments))
        good, answer = self._line.receive()
        if not good:
            raise pickle.loads(answer)
        return answer


class Host:
    """The host's loop. `listener`: where workers connect; `lifeline`: closed at the other end by the server's end."""

    def __init__(self, listener: socket.socket, lifeline: socket.socket) -> None:
        self.listener, self.lifeline = listener, lifeline
        self._digest = b""
        self._work: NodeWork | OperatorSpec | None = None
        self._sizes: dict[int, int] = {}
        """Bytes of state by node."""
        self._works_for: socket.socket | None = None

    def serve(self) -> None:
        """Works for workers, one after the other, until it has to end."""
        waits = select.poll()
        waits.register(self.listener, select.POLLIN)
        waits.register(self.lifeline, 0)  # poll always tells of its end
        idle_count = 0
        while True:
            events = dict(waits.poll(1000 * IDLE_SECONDS))
            idle_count = 0 if events else idle_count + 1
            if self.lifeline.fileno() in events or (not events and self._may_end(idle_count)):
                return
            if events:
                connection, _ = self.listener.accept()
                line = Line(connection)
                try:
                    if not self._serve(connection, line):
                        return
                finally:
                    line.close()

    def _may_end(self, idle_count: int) -> bool:
        if isinstance(self._work, NodeWork) and not self._work.folder.exists():
            return True
        is_forgotten = isinstance(self._work, OperatorSpec) and idle_count >= _OPERATOR_IDLE
        return is_forgotten or sum(self._sizes.values()) <= SMALL_STATE

    def _serve(self, connection: socket.socket, line: Line) -> bool:
        """Work for a worker; returns whether the host may continue."""
        # Before it says so, a worker that it cannot work for asks for another host; from then on both end together.
        try:
            digest = line.receive()
            line.send((BEGUN, digest != self._digest))
            data = line.receive() if digest != self._digest else None
        except GONE:
            return True
        self._works_for = connection
        threading.Thread(target=self._watch, args=(connection, connection.dup()), daemon=True).start()
        try:
            while (request := line.receive()) is not None:
                kind, what = self._work_off(line, digest, data, *request)
                line.send((kind, what))
                if kind != DONE:
                    return False
                data = None
            self._works_for = None
            line.send((ENDED,))
        except GONE:  # the worker has died just now
            return False
        finally:
            self._works_for = None
        return True

    def _work_off(self, line: Line, digest: bytes, data: bytes | None, key: int, message: Any) -> tuple[str, Any]:
        """The result for a node, or the error, pickled. `data`: the work, if it has changed."""
        try:
            if data is not None:
                self._work, self._digest = pickle.loads(data), digest
            return DONE, self._work_on(_State(line), key, message)
        except BaseException as error:
            return RAISED, pack_error(error)

    def _work_on(self, state: _State, key: int, message: Any) -> Any:
        """The rows of a node of an app, by columns; of a node of an operator a `MicroBatchResult`."""
        if isinstance(self._work, OperatorSpec):
            result = work_micro_batch(self._work, state, key, *message)
            self._sizes[key] = result.state_bytes
            return result
        assert self._work is not None
        rows = process_entries(self._work, state, key, result_rows.from_columns(message))
        for row in rows:
            if isinstance(row, result_rows.NodeDone):
                self._sizes[key] = row.report.state_bytes
        return result_rows.to_columns(rows)

    def _watch(self, connection: socket.socket, connection_copy: socket.socket) -> None:
        """Ends this process when the worker, or the server, dies while it works for that worker. Waits on a copy of the
        connection, which the loop cannot close."""
        with connection_copy:
            waits = select.poll()
            for end in (connection_copy, self.lifeline):
                waits.register(end, 0)
            waits.poll()
            if self._works_for is connection:
                os._exit(1)


def main(listener: int, lifeline: int) -> None:
    """The process, with the files that the fork server made."""
    with socket.socket(fileno=listener) as listens, socket.socket(fileno=lifeline) as lives:
        Host(listens, lives).serve()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
