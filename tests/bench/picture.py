"""The growth curves as one SVG, drawn by plotly in a headless browser."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

import plotly.graph_objects as go
from playwright.sync_api import sync_playwright
from plotly.subplots import make_subplots

from bench.growth import Curve, Point

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def save(curves: Sequence[tuple[Curve, Sequence[Point]]], path: Path) -> None:
    """Four panels beside one another; the band is 20 % around the first point."""
    figure = make_subplots(rows=1, cols=len(curves), shared_yaxes=True, subplot_titles=[c.axis for c, _ in curves])
    for i, (_, points) in enumerate(curves, 1):
        x, y = zip(*points, strict=True)
        figure.add_scatter(
            x=list(x), y=list(y), mode="lines+markers", line_color="#2a6f97", showlegend=False, row=1, col=i
        )
        figure.add_hrect(y0=0.8 * y[0], y1=1.2 * y[0], fillcolor="#2a6f97", opacity=0.12, line_width=0, row=1, col=i)
        figure.update_xaxes(type="log", dtick=1, row=1, col=i)
    figure.update_yaxes(rangemode="tozero")
    figure.update_yaxes(title_text="ns an event", row=1, col=1)
    figure.update_layout(template="plotly_white", width=1080, height=300, margin={"l": 60, "r": 20, "t": 40, "b": 40})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_svg(figure), encoding="utf-8")


def _svg(figure: go.Figure) -> str:
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.set_content(figure.to_html(include_plotlyjs=True, div_id="figure"))
        url: str = page.evaluate("Plotly.toImage(document.getElementById('figure'), {format: 'svg'})")
        browser.close()
    return unquote(url.split(",", 1)[1])
