"""The soak as a picture: a panel for each thing that must not grow.

python -m tests.chaos.picture docs/soak.csv docs/images/soak.svg
"""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Sequence
from pathlib import Path

PANELS = (
    ("memory of the JVM, MB", "jvm_mb"),
    ("memory of the workers, MB", "workers_mb"),
    ("memory of the driver, MB", "driver_mb"),
    ("descriptors", "descriptors"),
    ("disk, MB", "disk_mb"),
    ("from sending to commit, ms", "latency_ms"),
    ("events a second", "events_per_s"),
)
WIDE, HIGH, COLUMNS = 350, 150, 3


def picture(samples: Sequence[dict[str, str]]) -> str:
    """The panels as SVG; the time runs to the right, in minutes."""
    panels = [p for p in PANELS if p[1] in samples[0]]
    rows = -(-len(panels) // COLUMNS)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE * COLUMNS} {HIGH * rows}" '
        f'width="{WIDE * COLUMNS}" height="{HIGH * rows}" role="img" aria-label="An hour\'s soak" '
        'style="font:12px system-ui,sans-serif" fill="#666">'
    ]
    minutes = [float(s["at"]) / 60 for s in samples]
    for i, (title, column) in enumerate(panels):
        left, top = WIDE * (i % COLUMNS) + 48, HIGH * (i // COLUMNS) + 26
        wide, high = WIDE - 70, HIGH - 56
        values = [float(s[column]) for s in samples]
        shown = [(m, v) for m, v in zip(minutes, values, strict=True) if not math.isnan(v)]
        most = max(v for _, v in shown) * 1.1
        points = " ".join(
            f"{left + wide * m / minutes[-1]:.1f},{top + high * (1 - v / most):.1f}"
            for m, v in shown
        )
        out.append(
            f'<text x="{left}" y="{top - 8}" font-weight="600">{title}</text>'
            f'<text x="{left - 6}" y="{top + 10}" text-anchor="end">{most:,.0f}</text>'
            f'<text x="{left - 6}" y="{top + high}" text-anchor="end">0</text>'
            f'<text x="{left}" y="{top + high + 16}">0</text>'
            f'<text x="{left + wide}" y="{top + high + 16}" text-anchor="end">{minutes[-1]:.0f} min</text>'
            f'<path d="M{left} {top}V{top + high}H{left + wide}" fill="none" stroke="#999"/>'
            f'<polyline points="{points}" fill="none" stroke="#2a6f97" stroke-width="1.5"/>'
        )
    return "".join([*out, "</svg>\n"])


def main(source: str, target: str) -> None:
    """Draws the file of a soak."""
    with Path(source).open(encoding="utf-8", newline="") as lines:
        Path(target).write_text(picture(list(csv.DictReader(lines))), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
