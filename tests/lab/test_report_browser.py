"""The report to send, in a real browser without a network: its pictures are plots, light and dark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sparkstream_nb import app as api
from sparkstream_nb.lab.report_page import write_report

from .test_report_page import app

__all__ = ["app"]


@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_pictures_can_be_explored_without_a_network(app: api.App, chromium: Any, tmp_path: Path) -> None:
    path = write_report([app], tmp_path / "report.html")
    for scheme, ink in (("light", "rgb(34, 34, 34)"), ("dark", "rgb(221, 221, 221)")):
        context = chromium.new_context(color_scheme=scheme)
        page, requested = context.new_page(), []
        page.on("request", lambda r, to=requested: to.append(r.url))
        page.goto(path.as_uri())
        page.wait_for_function("document.querySelectorAll('.sparkstream-plot .main-svg').length >= 6")
        assert page.evaluate("document.querySelector('.sparkstream-plot')._fullLayout.font.color") == ink
        names = page.evaluate("document.querySelector('.sparkstream-plot')._fullData.map((t) => t.name)")
        assert {"node-1", "merged"} <= set(names)
        assert [u for u in requested if not u.startswith(("data:", "blob:"))] == [path.as_uri()]
        context.close()
