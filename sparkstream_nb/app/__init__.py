"""Deployments of apps on simulated nodes: `deploy(text, nodes=3, mode="active-active")`.

app = deploy(text)
app.send("TradeStream", ["WSO2", 30.0])
app.query("from TradeAggregation within '2014-**-** **:**:**' per 'sec' select symbol, total").frame

Names are loaded on their first use: functions on texts alone load nothing that runs apps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import on_first_use

if TYPE_CHECKING:
    from ..limits import Limits
    from ..messaging import Messaging
    from ..retention import Retention
    from ..runners.spark_frames import SiddhiFrames, siddhi
    from ..simulation.faults import Cut, Kill, Pause, Restart, Slow
    from ..simulation.resources import ResourceCluster, ResourceNode
    from ..simulation.topology import Coordination, Pair
    from ..sources.disorder import Disorder
    from .attaching import Attachable, FoundApp, attach, attachable
    from .audit.auditing import AppAudit, AuditReport
    from .audit.checking import check, explain, graph, repair
    from .audit.splitting import SplitApp, split
    from .deploying import apps, changes, deploy, get, overview, stop_all
    from .deployment.changing import Changes
    from .deployment.deployment import Deployment
    from .explaining.branch import Branch
    from .explaining.event_history import EventHistory, OutputOrigin
    from .explaining.why_not import WhyNot
    from .generating import generate
    from .plotting import plot
    from .removal import AppFolders, Removed, app_folders, empty_trash_of, remove_app
    from .results.answers import Errors, Events, FeedReport, Result, Sent, Stats
    from .results.app_profile import Profile
    from .results.divergence import Divergence
    from .results.failover import Failover
    from .results.failover_study import FailoverStudy
    from .results.feed_progress import FeedProgress, ProgressLine
    from .results.frontend import Displayed
    from .results.label_scores import Labels
    from .results.moment import Moment, NodeMoment, QueryMoment
    from .results.overview import Overview
    from .results.rescheduling import DistributedFailover
    from .results.rule_comparison import RuleComparison
    from .results.rule_sweep import RuleSweep
    from .results.selected_events import Selection
    from .results.sql_answer import SqlAnswer, SqlRelations
    from .results.stream_chart import Chart, ChartSnapshot
    from .results.stream_tail import Tail, TailSnapshot
    from .results.text_answers import AppGraph, Check, PlanText, RepairList
    from .results.traces import PatternTrace, WindowTrace
    from .running.app import App, check_feed
    from .running.apps import Apps
    from .running.background import Feed, Feeds, all_feeds, feed_of
    from .running.frame_feed import FrameFeed
    from .running.source_reading import Reading
    from .running.study import Study
    from .sql_queries import sql, sql_relations
    from .tracing.tracing import trace
    from .views.cluster_view import ClusterSnapshot
    from .views.controls import Cluster

__all__ = [
    "App",
    "AppAudit",
    "AppFolders",
    "AppGraph",
    "Apps",
    "Attachable",
    "AuditReport",
    "Branch",
    "Changes",
    "Chart",
    "ChartSnapshot",
    "Check",
    "Cluster",
    "ClusterSnapshot",
    "Coordination",
    "Cut",
    "Deployment",
    "Disorder",
    "Displayed",
    "DistributedFailover",
    "Divergence",
    "Errors",
    "EventHistory",
    "Events",
    "Failover",
    "FailoverStudy",
    "Feed",
    "FeedProgress",
    "FeedReport",
    "Feeds",
    "FoundApp",
    "FrameFeed",
    "Kill",
    "Labels",
    "Limits",
    "Messaging",
    "Moment",
    "NodeMoment",
    "OutputOrigin",
    "Overview",
    "Pair",
    "PatternTrace",
    "Pause",
    "PlanText",
    "Profile",
    "ProgressLine",
    "QueryMoment",
    "Reading",
    "Removed",
    "RepairList",
    "ResourceCluster",
    "ResourceNode",
    "Restart",
    "Result",
    "Retention",
    "RuleComparison",
    "RuleSweep",
    "Selection",
    "Sent",
    "SiddhiFrames",
    "Slow",
    "SplitApp",
    "SqlAnswer",
    "SqlRelations",
    "Stats",
    "Study",
    "Tail",
    "TailSnapshot",
    "WhyNot",
    "WindowTrace",
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
    "generate",
    "get",
    "graph",
    "overview",
    "plot",
    "remove_app",
    "repair",
    "siddhi",
    "split",
    "sql",
    "sql_relations",
    "stop_all",
    "trace",
]

if not TYPE_CHECKING:  # type checkers see only the imports above
    __getattr__, __dir__ = on_first_use(
        __name__,
        {
            "..limits": ["Limits"],
            "..messaging": ["Messaging"],
            "..retention": ["Retention"],
            "..runners.spark_frames": ["SiddhiFrames", "siddhi"],
            "..simulation.faults": ["Cut", "Kill", "Pause", "Restart", "Slow"],
            "..simulation.resources": ["ResourceCluster", "ResourceNode"],
            "..simulation.topology": ["Coordination", "Pair"],
            "..sources.disorder": ["Disorder"],
            ".results.answers": ["Errors", "Events", "FeedReport", "Result", "Sent", "Stats"],
            ".results.overview": ["Overview"],
            ".results.app_profile": ["Profile"],
            ".running.app": ["App", "check_feed"],
            ".running.apps": ["Apps"],
            ".attaching": ["Attachable", "FoundApp", "attach", "attachable"],
            ".audit.auditing": ["AppAudit", "AuditReport"],
            ".deployment.changing": ["Changes"],
            ".audit.checking": ["check", "explain", "graph", "repair"],
            ".views.cluster_view": ["ClusterSnapshot"],
            ".views.controls": ["Cluster"],
            ".deploying": ["apps", "changes", "deploy", "get", "overview", "stop_all"],
            ".deployment.deployment": ["Deployment"],
            ".generating": ["generate"],
            ".results.divergence": ["Divergence"],
            ".results.failover": ["Failover"],
            ".results.failover_study": ["FailoverStudy"],
            ".running.background": ["Feed", "Feeds", "all_feeds", "feed_of"],
            ".running.frame_feed": ["FrameFeed"],
            ".plotting": ["plot"],
            ".results.frontend": ["Displayed"],
            ".results.label_scores": ["Labels"],
            ".explaining.branch": ["Branch"],
            ".explaining.event_history": ["EventHistory", "OutputOrigin"],
            ".explaining.why_not": ["WhyNot"],
            ".results.moment": ["Moment", "NodeMoment", "QueryMoment"],
            ".results.rule_comparison": ["RuleComparison"],
            ".results.rule_sweep": ["RuleSweep"],
            ".results.feed_progress": ["FeedProgress", "ProgressLine"],
            ".removal": ["AppFolders", "Removed", "app_folders", "empty_trash_of", "remove_app"],
            ".results.rescheduling": ["DistributedFailover"],
            ".running.source_reading": ["Reading"],
            ".audit.splitting": ["SplitApp", "split"],
            ".running.study": ["Study"],
            ".results.selected_events": ["Selection"],
            ".results.sql_answer": ["SqlAnswer", "SqlRelations"],
            ".sql_queries": ["sql", "sql_relations"],
            ".results.stream_chart": ["Chart", "ChartSnapshot"],
            ".results.stream_tail": ["Tail", "TailSnapshot"],
            ".results.text_answers": ["AppGraph", "Check", "PlanText", "RepairList"],
            ".results.traces": ["PatternTrace", "WindowTrace"],
            ".tracing.tracing": ["trace"],
        },
    )
