"""Bad items among good ones, in every format and from every kind of source: each bad one is an error, and the app goes
on with what comes after it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

from sparkstream_nb.app import App
from sparkstream_nb.stores.dialects import DIALECTS
from tests.apps.waiting import until
from tests.broker import Broker
from tests.run_servers import ServerOf

POISONED = 20
"""Bad items of a run; five formats make a hundred."""
Run = Callable[..., App]
Item = tuple[int | None, bytes]
"""The number that a good item has (None: it is bad), and the item."""

CSV = [
    b"only", b"a,x", b"a,1.5", b'"open,1', b"a,99999999999999999999", b"a,0x1F", b"a,--1",
    b"a,\xed\xa0\x80", b"a,1_000", b"a,1\x00", b"a,NaN", b"a,1e400", b"a,true",
]  # fmt: skip
JSON = [
    b"{", b"null", b"1", b'"text"', b'{"event":{"k":"a","v":"x"}}', b'{"event":{"k":"a"}}', b'{"evnt":{}}',
    b'{"event":{"k":"a","v":1.5}}', b'{"event":{"k":"a","v":99999999999999999999}}', b'{"event":{"k":"a","v":true}}',
    b'\xff{"event":{"k":"a","v":1}}', b"[" * 100_000, b'{"event":[]}x',
    b'{"event":{"k":"a","v":NaN}}', b'{"event":{"k":"a","v":[1]}}',
]  # fmt: skip
SQL = [
    "'infinity', 1", "'-infinity', 1", "'0044-03-15 BC', 1", "'294276-12-31', 1", "'2024-01-01', 'NaN'",
    "'2024-01-01', 'infinity'", "'2024-01-01', 1e300", "'2024-01-01', 1.5", "NULL, NULL",
]  # fmt: skip


def csv(v: int) -> bytes:
    return f"k{v},{v}".encode()


def json_event(v: int) -> bytes:
    return json.dumps({"event": {"k": f"k{v}", "v": v}}).encode()


def mixed(seed: int, good: Callable[[int], bytes], bad: Sequence[bytes]) -> list[Item]:
    """Good items with bad ones among them, in an order of the seed's; the last is good."""
    draw = random.Random(seed)
    items: list[Item] = [(v, good(v)) for v in range(60)]
    items += [(None, draw.choice(bad)) for _ in range(POISONED)]
    draw.shuffle(items)
    return [*items, (60, good(60))]


def holds(app: App, items: Sequence[Item] | Sequence[tuple[int | None, Any]]) -> None:
    """Waits until the last item is through, and checks that each good one is an output, and each bad one an error."""
    wanted = sorted(v for v, _ in items if v is not None)
    until(app, lambda: sorted(app.output("O").frame["v"].tolist()) == wanted)
    bad = sum(v is None for v, _ in items)
    assert len(app.errors.frame) == bad, app.errors.frame.to_string()
    assert app.state == "running"
    found = app.stats().sources[0]
    assert (found.events, found.rejected, found.last_error) == (len(wanted), bad, None)


@pytest.mark.parametrize(("mapping", "good", "bad"), [("csv", csv, CSV), ("json", json_event, JSON)])
def test_lines_of_a_file(
    run: Run, tmp_path: Path, mapping: str, good: Callable[[int], bytes], bad: Sequence[bytes]
) -> None:
    file = tmp_path / "in.txt"
    items = mixed(1, good, bad)
    app = run(
        f"""
        @source(type='file', file.uri='{file}', mode='line', file.polling.interval='50', @map(type='{mapping}'))
        define stream S (k string, v int);
        from S select k, v insert into O;
        """,
        allow=[f"file={tmp_path}"],
    )
    half = len(items) // 2
    file.write_bytes(b"".join(item + b"\n" for _, item in items[:half]))
    with file.open("ab") as f:
        f.writelines(item + b"\n" for _, item in items[half:])
    holds(app, items)


def not_utf8() -> pa.Array:
    return pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe")])


def table(v: int) -> pa.Table:
    return pa.table({"k": [f"k{v}"], "v": pa.array([v], pa.int32())})


def bad_files(folder: Path) -> dict[str, Callable[[Path], None]]:
    """By name, what writes a file that is an error."""

    def written(found: pa.Table) -> Callable[[Path], None]:
        return lambda file: pq.write_table(found, file)

    whole = folder / "whole.parquet"
    pq.write_table(table(1), whole)
    content = whole.read_bytes()
    whole.unlink()
    v = pa.array([1], pa.int32())
    return {
        "two columns of one name": written(pa.Table.from_arrays([v, v, pa.array(["a"])], names=["v", "v", "k"])),
        "no column v": written(pa.table({"k": ["a"]})),
        "a text for a number": written(pa.table({"k": ["a"], "v": ["x"]})),
        "out of range": written(pa.table({"k": ["a"], "v": [2**40]})),
        "a list": written(pa.table({"k": ["a"], "v": [[1]]})),
        "no UTF-8": written(pa.table({"k": not_utf8(), "v": v})),
        "bytes that are no UTF-8": written(pa.table({"k": pa.array([b"\xff\xfe"]), "v": v})),
        "a truth value": written(pa.table({"k": ["a"], "v": [True]})),
        "cut": lambda file: file.write_bytes(content[:-9]) and None,
        "damaged": lambda file: file.write_bytes(content[:20] + b"\xff" * 60 + content[80:]) and None,
        "text": lambda file: file.write_text("k,v\na,1\n") and None,
    }


def test_parquet_files(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    bad = bad_files(tmp_path)
    draw = random.Random(2)
    items: list[tuple[int | None, str]] = [(v, "") for v in range(20)]
    items += [(None, name) for name in [*bad, *draw.choices(list(bad), k=POISONED - len(bad))]]
    draw.shuffle(items)
    app = run(
        f"""
        @source(type='file', dir.uri='{folder}', mode='parquet', dir.polling.interval='50')
        define stream S (k string, v int);
        from S select k, v insert into O;
        """,
        allow=[f"file={folder}"],
    )
    for number, (v, name) in enumerate([*items, (20, "")]):
        new = tmp_path / "new"
        if v is None:
            bad[name](new)
        else:
            pq.write_table(table(v), new)
        new.rename(folder / f"{number:03d}.parquet")
    holds(app, [*items, (20, "")])


@pytest.mark.server
def test_rows_of_a_table(run: Run, server_of: ServerOf, monkeypatch: pytest.MonkeyPatch) -> None:
    server = server_of("postgresql")
    assert server.database.password is not None
    monkeypatch.setenv("DB_PASSWORD", server.database.password.reveal())
    engine = DIALECTS["postgresql"].engine(server.database)
    with engine.begin() as c:
        c.execute(sa.text("DROP TABLE IF EXISTS poisoned"))
        c.execute(sa.text("CREATE TABLE poisoned (id BIGINT PRIMARY KEY, at TIMESTAMP, v NUMERIC)"))
    address = server.jdbc.removeprefix("jdbc:")
    app = run(
        f"""
        @source(type='cdc', url='{server.jdbc}', username='{server.database.user}', password='${{env:DB_PASSWORD}}',
                table.name='poisoned', mode='polling', polling.column='id', polling.interval='1',
                jdbc.driver.name='org.postgresql.Driver', @map(type='keyvalue', @attributes(at='at', v='v')))
        define stream S (at string, v int);
        from S select v insert into O;
        """,
        allow=[f"jdbc={address}"],
        allow_env=["DB_PASSWORD"],
    )
    until(app, lambda: app.stats().sources[0].behind is not None)
    draw = random.Random(3)
    items: list[tuple[int | None, str]] = [(v, f"'2024-01-01', {v}") for v in range(30)]
    items += [(None, draw.choice(SQL)) for _ in range(POISONED)]
    draw.shuffle(items)
    items.append((30, "'2024-01-01', 30"))
    with engine.begin() as c:
        for number, (_, values) in enumerate(items):
            c.execute(sa.text(f"INSERT INTO poisoned VALUES ({number}, {values})"))
    engine.dispose()
    holds(app, items)


@pytest.mark.server
def test_messages_of_a_topic(run: Run, broker: Broker) -> None:
    topic = broker.topic()
    items = mixed(4, json_event, JSON)
    producer = broker.producer(linger_ms=5)
    for _, message in items:
        producer.send(topic, message)
    producer.flush()
    producer.close()
    app = run(
        f"""
        @source(type='kafka', bootstrap.servers='{broker.address}', topic.list='{topic}', group.id='g-{topic}',
                threading.option='single.thread', @map(type='json'))
        define stream S (k string, v int);
        from S select k, v insert into O;
        """,
        allow=[f"kafka={broker.address}"],
    )
    holds(app, items)
