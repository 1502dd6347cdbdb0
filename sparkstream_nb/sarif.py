"""Reports as SARIF 2.1.0 (OASIS), which code hosts show beside the lines of a text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

SARIF = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif_log(tool: str, rules: Sequence[dict[str, Any]], results: Sequence[dict[str, Any]]) -> str:
    """The report of a tool: its rules, each with an `id`, and `sarif_result`s."""
    run = {"tool": {"driver": {"name": tool, "rules": list(rules)}}, "results": list(results)}
    return json.dumps({"$schema": SARIF, "version": "2.1.0", "runs": [run]}, indent=2)


def sarif_result(rule: str, level: str, message: str, uri: str, line: int) -> dict[str, Any]:
    """A result at a line, from 1, of a file."""
    place = {"artifactLocation": {"uri": uri}, "region": {"startLine": max(1, line)}}
    return {
        "ruleId": rule,
        "level": level,
        "message": {"text": message},
        "locations": [{"physicalLocation": place}],
    }


def sarif_uri(path: str) -> str:
    """The address of a file in a report."""
    file = Path(path)
    return file.as_uri() if file.is_absolute() else quote(file.as_posix())
