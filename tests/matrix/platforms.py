"""Managed platforms: the Spark, Python, Java and packages that their makers name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Platform:
    """A managed platform's versions. `packages`: those of its list that this package and its extras need, or that come
    with them; empty where its maker names none. `newer`: the oldest that Apache's pyspark of this version takes, where
    the platform's own is older."""

    name: str
    spark: str
    python: str
    java: int
    packages: Mapping[str, str] = field(default_factory=dict)
    newer: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Its name as a folder and on the command line."""
        return self.name.lower().replace(" ", "-")


_NEEDS_OF_SPARK_4_1 = {
    "googleapis-common-protos": "1.71.0",
    "grpcio": "1.76.0",
    "grpcio-status": "1.76.0",
    "protobuf": "6.33.0",
}
"""For stateful processors and Connect."""

# The lists: github.com/databricks/environments, which Databricks makes of its release notes; the Conda environment of
# github.com/microsoft/synapse-spark-runtime. AWS and Google name Spark, Python and Java in their release notes, and no
# packages of Python's.
PLATFORMS = (
    Platform(
        "Databricks 17.3 LTS",
        spark="4.0.0",
        python="3.12",
        java=17,
        packages={
            "googleapis-common-protos": "1.65.0",
            "grpcio": "1.67.0",
            "grpcio-status": "1.67.0",
            "ipykernel": "6.29.5",
            "numpy": "2.1.3",
            "pandas": "2.2.3",
            "protobuf": "5.29.4",
            "pyarrow": "19.0.1",
            "python-dateutil": "2.9.0.post0",
            "pytz": "2024.1",
            "PyYAML": "6.0.2",
            "six": "1.16.0",
            "tornado": "6.4.2",
            "typing-extensions": "4.12.2",
            "tzdata": "2024.1",
        },
    ),
    Platform(
        "Databricks 18 LTS",
        spark="4.1.0",
        python="3.12",
        java=21,
        packages={
            "googleapis-common-protos": "1.65.0",
            "grpcio": "1.67.0",
            "grpcio-status": "1.67.0",
            "ipykernel": "6.29.5",
            "numpy": "2.1.3",
            "pandas": "2.2.3",
            "protobuf": "5.29.4",
            "pyarrow": "21.0.0",
            "python-dateutil": "2.9.0.post0",
            "pytz": "2024.1",
            "PyYAML": "6.0.2",
            "regex": "2024.11.6",
            "six": "1.17.0",
            "tornado": "6.5.1",
            "typing-extensions": "4.12.2",
            "tzdata": "2024.1",
            "zstandard": "0.23.0",
        },
        newer=_NEEDS_OF_SPARK_4_1,
    ),
    Platform(
        "Databricks 19",
        spark="4.2.0",
        python="3.12",
        java=21,
        packages={
            "googleapis-common-protos": "1.71.0",
            "grpcio": "1.76.0",
            "grpcio-status": "1.76.0",
            "ipykernel": "6.31.0",
            "numpy": "2.3.4",
            "pandas": "2.3.3",
            "protobuf": "6.33.5",
            "pyarrow": "21.0.0",
            "python-dateutil": "2.9.0.post0",
            "pytz": "2025.2",
            "PyYAML": "6.0.3",
            "regex": "2025.9.1",
            "six": "1.17.0",
            "tornado": "6.5.1",
            "typing-extensions": "4.15.0",
            "tzdata": "2026.2",
            "zstandard": "0.25.0",
        },
    ),
    Platform("EMR 8", spark="4.0.2", python="3.13", java=17),
    Platform(
        "Fabric 2.0",
        spark="4.1.1",
        python="3.13",
        java=21,
        packages={
            "ipykernel": "7.3.0",
            "numpy": "2.4.1",
            "pandas": "2.3.3",
            "portalocker": "3.2.0",
            "protobuf": "5.29.6",
            "py4j": "0.10.9.9",
            "pyarrow": "24.0.0",
            "python-dateutil": "2.9.0.post0",
            "PyYAML": "6.0.3",
            "regex": "2026.5.9",
            "SQLAlchemy": "2.0.51",
            "tornado": "6.5.7",
        },
        newer=_NEEDS_OF_SPARK_4_1,
    ),
    Platform("Glue 6", spark="4.1.1", python="3.13", java=17),
    Platform("Google Managed Spark 3.0", spark="4.0.1", python="3.12", java=21),
)
