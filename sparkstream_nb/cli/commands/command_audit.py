"""`sparkstream audit`."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import Any

from ...app.audit.audit_answers import FeedFiles
from ...app.audit.auditing import AppAudit, AuditReport, as_json, as_sarif, audit_text
from ...app.config.conf import DISTRIBUTED, HA, node_files
from ...app.config.secrets import References
from ...errors import Misuse, SparkStreamError, escape_controls
from ...lab import connect
from ...lab.drawings.text_tables import fit_terminal
from ...lab.plans_shown import page
from ...options import CannotRead, reading_of, write_text
from ...siddhi_process import read_app
from ..replays_shown import show_replays


def run(options: Any) -> int:
    """`sparkstream audit`. Feeds that cannot be read and reports that cannot be written are errors of use."""
    connect()
    conf = [*options.deployment, *(options.conf or [])]
    references = References(dict(options.param), tuple(options.allow_env))
    files = node_files(conf, ("", HA, DISTRIBUTED), references) if conf else []
    feeds = FeedFiles(options.feed, reading_of(options))
    apps = []
    for path in options.apps:
        try:
            text = read_app(path)
        except SparkStreamError as e:
            apps.append(AppAudit(path, error=e))
            continue
        try:
            with show_replays(f"{path}: the nodes are replayed; Ctrl-C ends it") if feeds.files else nullcontext():
                apps.append(audit_text(path, text, files, dict(options.param), feeds))
        except SparkStreamError as e:
            raise Misuse(str(e)) from None
    unknown = next((s for s, _ in feeds.files if not any(s in a.fed for a in apps)), None)
    if unknown is not None and any(a.error is None for a in apps):
        raise Misuse(f"--feed: no app has a stream '{unknown}'")
    report = AuditReport(apps)
    try:
        if options.sarif is not None:
            write_text(options.sarif, as_sarif(report) + "\n")
        if options.html is not None:
            write_text(options.html, escape_controls(page(report)))
    except CannotRead as e:
        raise Misuse(str(e)) from None
    with fit_terminal():
        print(as_json(report) if options.json else report)
    if sys.stdout.isatty() and not options.json and options.html is None:
        print("--html FILE writes a page with these tables", file=sys.stderr)
    return report.exit_code
