"""The bar of a running feed as HTML."""

from __future__ import annotations

import html

from ...app import FeedProgress
from .text_tables import MUTED

_COLORS = {"failed": "#d55e00", "paused": "#e69f00", "stopping": "#e69f00", "stopped": "#888", "done": "#009e73"}


def bar_html(progress: FeedProgress, *, before: str = "", state: str = "running") -> str:
    """A bar and its words as HTML. `before` is text in front of the bar."""
    color = _COLORS.get(state, "#0072b2")
    share = f"{100 * progress.fraction:.1f}%"
    words = str(progress) if state in ("reading", "running") else f"{progress.describe(state)} · {state}"
    return (
        '<div class="sparkstream-feed" style="display:flex;align-items:center;gap:.7em;margin:.3em 0">'
        f"{f'<span>{html.escape(before)}</span>' if before else ''}"
        f'<span role="progressbar" aria-valuemin="0" aria-valuemax="100" aria-valuenow="{100 * progress.fraction:.1f}" '
        'style="flex:none;width:12em;height:.6em;border-radius:.3em;overflow:hidden;'
        'background:var(--jp-layout-color3,rgba(128,128,128,.3))">'
        f'<span style="display:block;height:100%;width:{share};background:{color}"></span></span>'
        f'<span style="{MUTED}">{html.escape(words)}</span></div>'
    )
