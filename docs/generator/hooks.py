"""Hooks of MkDocs: the search's worker leaves words that say nothing out of a question, and `llms.txt` lists the pages
for language models (llmstxt.org)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_pages: list[Any] = []


def on_nav(nav: Any, config: Any, files: Any) -> None:
    """Keeps the pages in the order of the navigation."""
    _pages[:] = nav.pages


def on_post_build(config: Any) -> None:
    """Puts `question_words.js` before the worker's script, writes `llms.txt`, and makes the folder ready for a host."""
    site = Path(config["site_dir"])
    (site / "llms.txt").write_text(_llms_text(config), encoding="utf-8")
    (site / ".nojekyll").touch()  # GitHub's pages leave out folders that begin with `_` otherwise
    if not config["site_url"]:  # a sitemap has addresses alone; MkDocs writes one without pages
        for name in ("sitemap.xml", "sitemap.xml.gz"):
            (site / name).unlink(missing_ok=True)
    (worker,) = (site / "assets" / "javascripts" / "workers").glob("search.*.min.js")
    words = (Path(__file__).parent / "question_words.js").read_text(encoding="utf-8")
    worker.write_text(words + worker.read_text(encoding="utf-8"), encoding="utf-8")


def _llms_text(config: Any) -> str:
    """The pages by the tab of the site that they are in, each with the first sentence of its text."""
    out = [f"# {config['site_name']}", "", f"> {config['site_description']}"]
    tab = None
    for page in _pages:
        titles = [a.title for a in page.ancestors]
        if titles and titles[-1] != tab:
            tab = titles[-1]
            out += ["", f"## {tab}", ""]
        if tab is not None:
            first = _first_sentence(page.markdown or "")
            out.append(f"- [{page.title}]({page.url}){': ' + first if first else ''}")
    return "\n".join(out) + "\n"


def _first_sentence(text: str) -> str:
    """The first sentence of a page's first paragraph, as plain text."""
    paragraphs = re.split(r"\n\s*\n", re.sub(r"(?s)\A---.*?\n---\n|<!--.*?-->|```.*?```", "", text))
    plain = next((p for p in paragraphs if re.match(r"[A-Za-z`*\[]", p.strip())), "")
    plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(plain.split()))
    return re.split(r"(?<=[.:])\s", plain, maxsplit=1)[0].rstrip(":")
