"""The node, or the deployment files of `--conf`, that an app is checked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..app.audit.checking import Surroundings

NODE: Mapping[str, str] = {"shardId": "node-1"}
"""The properties of a node: a deployment gives each a shard id, and an app is checked as if it ran on one of them."""


def surroundings_of(options: Any) -> Surroundings | None:
    """The deployment files of `--conf`; None where the command has none."""
    if not getattr(options, "conf", None):
        return None
    from ..app.audit.checking import Surroundings  # most commands have no files, and need no YAML

    return Surroundings.of(dict(options.param), options.conf, options.allow_env)
