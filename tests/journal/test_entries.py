"""The entries of the journal as JSON."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

import pytest

from sparkstream_nb.errors import SparkStreamError
from sparkstream_nb.journal.entries import (
    KINDS,
    Ask,
    Entry,
    FaultEntry,
    FileRows,
    MergedEntry,
    Reject,
    RowsEntry,
    SourceEntry,
    StepsEntry,
    from_json,
    to_json,
)

ENTRIES: list[Entry] = [
    StepsEntry(seq=0, step=0, request=0, steps=2, requests=1, clock=1_400_000_000_000, route="hash:k", data="AAEC"),
    StepsEntry(seq=1, step=2, request=1, before=7, app=3, steps=9, clock=8, route="node:2", file="batch-1"),
    RowsEntry(seq=2, step=11, request=1, steps=4, requests=4, clock=9, route="round_robin", file="f", stream="S"),
    RowsEntry(
        seq=3, step=15, request=5, steps=4, requests=4, clock=9, route="round_robin", file="p", stream="S",
        groups=(0, 1), columns=("key", "v"), time="at", start=0, barrier=True,
    ),
    Ask(seq=4, step=19, request=9, before=9, text="from T select *"),
    MergedEntry(
        seq=10, step=19, request=9, steps=5, requests=5, clock=9, route="round_robin",
        parts=(
            FileRows(file="a", stream="S", rows=2, first=3),
            FileRows(file="b", stream="T", rows=3, groups=(1,), columns=("k", "v"), time="at"),
        ),
    ),
    SourceEntry(seq=9, step=4, request=3, source="S-kafka-1", reached={"t:0": 12, "t:1": None}),
    Reject(seq=5, step=19, request=9, before=9, file="feed-rejected"),
    FaultEntry(seq=6, step=19, request=9, before=9, fault={"kind": "kill", "at": 7, "node": "node-1"}),
]  # fmt: skip
# As versions without these classes wrote them: members that say nothing were left out, `time` was not.
OLD = """
[{"seq":0,"step":0,"request":0,"before":0,"kind":"steps","app":0,"steps":1,"requests":1,"clock":5,"route":"node:1",
"data":"AAEC"},{"seq":1,"step":1,"request":1,"before":5,"kind":"rows","app":0,"steps":4,"requests":4,
"route":"round_robin","file":"feed-1","stream":"S","groups":[0,1],"columns":["k","v"],"time":null,"start":6,"clock":9},
{"seq":2,"step":5,"request":5,"before":9,"kind":"ask","app":0,"steps":0,"requests":0,"clock":null,
"text":"from T select *"},
{"seq":3,"step":5,"request":5,"before":9,"kind":"reject","app":0,"steps":0,"requests":0,"clock":null,"file":"rejected"}]
"""


def test_every_kind_comes_back_as_it_was() -> None:
    assert from_json(to_json(ENTRIES)) == ENTRIES
    assert {type(e) for e in ENTRIES} == set(KINDS.values())


def test_the_journal_is_written_as_it_was_before_there_were_classes() -> None:
    assert to_json([ENTRIES[0]]) == (
        b'[{"seq":0,"step":0,"request":0,"before":null,"kind":"steps","app":0,"steps":2,"requests":1,'
        b'"clock":1400000000000,"route":"hash:k","data":"AAEC"}]'
    )
    assert to_json([ENTRIES[4]]) == (
        b'[{"seq":4,"step":19,"request":9,"before":9,"kind":"ask","app":0,"steps":0,"requests":0,"clock":null,'
        b'"text":"from T select *"}]'
    )


def test_a_journal_of_an_earlier_version_is_read() -> None:
    assert from_json(OLD) == [
        StepsEntry(seq=0, step=0, request=0, before=0, steps=1, requests=1, clock=5, route="node:1", data="AAEC"),
        RowsEntry(
            seq=1, step=1, request=1, before=5, steps=4, requests=4, clock=9, route="round_robin", file="feed-1",
            stream="S", groups=(0, 1), columns=("k", "v"), start=6,
        ),
        Ask(seq=2, step=5, request=5, before=9, text="from T select *"),
        Reject(seq=3, step=5, request=5, before=9, file="rejected"),
    ]  # fmt: skip


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(SparkStreamError, match="entry of kind 'flood', which this version"):
        from_json('[{"seq":0,"step":0,"request":0,"before":0,"kind":"flood","app":0,"steps":0}]')
    with pytest.raises(TypeError, match="unexpected keyword argument 'node'"):
        from_json('[{"seq":0,"step":0,"request":0,"before":0,"kind":"ask","app":0,"text":"t","node":1}]')
    with pytest.raises(TypeError, match="'text'"):
        from_json('[{"seq":0,"step":0,"request":0,"before":0,"kind":"ask","app":0}]')

    @dataclass(frozen=True)
    class Other(Entry):
        kind = "other"

    with pytest.raises(TypeError, match="Other is not among the kinds of entries"):
        to_json([Other()])


def test_the_reader_of_the_journal_loads_no_engine() -> None:
    code = (
        "import sys; from sparkstream_nb.journal import journal; "
        "from sparkstream_nb.runners.spark import inbox_source; "
        "print(*(m for m in sys.modules if m.startswith(('sparkstream_nb.engine', 'numba', 'sparkstream_nb.plan'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
