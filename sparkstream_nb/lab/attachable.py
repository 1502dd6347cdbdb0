"""The display of apps in their folders: attachable apps, their size on the disk, removed parts."""

from __future__ import annotations

import html as markup
from datetime import datetime

from ..app import AppFolders, Attachable, Removed
from ..charts.value_texts import Figure, size
from .display import html, text
from .drawings.text_tables import Grid, paragraph

_NONE_ATTACHABLE = "No app can be attached yet. %%siddhi NAME deploys the text of a cell."


def _attachable_grid(attachable: Attachable) -> Grid:
    rows = [(f.name, _minute(f.record.at), f.owner or "free", str(f.home)) for f in attachable]
    return Grid(["app", "deployed", "owner", "folder"], rows, what="app")


def _minute(ms: int) -> str:
    """A time in the zone of this machine."""
    return datetime.fromtimestamp(ms / 1000).strftime("%Y-%m-%d %H:%M")


@text.register
def _(attachable: Attachable) -> str:
    return _attachable_grid(attachable).text() if attachable else _NONE_ATTACHABLE


@html.register
def _(attachable: Attachable) -> str:
    return _attachable_grid(attachable).html() if attachable else paragraph(markup.escape(_NONE_ATTACHABLE))


_NONE_DEPLOYED = "No app was deployed here before."


def _folders_grid(folders: AppFolders) -> Grid:
    rows = [
        (f.name, _minute(f.deployed), Figure(size(f.size)), Figure(size(f.trash)), f.owner or "free", str(f.home))
        for f in folders
    ]
    return Grid(["app", "deployed", "size", "of it trash", "owner", "folder"], rows, what="app")


@text.register
def _(folders: AppFolders) -> str:
    return _folders_grid(folders).text() if folders else _NONE_DEPLOYED


@html.register
def _(folders: AppFolders) -> str:
    return _folders_grid(folders).html() if folders else paragraph(_NONE_DEPLOYED)


def removed_text(removal: Removed) -> str:
    """`Trades: removed 1.2 MB in /home/me/apps/Trades; its aggregations in x.duckdb stay`."""
    stays_text = f"; what stays: {', '.join(removal.left)}" if removal.left else ""
    return f"{removal.name}: removed {size(removal.size)} in {removal.home}{stays_text}"
