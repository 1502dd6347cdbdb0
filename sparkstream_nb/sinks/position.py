"""Position of a sink in a stream's outputs, kept in the app's folder."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from ..checksums import from_json, to_json
from ..errors import SparkStreamError
from ..journal.private import private_file, private_folder
from ..outputs.output_files import OutputFiles
from ..system import put_in_place, to_disk


@dataclass(frozen=True)
class SinkPosition:
    """The next output of `stream` to deliver is row `row` of micro-batch `batch`.

    Counts of events since the app's run began: `sent`; `failed`, which cannot be delivered; `dropped`, which went
    before they were sent. `state` is the target's own state: plain JSON.
    """

    batch: int = 0
    row: int = 0
    sent: int = 0
    failed: int = 0
    dropped: int = 0
    state: Mapping[str, Any] = field(default_factory=dict)
    stream: str = ""


def read_position(path: Path) -> SinkPosition | None:
    """The position in a file; None if there is none yet. Raises SparkStreamError for a file that cannot be read."""
    try:
        members = from_json(path.read_text(encoding="utf-8"))
        return SinkPosition(**{f.name: members[f.name] for f in fields(SinkPosition)})
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        raise SparkStreamError(
            f"{path} cannot be read: it was cut off or changed. Put it back from a copy, or remove it: the sink then "
            "begins with the next outputs"
        ) from None


def count_unsent(run_folder: Path, streams: Collection[str] | None = None) -> int:
    """Number of outputs in the folder of an app's run that its sinks have not dealt with, of these streams (None: of
    all); a sink whose position cannot be read is left out.
    """
    outputs, out = OutputFiles(run_folder / "outputs", ()), 0
    for file in (run_folder / "sinks").glob("*.json"):
        with contextlib.suppress(SparkStreamError, OSError):
            p = read_position(file)
            if p is not None and (streams is None or p.stream in streams):
                out += outputs.count_after(p.stream, p.batch, p.row, sys.maxsize)
    return out


def write_position(path: Path, position: SinkPosition) -> None:
    """Replaces the file, whole or not at all; it is on the disk when this returns."""
    private_folder(path.parent)
    new = private_file(path.with_suffix(".new"))
    new.write_text(to_json(asdict(position)), encoding="utf-8")
    to_disk(new)
    put_in_place(new, path)
    to_disk(path.parent)
