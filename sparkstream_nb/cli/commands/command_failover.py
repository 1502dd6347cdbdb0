"""`sparkstream failover`."""

from __future__ import annotations

from typing import Any

from ...app import App, Failover
from ...app.config.conf import HA, node_files
from ...app.config.secrets import References
from ...errors import Misuse
from ...lab.compared_shown import Comparison
from ..comparing import compare_nodes


def run(options: Any) -> int:
    """`sparkstream failover`."""

    def compare(app: App) -> Comparison:
        result = app.failover()
        assert isinstance(result, Failover)  # of mode ha
        return result

    _check_pair(options)
    return compare_nodes(options, compare, mode="ha", faults=options.faults or "random", seed=options.seed or 0)


def _check_pair(options: Any) -> None:
    """Raises `Misuse` for the deployment file of one node alone, as failovers need two."""
    if options.conf:
        references = References(dict(options.param), tuple(options.allow_env))
        if len(node_files(options.conf, ("", HA), references)) == 1:
            raise Misuse("--conf: a failover has two nodes: name the deployment files of both, or leave --conf out")
