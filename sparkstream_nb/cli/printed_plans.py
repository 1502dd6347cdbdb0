"""Plans of apps in print, and their pictures."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import Misuse, escape_controls
from ..lab.graph.graph_drawing import svg
from ..plan import Plan
from ..plan.reports.app_graph import graph_of
from .checked_apps import for_each_app, opener


def print_plans(options: Any, describe: Callable[[Plan], str]) -> int:
    """Prints each app's plan as `describe` writes it, or draws the apps, where `--svg` names a file."""
    if options.svg is not None:
        return _draw_app(options)
    open_app = opener(options)

    def one(path: str) -> None:
        checked_app = open_app(path)
        print_head(options, path)
        print("\n".join([describe(checked_app.plan), *checked_app.notes]))

    return for_each_app(options, one)


def print_head(options: Any, path: str) -> None:
    """Prints which app the next lines are about, where there are several."""
    if len(options.apps) > 1:
        print(f"{path}:")


def _draw_app(options: Any) -> int:
    """The picture of one app."""
    if len(options.apps) != 1:
        raise Misuse("--svg draws one app")
    checked_app = opener(options)(options.apps[0])
    for note in checked_app.notes:
        print(f"{options.apps[0]}: {note}", file=sys.stderr)
    write_picture(options.svg, svg(graph_of(checked_app.plan)))
    return 0


def write_picture(path: str, picture: str) -> None:
    """Writes an SVG element into a file; `-` is standard output. Raises `Misuse` where that cannot be."""
    picture = escape_controls(picture)
    if path == "-":
        print(picture)
        return
    try:
        Path(path).write_text(picture + "\n", encoding="utf-8")
    except OSError as e:
        raise Misuse(f"{path} cannot be written: {e.strerror}") from e
