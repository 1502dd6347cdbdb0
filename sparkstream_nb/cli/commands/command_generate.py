"""`sparkstream generate`: a file of generated events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from ...app.generating import generate, stream_in_plan
from ...charts.value_texts import format_count
from ...errors import Misuse
from ...options import CannotRead
from ...plan.open_names import compile_open
from ..app_texts import text_of
from ..surroundings import NODE

_FORMATS = (".csv", ".parquet")


def run(options: Any) -> int:
    """`sparkstream generate`: writes a file of generated events."""
    out = Path(options.out)
    if out.suffix not in _FORMATS:
        raise Misuse(f"--out: {options.out} is neither a .csv nor a .parquet file")
    with text_of(options.app) as text:
        plan, _ = compile_open(text, NODE, dict(options.param))
    start = options.start
    stream: Any = stream_in_plan(plan, options.stream)
    frame = generate(
        stream,
        n=options.rows,
        seed=options.seed or 0,
        rate=options.rate,
        start=int(start) if start is not None and start.isdecimal() else start,
        arrivals=options.arrivals,
        time=options.time,
        like=options.like,
    )
    _write_frame(frame, out)
    print(f"{options.out}: {format_count(len(frame), 'event')}")
    return 0


def _write_frame(frame: pd.DataFrame, out: Path) -> None:
    """Writes a frame as CSV or parquet. Raises `CannotRead`."""
    table = pa.Table.from_pandas(frame, preserve_index=False)
    try:
        if out.suffix == ".csv":
            pyarrow.csv.write_csv(table, out)
        else:
            pyarrow.parquet.write_table(table, out)
    except OSError as e:
        raise CannotRead(f"{out} cannot be written: {e.strerror or e}") from None
