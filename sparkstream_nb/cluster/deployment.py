"""How an app is deployed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from ..errors import Misuse, SparkStreamError, did_you_mean
from ..stores.address import Database
from .conf import NodeFile
from .secrets import References

MODES = ("single", "active-active")


@dataclass(frozen=True)
class Deployment:
    """What `deploy` was asked for, with its defaults filled in. See `deploy` for what each field means.

    `files`: the nodes' deployment files, or none. `databases`: by aggregation, those that `@store` names.
    `references`: where values of `${...}` come from.
    """

    name: str
    mode: str
    routing: str
    shard_ids: tuple[str, ...]
    home: Path
    store: str | Path | None = None
    fresh: bool = False
    allow_scripts: bool = False
    rows_per_micro_batch: int | None = None
    start: int | None = None
    timezone: str = "UTC"
    files: tuple[NodeFile, ...] = ()
    databases: Mapping[str, Database] = field(default_factory=dict)
    references: References = field(default_factory=References, repr=False)

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


def milliseconds(time: int | str | datetime, what: str) -> int:
    """A time as ms since 1970: the number, a datetime, or a text with either; UTC if it has no offset.

    `what` names the argument in messages. Raises `Misuse` for a text that is neither.
    """
    if isinstance(time, int):
        return time
    try:
        moment = int(time) if isinstance(time, str) else time
    except ValueError:
        try:
            moment = datetime.fromisoformat(str(time))
        except ValueError:
            raise Misuse(f"{what} {time} is neither ms since 1970 nor a time such as 2013-01-01T06:00:00") from None
    if isinstance(moment, int):
        return moment
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
