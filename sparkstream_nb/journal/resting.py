"""Resting nodes: a micro-batch leaves out nodes that none of its events reaches and for which nothing is due in it.

A node costs a task's time and a new version of its state, even if it has nothing to do. When a resting node works
again, it makes up for the missed movements of the clock by one; its output is the same (`NodeEngine.may_rest`).

The commit writes down until when each node may rest, and for which place in the journal that holds. The planner reads
it, and if it is missing, all nodes work: after a start, if a commit comes later than the next plan (Spark Connect), and
if Spark's machines do not see the app's folder.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ..system import put_in_place
from .private import write_private

if TYPE_CHECKING:
    from .result_rows import NodeReport

_FILE = "resting.json"


def write_resting(folder: Path, seq: int, reports: Mapping[int, NodeReport]) -> None:
    """Writes down in the inbox `folder` until when the nodes may rest, by their last reports, while no event reaches
    them from entry `seq` on. That it cannot be written, as on a full disk, is no reason to fail a micro-batch."""
    due = {str(node): report.due for node, report in reports.items() if report.rests}
    new = folder / f"{_FILE}.new"
    with contextlib.suppress(OSError):
        write_private(new, json.dumps({"seq": seq, "due": due}).encode())
        put_in_place(new, folder / _FILE)


def may_rest(folder: Path, seq: int, clock: int) -> frozenset[int]:
    """The nodes that may rest in a micro-batch from entry `seq` on which moves the clock to `clock` (ms), if no event
    of it reaches them."""
    try:
        due_times = json.loads((folder / _FILE).read_text(encoding="ascii"))
        if due_times["seq"] != seq:
            return frozenset()
        return frozenset(int(node) for node, due in due_times["due"].items() if due is None or due > clock)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return frozenset()


def forget_resting(folder: Path) -> None:
    """Lets all nodes work in the next micro-batch: their queries may have changed."""
    (folder / _FILE).unlink(missing_ok=True)
