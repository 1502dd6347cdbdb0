"""A line of help for every option of sources, sinks and mappings (`help.toml`)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Literal

End = Literal["source", "sink", "source-mapping", "sink-mapping"]
_SAME = {
    "http-response": ("http-call-response",),
    "http-call": ("http-call", "http"),
    "http-request": ("http-call", "http"),
}
"""Types that have the options of others."""


def option_help(end: End, type_: str, option: str) -> str:
    """The line of help of an option. Raises KeyError if there is none; a test holds that there always is."""
    tables = _lines()[end]
    for name in (*_SAME.get(type_, (type_,)), "common"):
        if option in tables.get(name, {}):
            return tables[name][option]
    raise KeyError(f"no help for '{option}' of {end} '{type_}'")


@cache
def _lines() -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    return tomllib.loads(resources.files(__package__).joinpath("help.toml").read_text("utf-8"))
