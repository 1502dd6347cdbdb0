"""Recipes of the cookbook: an app, its input and its output, which a page has as a block and two tables.

`python -m docs.generator.recipes PAGE...` writes the output of each page anew, as the engine has it.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.reference.engine_cases import run_case

from .examples import output_table

ROOT = Path(__file__).parents[2]
CLOCK = "(clock)"
"""What the table of an input has in place of a stream where only the clock moves."""
_APP = re.compile(r"```siddhi\n(.*?)```", re.DOTALL)
_ROW = re.compile(r"^\| *(\d+) *\| *(\S+) *\| *(?:`(.*)`)? *\|$", re.MULTILINE)


@dataclass(frozen=True)
class Recipe:
    """An app, the steps of its feed as cases have them, and the rows of its output: time, stream, values."""

    app: str
    feed: list[Any]
    output: list[tuple[int, str, list[Any]]]


def pages() -> list[Path]:
    """The pages of the recipes."""
    return sorted(p for p in (ROOT / "docs" / "cookbook").glob("*.md") if p.name != "README.md")


def recipe(text: str) -> Recipe:
    """The recipe of a page. Raises ValueError where the page is not one."""
    app = _APP.search(text)
    before, input_, output = (*re.split(r"^(?:Input|Output):$", text, flags=re.MULTILINE), "", "")[:3]
    if app is None or app[0] not in before or not input_:
        raise ValueError("a recipe has an app, then 'Input:', then 'Output:'")
    feed: list[Any] = []
    for t, stream, values in _ROW.findall(input_):
        feed.append({"tick": int(t)} if stream == CLOCK else [stream, int(t), _values(values)])
    return Recipe(app[1], feed, [(int(t), stream, _values(values)) for t, stream, values in _ROW.findall(output)])


def _values(text: str) -> list[Any]:
    return list(json.loads(f"[{text}]"))


def run(found: Recipe) -> dict[str, list[list[Any]]]:
    """The outputs of the app, by stream. Raises ValueError where it is wrong."""
    got = run_case({"app": found.app, "feed": found.feed})
    if "error" in got:
        raise ValueError(got["message"])
    fed = {step[0] for step in found.feed if isinstance(step, list)}
    return {name: events for name, events in got["streams"].items() if name not in fed}


def filled(text: str) -> str:
    """A page with the output that its app has."""
    before, _, after = text.partition("\nOutput:\n")
    rest = re.sub(r"\A\s*(?:\|[^\n]*\n|Nothing\.\n)*", "", after)
    return f"{before}\nOutput:\n\n{output_table(run(recipe(text)))}" + (f"\n{rest}" if rest.strip() else "")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        page = Path(name)
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")
