"""The display of apps in their folders: attachable apps, their size on the disk, removed parts."""

from __future__ import annotations

import html as markup
from datetime import datetime

from ..app import AppFolders, Attachable, Removed
from .display import html, text
from .drawings.text_tables import Figure, Grid, paragraph, size

_NONE_ATTACHABLE = "No app can be attached yet. %%siddhi NAME deploys the text of a cell."


def _attachable_grid(shown: Attachable) -> Grid:
    rows = [(f.name, _minute(f.record.at), f.owner or "free", str(f.home)) for f in shown]
    return Grid(["app", "deployed", "owner", "folder"], rows, what="app")


def _minute(ms: int) -> str:
    """A time in the zone of this machine."""
    return datetime.fromtimestamp(ms / 1000).strftime("%Y-%m-%d %H:%M")


@text.register
def _(shown: Attachable) -> str:
    return _attachable_grid(shown).text() if shown else _NONE_ATTACHABLE


@html.register
def _(shown: Attachable) -> str:
    return _attachable_grid(shown).html() if shown else paragraph(markup.escape(_NONE_ATTACHABLE))


_NONE_DEPLOYED = "No app was deployed here before."


def _folders_grid(shown: AppFolders) -> Grid:
    rows = [
        (f.name, _minute(f.deployed), Figure(size(f.size)), Figure(size(f.trash)), f.owner or "free", str(f.home))
        for f in shown
    ]
    return Grid(["app", "deployed", "size", "of it trash", "owner", "folder"], rows, what="app")


@text.register
def _(shown: AppFolders) -> str:
    return _folders_grid(shown).text() if shown else _NONE_DEPLOYED


@html.register
def _(shown: AppFolders) -> str:
    return _folders_grid(shown).html() if shown else paragraph(_NONE_DEPLOYED)


def removed_text(removed: Removed) -> str:
    """`Trades: removed 1.2 MB in /home/me/apps/Trades; its aggregations in x.duckdb stay`."""
    left = f"; what stays: {', '.join(removed.left)}" if removed.left else ""
    return f"{removed.name}: removed {size(removed.size)} in {removed.home}{left}"
