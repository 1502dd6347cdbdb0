"""Folders of this machine that a Spark Connect server may see or not: its workers are asked."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..errors import SparkUnavailable


def is_visible(session: Any, folder: Path) -> bool:
    """True if a Spark session has its driver in this process, or its workers see the folder `folder`: a file that is
    put there for the question."""
    if hasattr(session, "_jsparkSession"):
        return True
    folder.mkdir(parents=True, exist_ok=True)
    mark = folder / f".seen-{os.urandom(8).hex()}"
    mark.touch()
    path = str(mark)

    def look(batches: Iterable[Any]) -> Iterator[Any]:  # sent by value: the worker may lack this module
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"seen": [os.path.exists(path)]})

    try:
        answer: pa.Table = session.range(0, 1, 1, 1).mapInArrow(look, "seen boolean").toArrow()
        return bool(answer["seen"][0].as_py())
    finally:
        mark.unlink()


def check_visible(session: Any, folder: Path, ways_out: str) -> None:
    """Raises SparkUnavailable with `ways_out` if a Spark session's workers do not see a folder of an app."""
    if not is_visible(session, folder):
        raise SparkUnavailable(f"Spark's workers do not see the app's folder {folder}. {ways_out}")
