"""`sparkstream query`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from ...app.config.grants import Grants
from ...app.config.secrets import References
from ...app.deployment.app_folder import default_home, document_home
from ...app.stored.maintenance import StoredApp
from ...app.stored.stored_queries import query_stored
from ...lab import connect
from ...siddhi_process import read_app
from ..compiling import compile_plan


def run(options: Any) -> int:
    """`sparkstream query`. It only reads; nodes that write to a database may run meanwhile."""
    connect()
    text, references = read_app(options.app), References(dict(options.param), tuple(options.allow_env))
    name = options.name or compile_plan(options).name
    home = Path(options.home or (document_home(Path(options.app)) if name is None else default_home(name)))
    file = home / "store.duckdb" if options.store is None else Path(options.store)
    conf = [Path(p) for p in options.conf or ()]
    app = StoredApp(text, file, conf, references, grants=Grants.of(options.allow), offline=options.offline)
    answer = query_stored(app, options.query, limit=options.limit, as_wso2=options.as_node or options.as_wso2)
    print(replace(answer, beside=options.by_shard))
    return 0
