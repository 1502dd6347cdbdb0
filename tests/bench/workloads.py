"""The throughput of workloads on one node, on the engine alone or on Spark, a line of JSON for each.

    python -m tests.bench.workloads WORKLOADS.json EVENTS.csv [--on spark] [--only NAME ...] [--batch ROWS]

`WORKLOADS.json` is a list of `{name, app}`, each app with one input stream; `EVENTS.csv` has the stream's events, no
header, the time in ms last. `tests/reference` has both: `workloads.json`, and `trades.py`, which writes the events.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from . import engine_bench


def main(words: Sequence[str] | None = None) -> int:
    """The command; 0 once all workloads are measured."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("workloads", type=Path)
    p.add_argument("events", type=Path)
    p.add_argument("--on", choices=("engine", "spark"), default="engine")
    p.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these workloads only")
    p.add_argument("--batch", type=int, metavar="ROWS", help="events of a micro-batch")
    options = p.parse_args(words)
    workloads = json.loads(options.workloads.read_text(encoding="utf-8"))
    for name in set(options.only) - {w["name"] for w in workloads}:
        p.error(f"{options.workloads} has no workload '{name}'")
    for workload in workloads:
        if options.only and workload["name"] not in options.only:
            continue
        if options.on == "engine":
            lines = [engine_bench.run(workload, options.events, options.batch or engine_bench.BATCH)]
        else:
            from . import spark_bench

            lines = spark_bench.run(workload, options.events, options.batch)
        for line in lines:
            print(json.dumps(line), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
