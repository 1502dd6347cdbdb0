"""Deliveries over an app's outputs without Spark: merged and dropped outputs, targets that are away, positions."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkstream_nb.engine.columnar.column_data import ARROW
from sparkstream_nb.engine.state.node_batch import Emitted
from sparkstream_nb.errors import SparkStreamError
from sparkstream_nb.journal.result_codec import emitted_table, to_ipc
from sparkstream_nb.journal.result_rows import StreamEvents
from sparkstream_nb.mapping import Message
from sparkstream_nb.outputs import merging
from sparkstream_nb.outputs.commit import Progress
from sparkstream_nb.outputs.merging import Merging
from sparkstream_nb.outputs.output_files import OutputFiles
from sparkstream_nb.plan.connectors.mapping import CsvSink, JsonSink, SinkMapping, Template, XmlSink
from sparkstream_nb.retention import Retention
from sparkstream_nb.sinks import delivery as delivery_module
from sparkstream_nb.sinks import file_sink
from sparkstream_nb.sinks.delivery import FIRST_PAUSE, LONGEST_PAUSE, Delivery, DeliverySource, SinkSetup, windows
from sparkstream_nb.sinks.file_sink import FILE_NAME, FilePlace, GrowingFile, NamedFiles
from sparkstream_nb.sinks.position import SinkPosition, read_position, write_position
from sparkstream_nb.sinks.sink_messages import MessageWriter, UnwrittenEvents
from sparkstream_nb.sinks.target import OutputPlace, TargetUnavailable, Undeliverable
from sparkstream_nb.sinks.turns import AT_ONCE, Turns
from sparkstream_nb.types import Attribute, Schema, Type

SCHEMA = Schema((Attribute("v", Type.INT),))
CSV = SinkMapping(CsvSink((0,)), (), False)
JSON = SinkMapping(JsonSink(), (("", Template((0,))),), True)
"""The events of a step as a list of their values."""


class Kept:
    """A target in memory. `answer` may raise for a message."""

    by_batch, at_start, at_once = False, False, 1
    warnings: Sequence[str] = ()
    templates: Mapping[str, str] = {}

    def __init__(self, answer: Callable[[bytes], None] = lambda body: None) -> None:
        self.answer, self.got, self.places = answer, list[bytes](), list[OutputPlace]()

    def open(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        return {}

    def send(self, messages: Sequence[Message], places: Sequence[OutputPlace]) -> int:
        body = messages[0].body.removesuffix(b"\n")
        self.answer(body)
        self.got.append(body)
        self.places.append(places[0])
        return 1

    def finish(self, batch: int) -> None: ...

    def state(self) -> Mapping[str, Any]:
        return {}

    def close(self) -> None: ...

    def cancel(self) -> None: ...


class Outputs:
    """The outputs of an app on one node, written a micro-batch at a time."""

    def __init__(self, folder: Path, retention: Retention | None = None) -> None:
        self.files = OutputFiles(folder / "outputs", ["node-1"])
        self.progress, self.errors = Progress(), list[Sequence[Any]]()
        self.merging = Merging(self.files, retention or Retention())
        self.faults, self.busy = list[tuple[OutputPlace, list[int], str]](), 0
        self.source = DeliverySource(self.files, self.progress, self.keep, self.fault, folder / "sinks")

    def keep(self, sink: str, place: OutputPlace, errors: Sequence[Sequence[Any]]) -> None:
        self.errors += [(place, *error) for error in errors]

    def fault(self, setup: SinkSetup, place: OutputPlace, events: pa.Table, reason: str) -> bool:
        self.busy -= 1
        if self.busy < 0:
            self.faults.append((place, events.column("v").to_pylist(), reason))
        return self.busy < 0

    def put(self, batch: int, values: Sequence[int], steps: Sequence[int] | None = None) -> None:
        n = len(values)
        column = pa.array(values, pa.int32())
        emitted = Emitted(
            ("v",), np.arange(n) if steps is None else np.array(steps), np.full(n, 1_000 + batch, np.int64), [column]
        )
        blob = to_ipc(emitted_table(emitted, 0))
        self.files.write(batch, {"O": [StreamEvents(0, batch, batch, "O", n, blob)]})
        with self.progress.changed:
            self.progress.batch = batch
            self.progress.changed.notify_all()
        self.merging.note_commit(batch, {"O": n})

    def setup(self, target: Any, on_error: str = "LOG", mapping: SinkMapping = CSV) -> SinkSetup:
        writer = MessageWriter(mapping, SCHEMA, target.templates)
        return SinkSetup("O-1", "O", "test", "memory", "", on_error, writer, target)


@pytest.fixture
def outputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Outputs:
    monkeypatch.setattr(merging, "TOGETHER", 4)
    return Outputs(tmp_path)


def delivered(delivery: Delivery, batch: int) -> None:
    """Runs a delivery until it is through with a micro-batch."""
    import time

    delivery.start()
    assert delivery.drain(batch, time.monotonic() + 60)
    delivery.join()


def numbers(first: int, count: int) -> list[bytes]:
    return [str(i).encode() for i in range(first, first + count)]


def test_it_finds_its_place_in_merged_files(outputs: Outputs) -> None:
    target = Kept()
    delivery = Delivery(outputs.setup(target), outputs.source, 0)
    outputs.put(0, [0, 1, 2])
    delivered(delivery, 0)
    write_position(outputs.source.folder / "O-1.json", SinkPosition(1, 1, sent=3))
    for batch in range(1, 12):
        outputs.put(batch, [10 * batch, 10 * batch + 1])
    assert any(f.node is None for f in outputs.files.files("O"))
    assert len(outputs.files.files("O")) < 12
    delivery = Delivery(outputs.setup(target), outputs.source, 0)
    assert delivery.figures().pending == 21
    delivered(delivery, 11)
    assert target.got[3:] == [str(10 * b + i).encode() for b in range(1, 12) for i in (0, 1)][1:]
    assert delivery.figures().pending == 0
    assert delivery.figures().sent == 24


def test_outputs_that_are_dropped_before_they_are_sent_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "TOGETHER", 4)
    outputs = Outputs(tmp_path, Retention(outputs=1))
    target = Kept()
    delivery = Delivery(outputs.setup(target), outputs.source, 0)
    outputs.files.followers = [delivery]
    for batch in range(9):
        outputs.put(batch, [2 * batch, 2 * batch + 1])
    lost = delivery.figures()
    assert lost.dropped > 0
    assert lost.dropped + lost.pending == 18
    assert any("outputs were dropped before they were sent" in line for line in outputs.progress.logs)
    assert read_position(outputs.source.folder / "O-1.json") == delivery.position
    delivered(delivery, 8)
    assert target.got == numbers(lost.dropped, 18 - lost.dropped)
    assert delivery.figures().dropped == lost.dropped


def test_pauses_grow_and_a_target_that_is_back_gets_all(outputs: Outputs) -> None:
    pauses: list[float] = []

    def answer(body: bytes) -> None:
        if len(pauses) < 12:
            raise TargetUnavailable("it is away")

    target = Kept(answer)
    delivery = Delivery(outputs.setup(target), outputs.source, 0, wait=pauses.append)
    outputs.put(0, [0, 1])
    delivered(delivery, 0)
    assert target.got == numbers(0, 2)
    assert all(FIRST_PAUSE / 2 <= p <= LONGEST_PAUSE for p in pauses)
    assert max(pauses) > 5
    assert sum("it is away" in line for line in outputs.progress.logs) == 1
    assert delivery.figures().last_error is None


@pytest.mark.parametrize("on_error", ["LOG", "STORE"])
def test_what_is_refused(outputs: Outputs, on_error: str) -> None:
    def answer(body: bytes) -> None:
        if body == b"1":
            raise Undeliverable("no 1 here\r\nnor there")

    target = Kept(answer)
    delivery = Delivery(outputs.setup(target, on_error), outputs.source, 0)
    outputs.put(0, [0, 1, 2])
    delivered(delivery, 0)
    assert target.got == [b"0", b"2"]
    assert (delivery.figures().sent, delivery.figures().failed) == (2, 1)
    stored = [(OutputPlace(0, 1), "O", 1_000, [1], "sink O-1: no 1 here\r\nnor there")]
    assert outputs.errors == (stored if on_error == "STORE" else [])
    assert delivery.figures().last_error == "no 1 here nor there"


def test_on_error_wait_tries_for_ever(outputs: Outputs) -> None:
    tries = [0]

    def answer(body: bytes) -> None:
        tries[0] += 1
        if tries[0] < 5:
            raise Undeliverable("not yet")

    target = Kept(answer)
    delivered(Delivery(outputs.setup(target, "WAIT"), outputs.source, 0, wait=lambda s: None), -1)
    outputs.put(0, [7])
    delivery = Delivery(outputs.setup(target, "WAIT"), outputs.source, 0, wait=lambda s: None)
    delivered(delivery, 0)
    assert target.got == [b"7"]
    assert delivery.figures().failed == 0


def test_a_fault_of_a_target_does_not_end_the_delivery(outputs: Outputs) -> None:
    tries = [0]

    def answer(body: bytes) -> None:
        tries[0] += 1
        if tries[0] == 1:
            raise ZeroDivisionError

    target = Kept(answer)
    outputs.put(0, [7])
    delivered(Delivery(outputs.setup(target), outputs.source, 0, wait=lambda s: None), 0)
    assert target.got == [b"7"]


def test_a_new_sink_begins_with_the_next_outputs(outputs: Outputs) -> None:
    outputs.put(0, [0])
    target = Kept()
    delivery = Delivery(outputs.setup(target), outputs.source, 1)
    outputs.put(1, [1])
    delivered(delivery, 1)
    assert target.got == [b"1"]


def test_a_call_that_hangs_is_cut_off(outputs: Outputs) -> None:
    called, go = threading.Event(), threading.Event()

    class Hanging(Kept):
        def send(self, messages: Sequence[Message], places: Sequence[OutputPlace]) -> int:
            called.set()
            go.wait()
            raise TargetUnavailable("cut off")

        def cancel(self) -> None:
            go.set()

    delivery = Delivery(outputs.setup(Hanging()), outputs.source, 0)
    outputs.put(0, [0])
    delivery.start()
    assert called.wait(30)
    assert delivery.stop()
    assert delivery.position == SinkPosition(0, stream="O")


def test_positions_that_cannot_be_read(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    assert read_position(file) is None
    write_position(file, SinkPosition(3, 4, 5, 6, 7, {"x": 1}))
    assert read_position(file) == SinkPosition(3, 4, 5, 6, 7, {"x": 1})
    assert file.stat().st_mode & 0o77 == 0
    file.write_text(file.read_text()[:10])
    with pytest.raises(SparkStreamError, match="cut off or changed"):
        read_position(file)


# ----------------------------------------------------------------------------------------------------------- targets


def grown(path: Path) -> GrowingFile:
    return GrowingFile(FilePlace(path, path.parent.resolve()))


def messages(*bodies: bytes) -> list[Message]:
    return [Message(b, (i,)) for i, b in enumerate(bodies)]


def test_a_growing_file_is_cut_to_what_is_known(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("before\n")
    one = grown(path)
    assert one.open({})["length"] == 7
    assert one.send(messages(b"x", b"y"), [OutputPlace(0, 0)]) == 2
    kept = one.state()
    one.send(messages(b"z"), [OutputPlace(0, 2)])
    one.close()
    again = grown(path)
    again.open(kept)
    assert path.read_text() == "before\nx\ny\n"
    with pytest.raises(TargetUnavailable, match="in use by another sink"):
        grown(path).open({})
    again.close()


def test_a_file_that_somebody_moved_away(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    one = grown(path)
    one.open({})
    one.send(messages(b"x"), [OutputPlace(0, 0)])
    path.rename(tmp_path / "a.csv.1")
    assert one.send(messages(b"y"), [OutputPlace(0, 1)]) == 0
    assert one.state()["length"] == 0
    assert one.send(messages(b"y"), [OutputPlace(0, 1)]) == 1
    known = one.state()
    one.close()
    assert (path.read_text(), (tmp_path / "a.csv.1").read_text()) == ("y\n", "x\n")
    path.unlink()
    path.write_text("somebody else's, and longer\n")
    again = grown(path)
    again.open({**known, "inode": known["inode"] + 1})
    again.close()
    assert path.read_text() == "somebody else's, and longer\n"


def named(root: Path, template: str = "{{k}}.csv", **options: Any) -> NamedFiles:
    return NamedFiles(FilePlace(root, root.resolve(), b"head\n"), template, **options)


def to(name: str, body: bytes) -> Message:
    return Message(body, [0], {FILE_NAME: name})


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans(), st.booleans()), max_size=40))
def test_files_that_events_name_are_exact_through_crashes(steps: list[tuple[int, bool, bool]]) -> None:
    """Messages in portions; after some of them, the process dies before the position is kept."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_sink, "MOST_OPEN", 3)
        root = Path(folder)
        all_messages = [to(f"k{k}.csv", f"{i}".encode()) for i, (k, _, _) in enumerate(steps)]
        target, at, kept = named(root), 0, dict[str, Any]()
        kept = dict(target.open(kept))
        tries = 0
        while at < len(all_messages):
            tries += 1
            sent = target.send(all_messages[at : at + 5], [OutputPlace(0, i) for i in range(at, at + 5)])
            _, dies, moves = steps[(at + tries) % len(steps)]
            if dies and tries < 100:
                target.close()
                target = named(root)
                kept = json.loads(json.dumps(target.open(kept)))
                continue
            at, kept = at + sent, json.loads(json.dumps(target.state()))
            if moves and tries < 100:
                target.close()
                target = named(root)
                target.open(kept)
        target.close()
        for k in range(10):
            expected = [str(i) for i, step in enumerate(steps) if step[0] == k]
            file = root / f"k{k}.csv"
            assert (file.read_text().splitlines()[1:] if expected else []) == expected
            assert file.exists() == bool(expected)


def test_a_named_file_that_somebody_moved_away(tmp_path: Path) -> None:
    target = named(tmp_path, "{{k}}/x.csv")
    target.open({})
    both = [to("a/x.csv", b"1"), to("b/x.csv", b"2")]
    places = [OutputPlace(0, 0), OutputPlace(0, 1)]
    assert target.send(both, places) == 0
    assert target.send(both, places) == 2
    (tmp_path / "a" / "x.csv").rename(tmp_path / "a" / "former.csv")
    assert target.send(both, places) == 0
    assert target.send(both, places) == 2
    assert (tmp_path / "b" / "x.csv").read_text() == "head\n2\n2\n"
    assert (tmp_path / "a" / "x.csv").read_text() == (tmp_path / "a" / "former.csv").read_text() == "head\n1\n"


@pytest.mark.parametrize(
    "name",
    ["../x.csv", "a/b.csv", "/etc/x", "..", ".", "", ".ssh", "a\\b.csv", "a\0.csv", "a\n.csv", "x" * 300, "a/", "//"],
)
def test_names_that_lead_elsewhere(tmp_path: Path, name: str) -> None:
    target = named(tmp_path)
    target.open({})
    with pytest.raises(Undeliverable, match="is not the name of a file"):
        target.send([to(name, b"1"), to("ok.csv", b"2")], [OutputPlace(0, 0), OutputPlace(0, 1)])
    assert target.send([to("ok.csv", b"2"), to(name, b"1")], [OutputPlace(0, 0), OutputPlace(0, 1)]) == 0
    assert target.send([to("ok.csv", b"2"), to(name, b"1")], [OutputPlace(0, 0), OutputPlace(0, 1)]) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["ok.csv"]


def test_named_files_that_have_the_last_message_alone(tmp_path: Path) -> None:
    target = named(tmp_path, append=False)
    target.open({})
    found = [to("a.csv", b"1"), to("b.csv", b"2"), to("a.csv", b"3")]
    assert target.send(found, [OutputPlace(0, i) for i in range(3)]) == 3
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"a.csv": "head\n3\n", "b.csv": "head\n2\n"}
    (tmp_path / "way").symlink_to("/tmp")
    with pytest.raises(TargetUnavailable, match="leads out of"):
        named(tmp_path, "{{k}}/x.csv").send([to("way/x.csv", b"1")], [OutputPlace(0, 0)])


def test_links_that_lead_out(tmp_path: Path) -> None:
    root, other = tmp_path / "root", tmp_path / "other"
    root.mkdir()
    other.mkdir()
    (root / "link.csv").symlink_to(other / "x.csv")
    with pytest.raises(TargetUnavailable, match="is a symbolic link"):
        GrowingFile(FilePlace(root / "link.csv", root)).open({})
    (root / "way").symlink_to(other)
    with pytest.raises(TargetUnavailable, match="leads out of"):
        GrowingFile(FilePlace(root / "way" / "x.csv", root)).open({})
    os.mkfifo(root / "pipe")
    with pytest.raises(TargetUnavailable, match="is not a plain file"):
        GrowingFile(FilePlace(root / "pipe", root)).open({})
    assert not list(other.iterdir())


def test_turns_pass_over_what_is_away() -> None:
    now, down = [0.0], {1}

    def answer(number: int) -> Callable[[bytes], None]:
        def check(body: bytes) -> None:
            if number in down:
                raise TargetUnavailable(f"{number} is away")

        return check

    targets = [Kept(answer(i)) for i in range(3)]
    turns = Turns(targets, clock=lambda: now[0])
    turns.open({})
    for i in range(6):
        assert turns.send(messages(str(i).encode()), [OutputPlace(0, i)]) == 1
    assert [len(t.got) for t in targets] == [3, 0, 3]
    down |= {0, 2}
    with pytest.raises(TargetUnavailable, match="all 3 destinations are away"):
        turns.send(messages(b"6"), [OutputPlace(0, 6)])
    down.clear()
    now[0] = 10.0
    for i in range(6, 9):
        turns.send(messages(str(i).encode()), [OutputPlace(0, i)])
    assert sorted(b for t in targets for b in t.got) == numbers(0, 9)
    assert len(targets[1].got) == 1


def test_turns_over_destinations_that_take_several() -> None:
    """Each message is for the next destination; what comes before one that is not taken is counted."""
    refused: set[bytes] = set()

    def check(body: bytes) -> None:
        if body in refused:
            raise Undeliverable(f"no {body.decode()}")
        if body == b"away":
            raise TargetUnavailable("all are")

    targets = [Kept(check) for _ in range(3)]
    for target in targets:
        target.at_once = 500
    turns = Turns(targets)
    assert turns.at_once == AT_ONCE
    turns.open({})
    found = messages(*(str(i).encode() for i in range(8)))
    places = [OutputPlace(0, i) for i in range(8)]
    refused.add(b"4")
    assert turns.send(found, places) == 4
    assert turns.state() == {"next": 1}
    with pytest.raises(Undeliverable, match="no 4"):  # by the one whose turn it is
        turns.send(found[4:], places[4:])
    assert turns.send(found[5:], places[5:]) == 3
    assert [t.got for t in targets] == [[b"0", b"3", b"6"], [b"1", b"7"], [b"2", b"5"]]
    assert turns.send(messages(b"8", b"away"), places[:2]) == 1
    with pytest.raises(TargetUnavailable, match="all 3 destinations are away"):
        turns.send(messages(b"away"), places[:1])
    targets[1].at_once = 1
    assert Turns(targets).at_once == 1


# ---------------------------------------------------------------------------------------------------------- messages


def events(rows: list[list[Any]], types: list[Type], steps: list[int]) -> tuple[Schema, pa.Table]:
    """Outputs of one node with attributes a, b, ..."""
    schema = Schema(tuple(Attribute(n, t) for n, t in zip("abcdefgh"[: len(types)], types, strict=True)))
    values = [list(c) for c in zip(*rows, strict=True)]
    columns = [c if t is Type.OBJECT else pa.array(c, ARROW[t]) for t, c in zip(types, values, strict=True)]
    emitted = Emitted(schema.names, np.array(steps), np.zeros(len(rows), np.int64), columns)
    table = pa.Table.from_batches([emitted_table(emitted, 0)])
    return schema, table.add_column(0, "node", pa.array(np.zeros(len(rows), np.int32)))


def test_numbers_that_json_does_not_have() -> None:
    infinite = float("inf")
    rows = [[1.5, {"x": 1}], [infinite, None], [2.5, {"x": [infinite]}], [3.5, {"x": 2}]]
    schema, table = events(rows, [Type.DOUBLE, Type.OBJECT], [0, 0, 0, 0])
    one, *odd = MessageWriter(SinkMapping(JsonSink(), (), True), schema).write(table)
    assert isinstance(one, Message)
    assert one.body == b'[{"event":{"a":1.5,"b":{"x":1}}},{"event":{"a":3.5,"b":{"x":2}}}]'
    assert one.events == [0, 3]
    assert odd == [
        UnwrittenEvents((1,), "the event cannot be written as JSON: a: JSON has no inf"),
        UnwrittenEvents((2,), "the event cannot be written as JSON: b: JSON has no inf"),
    ]


def test_what_does_not_pass_its_check() -> None:
    schema, table = events([["x"], ["<"]], [Type.STRING], [0, 1])
    mapping = SinkMapping(XmlSink("", "", True), (("", Template(("<e>", 0, "</e>"))),), True)
    good, bad = MessageWriter(mapping, schema).write(table)
    assert isinstance(good, Message)
    assert good.body == b"<e>x</e>"
    assert isinstance(bad, UnwrittenEvents)
    assert bad.events == [1]
    assert bad.reason.startswith("the event cannot be written: ")


@pytest.mark.parametrize("cut", range(8))
def test_groups_are_the_same_wherever_a_delivery_is_cut_off(outputs: Outputs, cut: int) -> None:
    """Events of a step are one message for each value of a dynamic option, wherever the process ends."""

    class Parity(Kept):
        templates: Mapping[str, str] = {"topic": "{{v}}"}

    calls = [0]

    def answer(body: bytes) -> None:
        calls[0] += 1
        if calls[0] == cut + 1:
            raise Ending

    class Ending(Exception):
        pass

    target = Parity(answer)
    outputs.put(0, [1, 2, 1, 2, 1, 3, 4, 3], [0, 0, 0, 0, 0, 1, 1, 2])
    outputs.put(1, [1, 1], [3, 3])
    delivered(Delivery(outputs.setup(target, mapping=JSON), outputs.source, 0, wait=lambda s: None), 1)
    assert target.got == [b"[1,\n1,\n1]", b"[2,\n2]", b"3", b"4", b"3", b"[1,\n1]"]
    assert target.places == [
        OutputPlace(0, 0),
        OutputPlace(0, 3),
        OutputPlace(0, 5),
        OutputPlace(0, 6),
        OutputPlace(0, 7),
        OutputPlace(1, 0),
    ]
    again = Kept()
    write_position(outputs.source.folder / "O-1.json", SinkPosition(0, 3, sent=3))
    delivered(Delivery(outputs.setup(again, mapping=JSON), outputs.source, 0), 1)
    assert again.got == [b"[1,\n2,\n1,\n2,\n1]", b"[3,\n4]", b"3", b"[1,\n1]"]


def test_every_event_of_a_message_that_is_refused_is_an_error(outputs: Outputs) -> None:
    def answer(body: bytes) -> None:
        if b"2" in body:
            raise Undeliverable("no 2 here")

    target = Kept(answer)
    outputs.put(0, [1, 2, 3, 4], [0, 1, 1, 2])
    delivery = Delivery(outputs.setup(target, "STORE", JSON), outputs.source, 0)
    delivered(delivery, 0)
    assert target.got == [b"1", b"4"]
    assert (delivery.figures().sent, delivery.figures().failed) == (2, 2)
    assert [(e[0], e[3]) for e in outputs.errors] == [(OutputPlace(0, 2), [2]), (OutputPlace(0, 2), [3])]


def test_a_large_message_that_is_refused_does_not_flood_the_logs(outputs: Outputs) -> None:
    def answer(body: bytes) -> None:
        raise Undeliverable("no")

    outputs.put(0, list(range(30)), [0] * 30)
    delivered(Delivery(outputs.setup(Kept(answer), mapping=JSON), outputs.source, 0), 0)
    assert len(outputs.progress.logs) == 11
    assert "20 more events of that message were not delivered: no" in outputs.progress.logs[-1]


def test_events_for_a_fault_stream(outputs: Outputs) -> None:
    """Those of a message together, as soon as the app takes them."""

    def answer(body: bytes) -> None:
        if b"2" in body:
            raise Undeliverable("no 2 here")

    outputs.busy = 2
    outputs.put(0, [1, 2, 3, 4], [0, 1, 1, 2])
    delivery = Delivery(outputs.setup(Kept(answer), "STREAM", JSON), outputs.source, 0)
    delivered(delivery, 0)
    assert outputs.faults == [(OutputPlace(0, 2), [2, 3], "sink O-1: no 2 here")]
    assert (delivery.figures().sent, delivery.figures().failed, outputs.errors) == (2, 2, [])


def test_windows_are_whole_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery_module, "CHUNK", 3)
    assert list(windows(np.array([1, 2, 3, 4]))) == [(0, 3), (3, 4)]
    assert list(windows(np.array([2, 4, 9, 10]))) == [(0, 2), (2, 4), (4, 9), (9, 10)]
    assert list(windows(np.array([], np.int64))) == []
