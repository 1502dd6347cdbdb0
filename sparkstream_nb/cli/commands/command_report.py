"""`sparkstream report`."""

from __future__ import annotations

from typing import Any

from ...errors import Misuse
from ..comparing import open_fed_app
from ..replays_shown import show_replays

try:
    from ...lab.report_page import write_report
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] not in ("IPython", "anywidget", "ipywidgets", "traitlets"):
        raise
    what = "sparkstream report needs the packages that draw in notebooks"
    raise Misuse(f"{what}: pip install 'sparkstream-nb[magics]'") from None


def run(options: Any) -> int:
    """`sparkstream report`."""
    deployment = {"nodes": options.nodes, "mode": options.mode, "routing": options.routing}
    with open_fed_app(options, deployment) as (app, code):
        with show_replays(f"{app.name}: the report is written; Ctrl-C ends it"):
            path = write_report([app], options.out)
        print(f"{path}: {path.stat().st_size:,} bytes")
    return code
