"""Hooks of MkDocs: the search's worker leaves words that say nothing out of a question."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def on_post_build(config: Any) -> None:
    """Puts `question_words.js` before the worker's script."""
    (worker,) = (Path(config["site_dir"]) / "assets" / "javascripts" / "workers").glob("search.*.min.js")
    words = (Path(__file__).parent / "question_words.js").read_text(encoding="utf-8")
    worker.write_text(words + worker.read_text(encoding="utf-8"), encoding="utf-8")
