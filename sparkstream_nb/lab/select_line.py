"""`%siddhi select`: the selection that the pictures and tables of an app share."""

from __future__ import annotations

from argparse import Namespace

from .. import app as api
from ..app.results.selected_events import Selection
from ..errors import Misuse


def select_events(o: Namespace) -> Selection:
    """Selects events by the options of a line; without any the selection as it is. Raises `Misuse` as `App.select`."""
    app = api.get(o.app)
    where: dict[str, list[str]] = {}
    for name, value in o.values:
        where.setdefault(name, []).append(value)
    has_criteria = bool(where or o.start or o.end or o.node)
    if o.clear and has_criteria:
        raise Misuse("--clear selects everything: leave the rest out")
    if o.clear or has_criteria:
        return app.select(start=o.start, end=o.end, nodes=o.node, where=where)
    return app.selection
