"""docs/differences.md from tests/cases/differences.toml: `python tests/reference/differences.py` writes it anew.

`python tests/reference/differences.py keep FILE.jsonl ID...` takes the engine's present answer to cases of Siddhi's
into tests/cases/differences/FILE.jsonl, to be read and agreed to by whoever commits it.
"""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from reference import replay
from reference.engine_cases import run_case
from reference.parts import read

PAGE = Path(__file__).resolve().parents[2] / "docs" / "differences.md"

HEAD = """# Where this engine differs from Siddhi 5.1.30

Siddhi's own answers are the measure: `tests/cases` holds well over a thousand of them, and the engine must give each
one, event by event. The exceptions are below. In most of them Siddhi contradicts its manual or loses data, and the
engine does what the manual says. In a few, typed columns or a repeatable replay require something else, and the entry
says why. Each is shown by cases, the first of which is printed: `tests/cases/differences/` holds them with their feeds
and the engine's output. The list is `tests/cases/differences.toml`; this page is written from it
(`python tests/reference/differences.py`), and a test holds the two together.
"""


def page() -> str:
    """The page's text."""
    ours = replay.our_cases()
    parts = [HEAD]
    for topic, entries in groupby(replay.listed_differences(), key=lambda d: d["topic"]):
        parts.append(f"\n## {topic}\n")
        for d in entries:
            parts.append(f"\n### {d['title']}\n\n{_item('Siddhi 5.1.30', d['siddhi'])}{_item('here', d['here'])}")
            if reports := [f"[{r}](https://github.com/{r.replace('#', '/issues/')})" for r in d.get("report", ())]:
                parts.append(_item("reported", ", ".join(reports)))
            parts.append(_item("cases", ", ".join(f"`{c}`" for c in d["cases"])) + "\n")
            parts.append(f"```sql\n{ours[d['cases'][0]]['app'].strip()}\n```\n")
    return "".join(parts)


def _item(name: str, text: str) -> str:
    """An item of a list, in lines of 120 characters at most."""
    wrapped = textwrap.fill(
        f"- {name}: {text}", 120, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
    return wrapped + "\n"


def keep(file: str, ids: Sequence[str]) -> None:
    """Writes the engine's answers to Siddhi's cases `ids` as cases of ours."""
    path = replay.CASES / "differences" / file
    old = {case["id"]: case for case in read(path)} if path.exists() else {}
    for case in replay.siddhi_cases():
        if case["id"] in ids:
            old[case["id"]] = {**case, "expect": run_case(case)}
    lines = [json.dumps(case, ensure_ascii=False) for case in old.values()]
    path.write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["keep"]:
        keep(sys.argv[2], sys.argv[3:])
    else:
        PAGE.write_text(page(), "utf-8")
