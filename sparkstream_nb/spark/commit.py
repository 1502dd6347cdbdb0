"""The end of a micro-batch: all that it changes outside Spark, in one transaction, once.

The store's ledger holds a row (app, run, batch id) for every micro-batch that is in it. Spark repeats a micro-batch
after a crash with the same id and rows; one that is in the ledger is not written again.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from ..stores.protocol import ErrorRow, Store
from . import results
from .outputs import OutputFiles


@dataclass
class Progress:
    """How far an app is, shared between the thread of the streaming query and those that wait for it."""

    changed: threading.Condition = field(default_factory=threading.Condition)
    batch: int = -1
    last: int = -1
    rows: dict[str, int] = field(default_factory=dict)
    errors: int = 0
    nodes: dict[int, dict[str, Any]] = field(default_factory=dict)
    answers: dict[int, dict[int, Any]] = field(default_factory=dict)
    logs: list[str] = field(default_factory=list)


LOG_LINES_KEPT = 1000


class Commit:
    """The function for foreachBatch."""

    def __init__(
        self,
        app: str,
        run: str,
        shards: Sequence[str],
        store: Store,
        outputs: OutputFiles,
        progress: Progress,
        on_batch: Callable[[int], None] | None = None,
    ) -> None:
        self.app, self.run, self.shards = app, run, list(shards)
        self.store, self.outputs, self.progress, self.on_batch = store, outputs, progress, on_batch

    def __call__(self, frame: DataFrame, batch: int) -> None:
        table = frame.toArrow()
        self.commit(rows_of(table), batch)

    def commit(self, rows: Sequence[results.Row], batch: int) -> None:
        """Commits the decoded rows of a micro-batch and wakes who waits for it."""
        streams: dict[str, list[tuple[int, bytes, str]]] = {}
        partials: dict[tuple[str, str], list[pa.Table]] = {}
        errors: list[ErrorRow] = []
        counts: dict[str, int] = {}
        marks: dict[int, dict[str, Any]] = {}
        answers: dict[int, dict[int, Any]] = {}
        logs: list[str] = []
        spent: list[str] = []
        last = -1
        for node, seq, upto, kind, name, n, blob, file in rows:
            if kind == "stream":
                streams.setdefault(name, []).append((node, blob, file))
                counts[name] = counts.get(name, 0) + n
            elif kind == "partial":
                if file and not Path(file).exists():
                    continue  # the commit was cut off after the store had it
                partials.setdefault((name, self.shards[node]), []).append(results.table_of(blob, file))
                spent += [file] if file else []
            elif kind == "error":
                errors.extend(ErrorRow(*found) for found in results.errors_of(blob))
            elif kind == "answer":
                answers.setdefault(seq, {})[node] = results.answer_of(blob)
            elif kind == "log":
                logs.extend(json.loads(blob))
            elif kind == "mark":
                marks[node] = json.loads(blob)
                last = max(last, upto)
        self.outputs.write(batch, streams)
        whole = {key: pa.concat_tables(tables) for key, tables in partials.items()}
        now = max((mark["engine"]["clock"] for mark in marks.values()), default=None)
        fresh = self.store.commit(self.app, self.run, batch, whole, errors, now)
        for file in spent:
            Path(file).unlink()
        if self.on_batch is not None:
            self.on_batch(batch)
        p = self.progress
        with p.changed:
            p.batch, p.last = max(p.batch, batch), max(p.last, last)
            p.nodes.update(marks)
            p.answers.update(answers)
            if fresh:
                for name, n in counts.items():
                    p.rows[name] = p.rows.get(name, 0) + n
                p.errors += len(errors)
            p.logs = (p.logs + logs)[-LOG_LINES_KEPT:]
            p.changed.notify_all()


def rows_of(table: pa.Table) -> list[results.Row]:
    """The rows of `journal.SCHEMA`, in the order of node and entry."""
    columns = [table[c].to_pylist() for c in results.COLUMNS]
    return sorted(zip(*columns, strict=True), key=lambda r: (r[0], r[1]))
