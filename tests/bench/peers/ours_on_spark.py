"""Our app on Spark, from a CSV (with a header) or parquet file to committed outputs.

A repetition deploys the app again, in a new folder, since the other engines plan their query again as well.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from sparkstream_nb.app import deploy

from .protocol import Query, Result, read_queries, tree_cpu

MASTER = "local[2]"


def repetition(query: Query, file: str, home: Path) -> Result:
    """Deploys the app, feeds the file and waits until all is committed. `part` is the CPU of the feed."""
    before, began = tree_cpu(), time.perf_counter()
    app = deploy(query.app, name=query.name, master=MASTER, home=home, fresh=True)
    try:
        deployed = tree_cpu()
        app.feed("Trades", file, time="timestamp")
        app.flush()
        after, wall = tree_cpu(), time.perf_counter() - began
        output = app.output("Out").frame
        rows, summed = len(output), float(output[query.column].sum())
    finally:
        app.stop()
    return Result(query.name, rows, summed, round(after - before, 4), round(wall, 4), round(after - deployed, 4))


def main() -> None:
    name, file, repetitions = sys.argv[1:4]
    query = read_queries()[name]
    with tempfile.TemporaryDirectory() as folder:
        for k in range(int(repetitions)):
            print(repetition(query, file, Path(folder, str(k))).line(), flush=True)


if __name__ == "__main__":
    main()
