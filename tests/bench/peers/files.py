"""The trades as each engine reads them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from .protocol import ROOT

NAMES = ["symbol", "price", "quantity", "timestamp"]
PARTS = 5
"""Files of the folder that native Spark reads."""


def make(folder: Path, events: int) -> dict[str, Path]:
    """Writes the files, and returns them by kind: `csv` has no header, `headed` has one, `parquet` is one file and
    `folder` a folder with several; all have the same events in the same order."""
    import pyarrow.csv as csv
    import pyarrow.parquet as pq

    folder.mkdir(parents=True)
    files = {"csv": folder / "trades.csv", "headed": folder / "headed.csv", "parquet": folder / "trades.parquet"}
    generator = str(ROOT / "tests" / "reference" / "trades.py")
    subprocess.run([sys.executable, generator, str(events), str(files["csv"])], check=True)
    with files["csv"].open() as plain, files["headed"].open("w") as headed:
        headed.write(",".join(NAMES) + "\n")
        headed.writelines(plain)
    table = csv.read_csv(files["csv"], read_options=csv.ReadOptions(column_names=NAMES))
    pq.write_table(table, files["parquet"], row_group_size=250_000)
    files["folder"] = folder / "parts"
    files["folder"].mkdir()
    rows = -(-len(table) // PARTS)
    for part in range(PARTS):
        pq.write_table(table.slice(part * rows, rows), files["folder"] / f"{part}.parquet")
    return files
