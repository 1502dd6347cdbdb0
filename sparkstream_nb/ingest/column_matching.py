"""Source columns for the attributes of a stream, by their names without case, spaces, underscores and hyphens."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

NO_COLUMN = ""
"""The source column of an attribute that is null in all events."""


def match_columns(attributes: Sequence[str], mapping: Mapping[str, str], columns: Sequence[str]) -> dict[str, str]:
    """The source columns of attributes that have none of their name, where one column alone matches but for case,
    spaces, underscores and hyphens. `mapping`: the source columns that are named. No column is used twice."""
    open_ = [a for a in attributes if a not in mapping and a not in columns]
    used_columns = {*mapping.values(), *(a for a in attributes if a not in mapping)}
    bare_columns = Counter(_strip(c) for c in columns if c not in used_columns)
    bare_attributes = Counter(_strip(a) for a in open_)
    by_name = {_strip(c): c for c in columns if c not in used_columns}
    unique = (a for a in open_ if bare_columns[_strip(a)] == 1 and bare_attributes[_strip(a)] == 1)
    return {a: by_name[_strip(a)] for a in unique}


def match_column(name: str, columns: Sequence[str]) -> str:
    """The column of a name; else the only one that matches but for case and separators, else the name."""
    if name in columns:
        return name
    near = [c for c in columns if _strip(c) == _strip(name)]
    return near[0] if len(near) == 1 else name


def _strip(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name).casefold() or name
