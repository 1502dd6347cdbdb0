"""A line of help for every function, window and aggregator (`help.toml`)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Literal

from .. import plugins

Kind = Literal["windows", "stream_functions", "aggregators", "functions"]
_EXTENSIONS: Mapping[Kind, plugins.Kind] = {"windows": "window", "aggregators": "aggregator", "functions": "function"}


def help_of(kind: Kind, name: str) -> str:
    """The line of help for `name`. Raises KeyError if there is none; a test holds that there always is."""
    extension = plugins.find_extension(_EXTENSIONS[kind], name) if kind in _EXTENSIONS else None
    return help_lines()[kind][name] if extension is None else extension.help


@cache
def help_lines() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads(resources.files(__package__).joinpath("help.toml").read_text("utf-8"))
