"""Patterns that mean the same to Java and to RE2 (Arrow's regular expressions) where texts are printable ASCII.

They consist of literal characters, `.`, classes without nested classes, groups, `|`, `^`, `$` and the quantifiers `*`,
`+`, `?` and `{n,m}`, greedy or not: whether such a pattern matches does not depend on the engine's search strategy.
"""

from __future__ import annotations

import re
from functools import lru_cache

_MOST = 50
"""Repetitions that RE2 is asked to spell out."""

_LONGEST = 200

_ESCAPED = r"\\[!-/:-@\[-`{-~]"
_RANGE = r"[a-z]-[a-z]|[A-Z]-[A-Z]|[0-9]-[0-9]"
_IN_CLASS = rf"(?:{_RANGE}|\\[dws]|{_ESCAPED}|[ !\"#%',./:;<=>@_`~$()*+?{{|}}a-zA-Z0-9](?!-))"
_UNIT = rf"\.|\\[dDwWsS]|{_ESCAPED}|[ !\"#%&',\-/:;<=>@_`~a-zA-Z0-9]|\[\^?{_IN_CLASS}+-?\]"
_TIMES = r"[*+?]|\{(?P<low>\d{1,2})(?:,(?P<high>\d{0,2}))?\}"
_SIGN = re.compile(
    rf"(?P<begin>\((?:\?:)?)|(?P<end>\))|(?P<other>\|)|(?P<edge>[\^$])|(?P<unit>{_UNIT})|(?P<times>{_TIMES})(?P<lazy>\??)"
)


@lru_cache(maxsize=1024)
def plain_regex(pattern: str) -> bool:
    """True if `pattern` is such a pattern."""
    return _read(pattern) is not None


@lru_cache(maxsize=1024)
def never_empty(pattern: str) -> bool:
    """True if RE2 and Java agree on match ends: a sequence of literals and classes with greedy quantifiers only, which
    never matches the empty string.
    """
    signs = _read(pattern)
    if signs is None or any(kind in ("begin", "end", "other", "edge") or lazy for kind, _, lazy in signs):
        return False
    least = [low for _, low, _ in signs]
    return any(
        kind == "unit" and (i + 1 == len(signs) or signs[i + 1][0] == "unit" or least[i + 1] > 0)
        for i, (kind, _, _) in enumerate(signs)
    )


def _read(pattern: str) -> list[tuple[str, int, bool]] | None:
    """The signs of a pattern: kind, how often at least (of a quantifier), whether lazy. None for other patterns."""
    out: list[tuple[str, int, bool]] = []
    at, depth = 0, 0
    if len(pattern) > _LONGEST:
        return None
    while at < len(pattern):
        match = _SIGN.match(pattern, at)
        if match is None:
            return None
        kind, at, low = str(match.lastgroup), match.end(), 0
        if match["times"]:
            kind = "times"
            if not out or out[-1][0] not in ("unit", "end"):
                return None
            if match["low"]:
                low, high = int(match["low"]), int(match["high"] or match["low"])
                if not low <= high <= _MOST:
                    return None
            else:
                low = match["times"] == "+"
        depth += (kind == "begin") - (kind == "end")
        if depth < 0:
            return None
        out.append((kind, int(low), bool(match["lazy"])))
    return out if depth == 0 else None
