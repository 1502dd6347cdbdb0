"""How the list of apps that can be attached looks."""

from __future__ import annotations

import html as markup
from datetime import datetime

from ..cluster import Attachable
from .display import html, text
from .tables import Grid, paragraph

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
