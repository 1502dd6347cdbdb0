"""What `make test` shows in a browser besides the help while one writes: a view that follows a feed, and a cluster that
is worked on by its buttons. The other files with `browser` in their names show the rest."""

from __future__ import annotations

import pytest

from . import test_cluster_browser as clusters
from . import test_view_browser as views
from .browser import Lab

pytestmark = pytest.mark.timeout(300)


def test_a_view_follows_a_feed(lab: Lab) -> None:
    with lab.notebook("follows.ipynb", views.CELLS, height=1600) as page:
        views.observe(page)
        views.follow(lab, page)


def test_a_cluster_after_a_kill_and_after_a_reload(lab: Lab) -> None:
    with lab.notebook("killed.ipynb", clusters.CELLS, height=1700) as page:
        clusters.wait_for_map(lab, page)
        clusters.node(page, "node-1").locator("button.kill").click()
        said = page.locator(f"{clusters.CLUSTER} .said")
        said.locator("text=kill node-1: waits for the clock").wait_for()
        lab.run(page, "feed(80, 180)")
        clusters.wait_for_role(page, "node-1", "down")
        clusters.wait_for_role(page, "node-2", "active")
        lab.idle(page)
        lab.save(page)
        page.reload()
        clusters.wait_for_role(page, "node-1", "down")
        clusters.wait_for_role(page, "node-2", "active")
        lab.idle(page)
        clusters.node(page, "node-1").locator("button.restart").click()
        said.locator("text=restart node-1: waits for the clock").wait_for()
        lab.run(page, "feed(180, 195)")
        clusters.wait_for_role(page, "node-1", "passive")
        lab.picture(page, "cluster-reloaded")
    assert not lab.elsewhere()
