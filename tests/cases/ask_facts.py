#!/usr/bin/env python3
"""Fills in what Siddhi answers to facts: `ask_facts.py SIDDHI FILE.jsonl...` (SIDDHI: the reference's command).

A fact file has one JSON object a line: `id`, `stream` (attributes of the input), `rows` (events), `select`
(expressions). `expect` has, per expression, one value per row: `{"fails": true}` where the event raised an error, or
`{"rejected": "ExceptionClass"}` in place of the list where Siddhi refused the expression. `source` names an extension
that the reference does not have, built from its source for these facts. Row i is sent at 1000 * (i + 1) ms. Every
expression is asked in an app of its own, so that an error in one does not hide another.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any


def cases(fact: dict[str, Any]) -> list[dict[str, Any]]:
    """One oracle case per expression."""
    feed = [["S", 1000 * (i + 1), row] for i, row in enumerate(fact["rows"])]
    app = f"define stream S ({fact['stream']});\nfrom S select %s as x insert into Out;"
    return [
        {"id": f"{fact['id']}/{k}", "app": app.replace("%s", e, 1), "feed": feed} for k, e in enumerate(fact["select"])
    ]


def answers(case: dict[str, Any], rows: int) -> Any:
    """The values by row that an answered case shows."""
    if "skip" in case:
        return {"skip": case["skip"]}
    expect = case["expect"]
    if "error" in expect:
        return {"rejected": expect["error"]}
    by_time = {ts: values[0] for ts, values in expect["streams"].get("Out", [])}
    return [by_time.get(1000 * (i + 1), {"fails": True}) for i in range(rows)]


def main(siddhi: str, files: list[str]) -> None:
    """Asks all facts of `files` in one run and rewrites the files."""
    facts = {f: [json.loads(line) for line in Path(f).read_text("utf-8").split("\n") if line] for f in files}
    asked = "".join(json.dumps(c) + "\n" for f in files for fact in facts[f] for c in cases(fact))
    out = subprocess.run([siddhi, "oracle", "1"], input=asked, capture_output=True, text=True, check=True).stdout
    replies = iter(json.loads(line) for line in out.split("\n") if line)
    for file in files:
        for fact in facts[file]:
            fact["expect"] = [answers(next(replies), len(fact["rows"])) for _ in fact["select"]]
        lines = [json.dumps(fact, ensure_ascii=False) for fact in facts[file]]
        Path(file).write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
