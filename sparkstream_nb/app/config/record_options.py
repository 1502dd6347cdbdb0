"""A deployment as options of `sparkstream run` and of a cell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from ...errors import Misuse
from ...limits import Limits
from ...request import Parameter, parameters
from ...retention import Retention
from .record import DeploymentRecord

_DEFAULTS = {"retention": asdict(Retention()), "limits": str(Limits.of(None)), "variables": {}, "allow": []}
"""Defaults of arguments as a record has them, where `deploy` has others."""
_MANY = ("conf", "allow", "variables")
"""Parameters whose option is given once for each value."""


def options_of(record: DeploymentRecord) -> list[tuple[str, str | None]]:
    """The options that deploy the same again, each with its value (None: it takes none). Variables that may be secrets
    are not among them. Raises `Misuse` for arguments that have no option."""
    options: list[tuple[str, str | None]] = []
    for parameter in parameters():
        if parameter.name not in record.arguments:
            continue
        value = record.arguments[parameter.name]
        default = _DEFAULTS.get(parameter.name, parameter.default)
        if value == default or (default == () and not value):
            continue
        if parameter.option is None or (parameter.name == "faults" and not isinstance(value, str)):
            raise Misuse(f"{record.name} was deployed with {parameter.name}=..., which only Python has")
        options += [(parameter.option.name, text) for text in _texts(parameter, value)]
    return options


def _texts(parameter: Parameter, value: Any) -> Iterator[str | None]:
    """The values of an option, as they are written."""
    if parameter.name == "variables":
        yield from (f"{name}={text}" for name, text in value.items())
    elif parameter.name == "retention":
        yield ",".join(f"{k}={'off' if v is None else v}" for k, v in value.items() if v != getattr(Retention(), k))
    elif isinstance(value, bool):
        yield None
    elif parameter.name in _MANY:
        yield from value
    elif isinstance(value, list | tuple):
        yield ",".join(map(str, value))
    else:
        yield "off" if value is None else str(value)
