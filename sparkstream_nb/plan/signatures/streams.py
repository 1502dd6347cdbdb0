"""Signatures of stream functions and stream processors, and the attributes that they add."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...types import Schema, Type
from ..nodes import Const, Expr
from .rules import not_negative
from .signature import RuleError, Signature, StreamFunction, signatures

_PRIORITIES = ("INFO", "DEBUG", "WARN", "FATAL", "ERROR", "OFF", "TRACE")


def _log(args: Sequence[Expr]) -> None:
    """`LogStreamProcessor`: of two texts the first is the priority."""
    texts = [i for i, a in enumerate(args) if a.type is Type.STRING]
    if len(texts) == 2:
        first = args[0]
        if isinstance(first, Const) and str(first.value).upper() not in _PRIORITIES:
            raise RuleError(
                f"'{first.value}' is not a log priority", 0, "Expected one of " + ", ".join(_PRIORITIES) + "."
            )


_SIGNATURES: Mapping[str, Signature] = signatures(
    """
    log()
    log(log.message string)
    log(is.event.logged bool!)
    log(log.message string, is.event.logged bool!)
    log(priority string, log.message string)
    log(priority string, log.message string, is.event.logged bool!)
    pol2Cart(theta double, rho double)
    pol2Cart(theta double, rho double, z double)
    str:tokenize(input.string string, regex string)
    str:tokenize(input.string string, regex string, distinct bool)
    json:tokenize(json string|object, path string)
    json:tokenize(json string|object, path string, fail.on.missing.attribute bool!)
    json:tokenizeAsObject(json string|object, path string)
    json:tokenizeAsObject(json string|object, path string, fail.on.missing.attribute bool!)
    map:tokenize(map object)
    list:tokenize(list object, ...)
    reorder:kslack(timestamp long)
    reorder:kslack(timestamp long, timeout long!)
    reorder:kslack(timestamp long, discard.late.arrival bool!)
    reorder:kslack(timestamp long, timeout long!, max.k long!)
    reorder:kslack(timestamp long, timeout long!, discard.late.arrival bool!)
    reorder:kslack(timestamp long, timeout long!, max.k long!, discard.late.arrival bool!)
    reorder:akslack(timestamp long, correlation.field num)
    reorder:akslack(timestamp long, correlation.field num, batch.size long!)
    reorder:akslack(timestamp long, correlation.field num, batch.size long!, timeout long!)
    reorder:akslack(timestamp long, correlation.field num, batch.size long!, timeout long!, max.k long!)
    reorder:akslack(timestamp long, correlation.field num, batch.size long!, timeout long!, max.k long!, discard.late.arrival bool!)
    reorder:akslack(timestamp long, correlation.field num, batch.size long!, timeout long!, max.k long!, discard.late.arrival bool!, error.threshold double!, confidence.level double!)
    throughput:throughput(iijtimestamp long, type string!)
    throughput:throughput(iijtimestamp long, type string!, window.size int!)
    throughput:throughput(iijtimestamp long, type string!, window.size int!, id string!)
    unique:deduplicate(unique.key prim, time.interval long!)
    """,  # noqa: E501
    checks={
        "log": _log,
        "unique:deduplicate": not_negative("the interval of 'unique:deduplicate'", 1),
    },
)


def _no_columns(args: Sequence[Expr]) -> Schema:
    return Schema(())


def _always(*pairs: tuple[str, Type]) -> Callable[[Sequence[Expr]], Schema]:
    schema = Schema.of(*pairs)
    return lambda args: schema


def _cartesian(args: Sequence[Expr]) -> Schema:
    """`Pol2CartStreamFunctionProcessor`: x and y, and z where it was given."""
    return Schema.of(*((n, Type.DOUBLE) for n in ("x", "y", "z")[: len(args)]))


_APPENDS: Mapping[str, Callable[[Sequence[Expr]], Schema]] = {
    "log": _no_columns,
    "pol2Cart": _cartesian,
    "str:tokenize": _always(("token", Type.STRING)),
    "json:tokenize": _always(("jsonElement", Type.STRING)),
    "json:tokenizeAsObject": _always(("jsonElement", Type.OBJECT)),
    "map:tokenize": _always(("key", Type.OBJECT), ("value", Type.OBJECT)),
    "list:tokenize": _always(("index", Type.INT), ("value", Type.OBJECT)),
    "reorder:kslack": _no_columns,
    "reorder:akslack": _no_columns,
    "throughput:throughput": _no_columns,
    "unique:deduplicate": _no_columns,
}

TABLE: Mapping[str, StreamFunction] = {k: StreamFunction(s, _APPENDS[k]) for k, s in _SIGNATURES.items()}

# Those that a pattern's state may have: Siddhi looks only for stream functions there, not for stream processors
# (`SingleInputStreamParser.generateProcessor`).
IN_PATTERNS = frozenset({"pol2Cart"})

# Those that keep events or let time decide; the others look at one event alone.
STATEFUL = frozenset({"reorder:kslack", "reorder:akslack", "unique:deduplicate"})
