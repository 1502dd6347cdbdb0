"""The display of apps in their folders: attachable apps, their size on the disk, removed parts."""

from __future__ import annotations

from datetime import datetime

from ..app import AppFolders, Attachable, Removed
from ..charts.value_texts import Figure, size
from .display import blocks_of
from .drawings.result_blocks import Block
from .drawings.text_tables import Grid


@blocks_of(Attachable)
def _(attachable: Attachable) -> list[Block]:
    rows = [(f.name, _minute(f.record.at), f.owner or "free", str(f.home)) for f in attachable]
    grid = Grid(["app", "deployed", "owner", "folder"], rows, what="app")
    return [grid if attachable else "No app can be attached yet. %%siddhi NAME deploys the text of a cell."]


def _minute(ms: int) -> str:
    """A time in the zone of this machine."""
    return datetime.fromtimestamp(ms / 1000).strftime("%Y-%m-%d %H:%M")


@blocks_of(AppFolders)
def _(folders: AppFolders) -> list[Block]:
    rows = [
        (f.name, _minute(f.deployed), Figure(size(f.size)), Figure(size(f.trash)), f.owner or "free", str(f.home))
        for f in folders
    ]
    grid = Grid(["app", "deployed", "size", "of it trash", "owner", "folder"], rows, what="app")
    return [grid if folders else "No app was deployed here before."]


def removed_text(removal: Removed) -> str:
    """`Trades: removed 1.2 MB in /home/me/apps/Trades; its aggregations in x.duckdb stay`."""
    stays_text = f"; what stays: {', '.join(removal.left)}" if removal.left else ""
    return f"{removal.name}: removed {size(removal.size)} in {removal.home}{stays_text}"
