"""A streaming query of Spark's over an inbox: its session, and its frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from ...journal import journal
from .inbox_source import InboxSource
from .processor import NodeProcessor
from .remote import open_sibling
from .session_settings import apply_settings
from .settings import defaults

POLLING_MS = 25
"""Interval at which Spark looks for new input."""


def session_for(session: SparkSession, partitions: int) -> SparkSession:
    """A session of its own on the same Spark, with as many shuffle partitions as nodes have places. Raises
    SparkUnavailable if it refuses settings."""
    sibling = open_sibling(session)
    settings: dict[str, object] = {
        name: value
        for name, value in defaults().items()
        if name.startswith("spark.sql.") and sibling.conf.isModifiable(name)
    }
    settings |= {
        "spark.sql.shuffle.partitions": partitions,
        "spark.sql.streaming.pollingDelay": POLLING_MS,
        "spark.sql.adaptive.enabled": "false",
    }
    apply_settings(sibling, settings)
    sibling.dataSource.register(InboxSource)
    return sibling


def start_frame(session: SparkSession, options: Mapping[str, str], processor: NodeProcessor) -> Any:
    """The streaming frame of `journal.SCHEMA`: the inbox's blobs through the node processor."""
    return (
        session.readStream.format(InboxSource.name())
        .options(**options)
        .load()
        .groupBy("key")
        .transformWithStateInPandas(processor, journal.SCHEMA, "append", "none")
    )
