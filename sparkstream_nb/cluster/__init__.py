"""Deployments of apps on simulated nodes: `deploy(text, nodes=3, mode="active-active")`.

app = deploy(text)
app.send("TradeStream", ["WSO2", 30.0])
app.query("from TradeAggregation within '2014-**-** **:**:**' per 'sec' select symbol, total").frame

Names are loaded on their first use: what only looks at texts loads nothing that runs apps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import on_first_use

if TYPE_CHECKING:
    from ..limits import Limits
    from ..retention import Retention
    from ..simulation.faults import Cut, Kill, Pause, Restart, Slow
    from ..simulation.resources import ResourceCluster, ResourceNode
    from ..simulation.topology import Coordination, Pair
    from .answers import Apps, Errors, Events, FeedReport, Result, Sent, Stats
    from .app import App, check_feed
    from .attaching import Attachable, FoundApp, attach, attachable
    from .auditing import AppAudit, AuditReport
    from .changing import Changes
    from .checking import check, explain, graph, repair
    from .cluster_view import ClusterSnapshot
    from .controls import Cluster
    from .deploying import apps, changes, deploy, get, stop_all
    from .deployment import Deployment
    from .divergence import Divergence
    from .failover import Failover
    from .failover_study import FailoverStudy
    from .feeding import Feed, Feeds, all_feeds, feed_of
    from .frontend import Displayed
    from .progress import FeedProgress, ProgressLine
    from .removal import AppFolders, Removed, app_folders, empty_trash_of, remove_app
    from .rescheduling import DistributedFailover
    from .source_reading import Reading
    from .splitting import SplitApp, split
    from .study import Study
    from .tail import Tail, TailSnapshot
    from .text_answers import AppGraph, Check, PlanText, RepairList

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
    "Reading",
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
    "all_feeds",
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
    "get",
    "graph",
    "remove_app",
    "repair",
    "split",
    "stop_all",
]

if not TYPE_CHECKING:  # for a type checker, there is what is imported above, and nothing else
    __getattr__, __dir__ = on_first_use(
        __name__,
        {
            "..limits": ["Limits"],
            "..retention": ["Retention"],
            "..simulation.faults": ["Cut", "Kill", "Pause", "Restart", "Slow"],
            "..simulation.resources": ["ResourceCluster", "ResourceNode"],
            "..simulation.topology": ["Coordination", "Pair"],
            ".answers": ["Apps", "Errors", "Events", "FeedReport", "Result", "Sent", "Stats"],
            ".app": ["App", "check_feed"],
            ".attaching": ["Attachable", "FoundApp", "attach", "attachable"],
            ".auditing": ["AppAudit", "AuditReport"],
            ".changing": ["Changes"],
            ".checking": ["check", "explain", "graph", "repair"],
            ".cluster_view": ["ClusterSnapshot"],
            ".controls": ["Cluster"],
            ".deploying": ["apps", "changes", "deploy", "get", "stop_all"],
            ".deployment": ["Deployment"],
            ".divergence": ["Divergence"],
            ".failover": ["Failover"],
            ".failover_study": ["FailoverStudy"],
            ".feeding": ["Feed", "Feeds", "all_feeds", "feed_of"],
            ".frontend": ["Displayed"],
            ".progress": ["FeedProgress", "ProgressLine"],
            ".removal": ["AppFolders", "Removed", "app_folders", "empty_trash_of", "remove_app"],
            ".rescheduling": ["DistributedFailover"],
            ".source_reading": ["Reading"],
            ".splitting": ["SplitApp", "split"],
            ".study": ["Study"],
            ".tail": ["Tail", "TailSnapshot"],
            ".text_answers": ["AppGraph", "Check", "PlanText", "RepairList"],
        },
    )
