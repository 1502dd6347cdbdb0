"""How an app is deployed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..errors import SparkStreamError, did_you_mean

MODES = ("single", "active-active")


@dataclass(frozen=True)
class Deployment:
    """What `deploy` was asked for, with its defaults filled in. See `deploy` for what each field means."""

    name: str
    mode: str
    routing: str
    shard_ids: tuple[str, ...]
    home: Path
    store: str | Path | None = None
    fresh: bool = False
    allow_scripts: bool = False
    rows_per_micro_batch: int | None = None

    @property
    def nodes(self) -> int:
        """How many nodes are simulated."""
        return len(self.shard_ids)


def mode_of(mode: str | None, nodes: int) -> str:
    """The mode, or the default for so many nodes. Raises SparkStreamError where the two do not fit together."""
    if nodes < 1:
        raise SparkStreamError("A deployment has one node at least.")
    if mode is None:
        return "active-active" if nodes > 1 else "single"
    if mode not in MODES:
        hint = did_you_mean(mode, MODES)
        raise SparkStreamError(f"'{mode}' is not a deployment mode. Modes: {', '.join(MODES)}. {hint or ''}".strip())
    if mode == "single" and nodes != 1:
        raise SparkStreamError(f"Mode single is one node. For {nodes} nodes use mode active-active.")
    return mode
