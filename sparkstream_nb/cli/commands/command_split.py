"""`sparkstream split`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from ...app.audit.splitting import split
from ...charts.value_texts import format_count
from ...messaging import Messaging
from ...siddhi_process import read_app
from ..compiling import compile_plan


def run(options: Any) -> int:
    """`sparkstream split`. Without --into and --make-topics it prints the apps and topics."""
    file = Path("app" if options.app == "-" else options.app)
    text = read_app(options.app)  # once: standard input is gone then
    name = options.name or compile_plan(options, text).name or file.stem
    parts = split(text, kafka=options.kafka, nats=options.nats, name=name, variables=dict(options.param))
    files = [] if options.into is None else parts.write(options.into)
    new_topics = parts.make_topics(options.allow) if options.make_topics else None
    print(parts)
    if new_topics is not None:
        print(f"{format_count(len(new_topics), 'topic')} made, {len(parts.topics) - len(new_topics)} there before")
    grants = " ".join(f"--allow {parts.messaging.value}={server}" for server in parts.servers.split(","))
    if parts.messaging is Messaging.NATS:
        files.reverse()  # NATS keeps nothing for absent subscribers: readers begin before their writers
    for path in files:
        print(f"sparkstream run {shlex.quote(str(path))} {grants}")
    return 0
