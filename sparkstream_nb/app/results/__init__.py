"""Answers of an app: outputs, statistics, aggregations, divergences and errors."""
