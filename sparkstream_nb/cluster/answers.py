"""Result types of a running app."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import pyarrow as pa

from ..engine.batch import Answer
from ..engine.columns import ARROW
from ..types import Type

SHARD = "SHARD_ID"


@dataclass(frozen=True)
class FeedReport:
    """The report of a feed: `rows` read, of which `rejected` did not fit; `outputs` counts the events of derived
    streams."""

    stream: str
    rows: int
    rejected: int
    seconds: float
    outputs: dict[str, int] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()

    @property
    def events_per_second(self) -> float:
        return (self.rows - self.rejected) / self.seconds if self.seconds else 0.0


@dataclass(frozen=True)
class Result:
    """The answer to an on-demand query: `columns` are (name, type) pairs, `rows` Python values, merged over shards.

    `by_shard` is the same by shard, SHARD_ID first; None if the query has no shards.
    """

    columns: list[tuple[str, str]]
    rows: list[list[Any]]
    by_shard: pd.DataFrame | None = None

    @property
    def frame(self) -> pd.DataFrame:
        return typed_frame(self.columns, self.rows)


def typed_frame(columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[Any]]) -> pd.DataFrame:
    """A pandas frame with the columns' SiddhiQL types; integers and bools with nulls use nullable types."""
    data = []
    for i, (_, kind) in enumerate(columns):
        values = [row[i] for row in rows]
        type = ARROW.get(Type(kind)) if kind in {t.value for t in Type} else None
        if type is None:
            data.append(pd.Series(values, dtype=object))
        else:
            array = pa.array(values, type)
            data.append(array.to_pandas(types_mapper=NULLABLE.get if array.null_count else None))
    frame = pd.DataFrame(dict(enumerate(data)))
    frame.columns = pd.Index([name for name, _ in columns], dtype=object)
    return frame


NULLABLE = {pa.int32(): pd.Int32Dtype(), pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}


def frame_of(answer: Answer) -> pd.DataFrame:
    return typed_frame(answer.columns, answer.rows)
