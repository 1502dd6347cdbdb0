"""Deployments of apps on simulated nodes: `deploy(text, nodes=3, mode="active-active")`.

app = deploy(text)
app.send("TradeStream", ["WSO2", 30.0])
app.query("from TradeAggregation within '2014-**-** **:**:**' per 'sec' select symbol, total").frame
"""

from __future__ import annotations

from ..limits import Limits
from ..retention import Retention
from ..simulation.faults import Cut, Kill, Pause, Restart, Slow
from ..simulation.resources import ResourceCluster, ResourceNode
from ..simulation.topology import Coordination, Pair
from .answers import AppGraph, Apps, Check, Errors, Events, FeedReport, PlanText, RepairList, Result, Sent, Stats
from .app import App, check_feed
from .attach import Attachable, FoundApp, attach, attachable
from .auditing import AppAudit, AuditReport
from .changes import Changes
from .check import check, explain, graph, repair
from .cluster_view import ClusterSnapshot
from .controls import Cluster
from .deploy import apps, changes, deploy, get, stop_all
from .deployment import Deployment
from .divergence import Divergence
from .failover import Failover
from .failover_study import FailoverStudy
from .feeding import Feed, Feeds, feed_of
from .feeding import all_feeds as feeds
from .frontend import Displayed
from .progress import FeedProgress, ProgressLine
from .removal import AppFolders, Removed, app_folders, empty_trash_of, remove_app
from .rescheduling import DistributedFailover
from .splitting import SplitApp, split
from .study import Study
from .tail import Tail, TailSnapshot

__all__ = [
    "App",
    "AppAudit",
    "AppFolders",
    "AppGraph",
    "Apps",
    "Attachable",
    "AuditReport",
    "Changes",
    "Check",
    "Cluster",
    "ClusterSnapshot",
    "Coordination",
    "Cut",
    "Deployment",
    "Displayed",
    "DistributedFailover",
    "Divergence",
    "Errors",
    "Events",
    "Failover",
    "FailoverStudy",
    "Feed",
    "FeedProgress",
    "FeedReport",
    "Feeds",
    "FoundApp",
    "Kill",
    "Limits",
    "Pair",
    "Pause",
    "PlanText",
    "ProgressLine",
    "Removed",
    "RepairList",
    "ResourceCluster",
    "ResourceNode",
    "Restart",
    "Result",
    "Retention",
    "Sent",
    "Slow",
    "SplitApp",
    "Stats",
    "Study",
    "Tail",
    "TailSnapshot",
    "app_folders",
    "apps",
    "attach",
    "attachable",
    "changes",
    "check",
    "check_feed",
    "deploy",
    "empty_trash_of",
    "explain",
    "feed_of",
    "feeds",
    "get",
    "graph",
    "remove_app",
    "repair",
    "split",
    "stop_all",
]
