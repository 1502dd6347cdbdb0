"""The site's own search without a browser: its worker's script, its index and its settings, in QuickJS."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import quickjs

_SURROUNDINGS = """
var self = globalThis, handlers = [], answers = [], console = {warn: () => {}};
self.addEventListener = (kind, handler) => { handlers.push(handler); };
function postMessage(message) { answers.push(message); }
function send(text) { answers = []; for (const handler of handlers) handler({data: JSON.parse(text)}); }
"""
"""What the worker of a browser's page has, as far as the script uses it."""
_SETUP, _READY, _QUERY, _RESULT = 0, 1, 2, 3
"""The kinds of messages between a page and its worker."""


@dataclass(frozen=True)
class Hit:
    """A page that a search finds: its place on the site, and the titles of its sections that match, the best first."""

    page: str
    sections: tuple[str, ...]


class SiteSearch:
    """The search of a built site."""

    def __init__(self, site: Path) -> None:
        """Raises AssertionError where the script does not take the index."""
        (script,) = (site / "assets" / "javascripts" / "workers").glob("search.*.min.js")
        index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
        self._js = quickjs.Context()
        self._js.set_max_stack_size(64 << 20)
        self._js.eval(_SURROUNDINGS)
        self._js.eval(re.sub(r"//# sourceMappingURL=.*", "", script.read_text(encoding="utf-8")))
        self._send = self._js.get("send")
        assert self._ask(_SETUP, {**index, "options": {"suggest": True}})["type"] == _READY

    def _ask(self, kind: int, data: object) -> Any:
        self._send(json.dumps({"type": kind, "data": data}))
        while self._js.execute_pending_job():
            pass
        (answer,) = json.loads(self._js.eval("JSON.stringify(answers)"))
        return answer

    def find(self, words: str) -> list[Hit]:
        """The pages that the search lists for these words, in its order."""
        answer = self._ask(_QUERY, words)
        assert answer["type"] == _RESULT
        return [
            Hit(found[0]["location"].partition("#")[0], tuple(re.sub(r"<[^>]+>", "", s["title"]) for s in found))
            for found in answer["data"]["items"]
        ]
