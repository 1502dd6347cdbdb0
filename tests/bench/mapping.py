"""`python -m tests.bench.mapping [EVENTS]`: how long it takes to decode and to encode plain messages of
(string, double, long), and messages that are read one by one. One process, one core but for Arrow's reader of JSON."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from sparkstream_nb.mapping import decoder, encoder
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.connectors.mapping import SinkMapping, SourceMapping
from sparkstream_nb.plan.connectors.mappings import sink_mapping, source_mapping
from sparkstream_nb.types import Schema

MAPS = {
    "json": "@map(type='json', event.grouping.enabled='false')",
    "json, paths": "@map(type='json', @attributes('$.symbol', '$.price', '$.volume'))",
    "csv": "@map(type='csv')",
}
ONE_BY_ONE = 20
"""One in so many messages is read by the readers of single messages too."""


def _bound(text: str) -> tuple[SourceMapping, SinkMapping, Schema]:
    stream = compile_app(
        f"@source(type='http', {text}) @sink(type='http', {text.partition(', @attributes')[0].rstrip(')')})) "
        "define stream S (symbol string, price double, volume long);"
    ).streams["S"]
    source, sink = (a.nested[0] for a in stream.annotations)
    schema = stream.source.schema
    return source_mapping(source, schema), sink_mapping(sink, schema), schema


def _rate(work: Callable[[], object], n: int) -> str:
    start = time.perf_counter()
    work()
    seconds = time.perf_counter() - start
    return f"{seconds:6.2f} s {n / seconds / 1e6:7.2f} M/s"


def run(n: int) -> None:
    """Prints the times for `n` events."""
    numbers = np.arange(n)
    columns = [
        pa.array([f"S{i}" for i in (numbers % 1000).tolist()]), pa.array(numbers * 0.01 + 0.001), pa.array(numbers)
    ]  # fmt: skip
    for name, text in MAPS.items():
        source, sink, schema = _bound(text)
        write, read = encoder(sink, schema), decoder(source, schema)
        messages: list[bytes] = []
        if "paths" in name:
            rows = zip(*(c.to_pylist() for c in columns), strict=True)
            messages = [f'{{"symbol":"{s}","price":{p!r},"volume":{v}}}'.encode() for s, p, v in rows]
        else:
            sent: list[bytes] = []
            encoded = _rate(lambda: sent.extend(m.body for m in write.encode(columns, numbers)), n)  # noqa: B023
            messages = sent
            print(f"{name:12} encode            {encoded}")
        print(f"{name:12} decode            {_rate(lambda: read.decode(messages), n)}")  # noqa: B023
        few = messages[::ONE_BY_ONE]
        print(f"{name:12} decode one by one {_rate(lambda: read.decode(few, fast=False), len(few))}")  # noqa: B023


if __name__ == "__main__":
    run(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
