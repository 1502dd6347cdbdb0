"""The words of SiddhiQL for the highlighter of `labextension/`.

`python -m sparkstream_nb.lab.vocabulary` writes them to `labextension/static/words.js`, from the tables of `lang` and
`plan`. A test fails when the file is not up to date.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from pathlib import Path

from ..lang.keywords import KEYWORDS, TYPES, UNIT_SPELLINGS
from ..plan.functions import AGGREGATORS, SCALARS, STREAM_FUNCTIONS, WINDOWS

FILE = Path(__file__).parent / "labextension" / "static" / "words.js"


def javascript() -> str:
    """The contents of `words.js`."""
    lists: dict[str, Iterable[str]] = {
        "KEYWORDS": KEYWORDS,
        "TYPES": TYPES,
        "UNITS": UNIT_SPELLINGS,
        "FUNCTIONS": {*SCALARS.built_in, *AGGREGATORS.built_in},
        "STREAM_FUNCTIONS": STREAM_FUNCTIONS,
        "WINDOWS": WINDOWS.built_in,
    }
    parts = ["// The words of SiddhiQL. Written by `python -m sparkstream_nb.lab.vocabulary`.\n"]
    for name, words in lists.items():
        lines = textwrap.wrap(" ".join(sorted(words)), 118, initial_indent="  ", subsequent_indent="  ")
        parts += [f"\nexport const {name} = `\n", *(f"{line}\n" for line in lines), "`.trim().split(/\\s+/);\n"]
    return "".join(parts)


if __name__ == "__main__":
    FILE.write_text(javascript(), encoding="utf-8")
