"""The notebooks as pages, with the outputs that they were saved with."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

from .markdown import fence, for_site

ROOT = Path(__file__).parents[2]
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")


def books() -> list[Path]:
    """The notebooks, in their order."""
    return sorted((ROOT / "notebooks").glob("*.ipynb"))


def overview() -> str:
    """The page that lists the notebooks."""
    out = [
        f"# Learn: {len(books())} notebooks",
        "",
        "Each page is a notebook of the project with the outputs that it was saved with: tables, diagrams and "
        "messages. Nothing was run to make these pages. In JupyterLab the same cells can be changed and run, views "
        "follow the app, and time lines answer to the mouse: `make lab` opens the first one. The project's tests run "
        "all of them, and compare their outputs with these.",
        "",
    ]
    for book in books():
        title, text = _lead(_cells(book))
        out += [f"## [{title}]({book.stem}.md)", "", text, ""]
    return "\n".join(out)


def page(book: Path) -> str:
    """A notebook as Markdown. Outputs are HTML, which the notebook displays, or text."""
    out = []
    for cell in _cells(book):
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            out.append(for_site(text))
        elif cell["cell_type"] == "code":
            out.append(fence(text, _language(text)))
            out += [shown for o in cell["outputs"] if (shown := _output(o))]
    return "\n".join(out)


def _cells(book: Path) -> list[dict[str, Any]]:
    return list(json.loads(book.read_text(encoding="utf-8"))["cells"])


def _lead(cells: list[dict[str, Any]]) -> tuple[str, str]:
    """The title of a notebook and its first paragraph, whose links, which are from the notebook's place, are texts."""
    blocks = [b for b in "".join(cells[0]["source"]).split("\n\n") if b.strip()]
    return blocks[0].lstrip("# ").strip(), _LINK.sub(r"\1", " ".join(blocks[1].split()))


def _language(text: str) -> str:
    return "siddhi" if text.lstrip().startswith(("%%siddhi", "%siddhi")) else "python"


def _output(o: dict[str, Any]) -> str:
    """An output as HTML; "" for one that left nothing behind, as the progress of a feed."""
    if o["output_type"] == "stream":
        return _text("".join(o["text"]))
    if o["output_type"] == "error":
        return _text("\n".join(o["traceback"]) or f"{o['ename']}: {o['evalue']}", "nb-error")
    data = o.get("data", {})
    if "text/html" in data:
        return _block("".join(data["text/html"]), "nb-html")
    if "image/svg+xml" in data:
        return _block("".join(data["image/svg+xml"]), "nb-html")
    if "image/png" in data:
        picture = "".join(data["image/png"]).replace("\n", "")
        return _block(f'<img alt="Output of the cell above" src="data:image/png;base64,{picture}">', "nb-html")
    return _text("".join(data["text/plain"])) if "text/plain" in data else ""


def _text(text: str, kind: str = "nb-text") -> str:
    return _block(f"<pre>{html.escape(_COLOURS.sub('', text).rstrip())}</pre>", kind) if text.strip() else ""


def _block(content: str, kind: str) -> str:
    """HTML that the Markdown parser leaves alone: on one line, as a blank one would end it."""
    if "<pre" in content:
        content = content.replace("\n", "&#10;")
    return f'<div class="nb-output {kind}" markdown="0">{" ".join(content.splitlines())}</div>\n'
