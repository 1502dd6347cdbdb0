"""Spark as the carrier of node engines: session, sources, routing, state, commit."""

from __future__ import annotations

import warnings

# Before anything imports pyspark, which says this many times over. pandas 3 works with all that is used of Spark here,
# and a user can do nothing about the warning.
warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)
