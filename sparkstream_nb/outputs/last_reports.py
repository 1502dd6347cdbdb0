"""The last reports of an app's nodes on the disk: views show them for an app that was started again, until its next
micro-batch.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path

from ..journal.private import write_private
from ..journal.result_rows import NodeReport
from ..system import put_in_place


class LastReports:
    """The reports of a micro-batch in the file `path`, by the numbers of the nodes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, reports: Mapping[int, NodeReport]) -> None:
        """Replaces the file. That it cannot be written, as on a full disk, is no reason to fail a micro-batch."""
        new = self.path.with_suffix(".new")
        texts = {str(node): r.to_json().decode() for node, r in reports.items()}
        with contextlib.suppress(OSError):
            write_private(new, json.dumps(texts).encode())
            put_in_place(new, self.path)

    def read(self) -> dict[int, NodeReport]:
        """The reports; empty if the file is missing or incomplete."""
        try:
            texts = json.loads(self.path.read_text(encoding="utf-8"))
            return {int(node): NodeReport.of_json(text.encode()) for node, text in texts.items()}
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return {}
