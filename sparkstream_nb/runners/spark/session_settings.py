"""Settings of a session that refuses some: serverless compute of Databricks tells and takes a few alone
(https://docs.databricks.com/aws/en/spark/conf)."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from ...errors import SparkUnavailable
from ...journal.causes import cause_of


def read_setting(session: SparkSession, name: str) -> str | None:
    """A setting of a session, or its default; None if the session does not tell it."""
    try:
        return session.conf.get(name)
    except PySparkException:
        return None


def apply_settings(session: SparkSession, settings: Mapping[str, object]) -> None:
    """Sets what an app needs of a session of its own. Raises SparkUnavailable if the session refuses it."""
    try:
        for name, value in settings.items():
            session.conf.set(name, str(value))
    except PySparkException as error:
        raise SparkUnavailable(
            f"This Spark session refuses settings that apps need ({cause_of(str(error))}). Deploy the app with "
            "master='inline': it runs in this process; siddhi() runs on the session's own frames"
        ) from error
