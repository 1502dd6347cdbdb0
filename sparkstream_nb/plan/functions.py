"""All signatures: scalar functions, aggregators, windows, stream functions.

The tables are rows of text in `plan/signatures/`, read by `signatures.core`, whose docstring describes the format.
Keys are as in the text, with their namespace: `ifThenElse`, `str:concat`, `timeBatch`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal

from ..errors import SiddhiBindError, SiddhiError, Span
from .plugins import WithExtensions, problems
from .signatures import aggregators, scalars, streams
from .signatures.built_in_names import BUILT_IN_NAMES
from .signatures.signature import KnownNames, Overload, Param, Signature, StreamFunction, resolve, unknown_name
from .window_declarations import SIGNATURES

SCALARS = WithExtensions(scalars.TABLE, "function", "signature")
AGGREGATORS = WithExtensions(aggregators.TABLE, "aggregator", "signature")
INCREMENTAL: Mapping[str, Signature] = aggregators.INCREMENTAL
WINDOWS = SIGNATURES
STREAM_FUNCTIONS: Mapping[str, StreamFunction] = streams.TABLE

__all__ = [
    "AGGREGATORS",
    "INCREMENTAL",
    "SCALARS",
    "STREAM_FUNCTIONS",
    "WINDOWS",
    "Overload",
    "Param",
    "Signature",
    "StreamFunction",
    "resolve",
    "unknown",
]

Kind = Literal["function", "stream function", "window"]
_NAMES: Mapping[Kind, Collection[str]] = {
    "function": (*SCALARS.built_in, *AGGREGATORS.built_in), "stream function": STREAM_FUNCTIONS,
    "window": WINDOWS.built_in,
}  # fmt: skip
_CALLS: Mapping[Kind, str] = {
    "function": "call it in an expression, such as select {}(...) as x.",
    "stream function": "write #{}(...) behind the stream.",
    "window": "write #window.{}(...).",
}
_NAMESPACES = frozenset(key.split(":")[0] for key in BUILT_IN_NAMES if ":" in key)
_FORMER_WINDOWS = {"unique": "unique:ever", "firstunique": "unique:first"}
"""Windows of Siddhi 3, in small letters, that have another name now."""


def unknown(what: Kind, key: str, span: Span, others: Collection[str] = ()) -> SiddhiError:
    """The error for a name that no function, stream function or window has, whichever `what` is; `others` are the
    app's own."""
    by_kind = _NAMES
    if ":" in key:  # those of other packages have a namespace
        by_kind = {"function": (*SCALARS, *AGGREGATORS), "stream function": STREAM_FUNCTIONS, "window": tuple(WINDOWS)}
    near = any(name.split(":")[-1] == key for name in by_kind[what])  # of this kind, in a namespace: str:length
    for kind, names in by_kind.items():
        if kind != what and key in names and not near:
            message = f"'{key}' is a {kind}: {_CALLS[kind].format(key)}"
            return SiddhiBindError(f"unknown {what} '{key}'", span, hint=message, kind="ExtensionNotFoundException")
    hint: str | None = None
    if what == "window" and key.lower() in _FORMER_WINDOWS:
        hint = f"That is Siddhi 3. It is called '{_FORMER_WINDOWS[key.lower()]}' now."
    elif what == "stream function" and key == "window":
        hint = "Name the window: #window.time(1 min), #window.length(100) or another."
    elif ":" in key and problems():
        hint = " ".join(problems())
    names_of_build = KnownNames((*by_kind[what], *others), _NAMESPACES)
    return unknown_name(what, key, names_of_build, span, hint=hint)
