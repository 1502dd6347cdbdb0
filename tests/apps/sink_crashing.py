"""Runs an app with sinks and kills itself, with its JVM, at a given place of a delivery. A program for tests.

sink_crashing.py HOME OUT URL PLACE [BROKER TOPIC], PLACE one of: between (the outputs are committed, and none is
delivered), writing (half of the bytes are in the file), written (all of them, the position is not kept), posted (a
request is answered, the position is not kept), batch (half of a micro-batch's file), produced (records are in the
topic, the position is not kept), faulted (an event that the server refused is in the journal for the fault stream, the
position is not kept).
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.apps.crashing import die

ROWS, BATCHES = 40, 5
DEPLOYED: dict[str, Any] = {"name": "sinks", "nodes": 2, "mode": "active-active", "routing": "hash:k"}


def app_text(out: Path, url: str, broker: str = "", topic: str = "") -> str:
    """The app: its alerts go to a file, to a folder and to a server, and to a topic if there is a broker."""
    kafka = f"@sink(type='kafka', bootstrap.servers='{broker}', topic='{topic}', key='{{{{k}}}}', @map(type='csv'))"
    return f"""
define stream S (k string, v int);
@sink(type='file', file.uri='{out}/alerts.csv', @map(type='csv', header='true'))
@sink(type='file', file.uri='{out}/batches/', @map(type='json'))
@OnError(action='STREAM')
@sink(type='http', publisher.url='{url}', on.error='STREAM', @map(type='csv'))
{kafka if broker else ""}
define stream Alerts (k string, v int);
from S#window.length(1) select k, v insert into Alerts;
from !Alerts select k, v insert into Failed;
"""


def allowed(out: Path, url: str, broker: str = "") -> list[str]:
    return [f"file={out}", f"http={url}", *([f"kafka={broker}"] if broker else [])]


def work(app: Any) -> None:
    """Sends what is not in the app yet, a micro-batch after the other."""
    for number in range(app.runtime.inbox.position.events.get("S", 0) // ROWS, BATCHES):
        app.send("S", [[f"k{i % 7}", i] for i in range(number * ROWS, (number + 1) * ROWS)])
        app.flush()


def main(home: str, out: str, url: str, place: str, broker: str = "", topic: str = "") -> None:
    from sparkstream_nb.app import deploy
    from sparkstream_nb.app.running.undelivered import FaultStreams
    from sparkstream_nb.sinks import file_sink
    from sparkstream_nb.sinks.delivery import Delivery
    from sparkstream_nb.sinks.http_sink import HttpTarget
    from sparkstream_nb.sinks.kafka_sink import KafkaTarget
    from tests.apps.programs import master

    posts = [0]
    portion, write, send = Delivery._portion, file_sink._write, HttpTarget.send
    save, produce, fault = Delivery._save, KafkaTarget.send, FaultStreams.__call__

    def portion_of(self: Any, batch: int, *rest: Any) -> None:
        if place == "between" and batch >= 1:
            threading.Event().wait()  # the app goes on, and is killed when all is committed
        portion(self, batch, *rest)

    def write_to(file: int, data: bytes, at: int) -> None:
        whole_batch = data.startswith(b"[")
        if place == ("batch" if whole_batch else "writing") and str(ROWS).encode() in data:
            write(file, data[: len(data) // 2], at)
            os.fsync(file)
            die()
        write(file, data, at)

    def send_to(self: Any, messages: Sequence[Any], at: Any) -> int:
        sent = send(self, messages, at)
        posts[0] += 1
        if place == "posted" and posts[0] == ROWS + 7:
            die()
        return sent

    def produce_to(self: Any, messages: Sequence[Any], places: Sequence[Any]) -> int:
        sent = produce(self, messages, places)
        if place == "produced" and places[0].batch == 1:
            die()
        return sent

    def fault_to(self: Any, setup: Any, at: Any, *rest: Any) -> bool:
        done = fault(self, setup, at, *rest)
        if place == "faulted" and at.batch == 1:
            die()
        return done

    def save_to(self: Any, position: Any) -> None:
        if place == "written" and self.setup.name == "Alerts-file-1" and position.sent > ROWS:
            die()
        save(self, position)

    Delivery._portion = portion_of  # type: ignore[method-assign]
    Delivery._save = save_to  # type: ignore[method-assign]
    file_sink._write = write_to
    HttpTarget.send = send_to  # type: ignore[method-assign]
    KafkaTarget.send = produce_to  # type: ignore[method-assign]
    FaultStreams.__call__ = fault_to  # type: ignore[method-assign]
    text, allow = app_text(Path(out), url, broker, topic), allowed(Path(out), url, broker)
    app = deploy(text, home=Path(home), allow=allow, master=master(), **DEPLOYED)
    work(app)
    if place == "between":
        die()
    app.drain(60)


if __name__ == "__main__":
    main(*sys.argv[1:])
