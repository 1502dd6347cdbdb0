"""Deployments of apps on simulated nodes: `deploy(text, nodes=3, mode="active-active")`.

app = deploy(text)
app.send("TradeStream", ["WSO2", 30.0])
app.query("from TradeAggregation within '2014-**-** **:**:**' per 'sec' select symbol, total").frame
"""

from __future__ import annotations

from .answers import FeedReport, Result
from .app import App
from .deploy import apps, deploy, get, stop_all
from .progress import FeedProgress, ProgressLine

__all__ = ["App", "FeedProgress", "FeedReport", "ProgressLine", "Result", "apps", "deploy", "get", "stop_all"]
