"""Runners of apps: Spark (`spark/`), or this process (`inline.py`). The rest of the package knows `runner_protocol` and
`choice` alone. Nothing is loaded here: Spark's processes import modules below that load no engine.
"""
