"""Moves found cases into the tests: `python tests/fuzz/keep.py FILE.jsonl ID...`, a file in tests/cases/fuzz."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

FOUND = Path(__file__).resolve().parents[1] / "cases" / "fuzz" / "found.jsonl"


def keep(file: str, ids: Sequence[str]) -> None:
    """Appends the found cases `ids` to `file`, and takes them out of found.jsonl."""
    found = [json.loads(line) for line in FOUND.read_text("utf-8").split("\n") if line]
    kept = {case["id"]: case for case in found if case["id"] in ids}
    if missing := set(ids) - kept.keys():
        raise SystemExit(f"not found: {', '.join(sorted(missing))}")
    with (FOUND.parent / file).open("a", encoding="utf-8") as out:
        out.writelines(json.dumps(case, ensure_ascii=False) + "\n" for case in kept.values())
    rest = [json.dumps(case, ensure_ascii=False) + "\n" for case in found if case["id"] not in ids]
    FOUND.write_text("".join(rest), "utf-8")


if __name__ == "__main__":
    keep(sys.argv[1], sys.argv[2:])
