"""Aggregators, and those that `define aggregation` knows (`IncrementalAttributeAggregator` in Siddhi)."""

from __future__ import annotations

from collections.abc import Mapping

from . import rules
from .signature import Signature, signatures

_EVERYWHERE = """
    sum(arg int|long) -> long
    sum(arg float|double) -> double
    avg(arg num) -> double
    count() -> long
    count(arg any) -> long
    min(arg num) -> $1
    max(arg num) -> $1
"""
"""Aggregators of queries and of aggregations."""

TABLE: Mapping[str, Signature] = signatures(
    _EVERYWHERE
    + """
    distinctCount(arg num|string) -> long
    minForever(arg num) -> $1
    maxForever(arg num) -> $1
    stdDev(arg num) -> double
    and(arg bool) -> bool
    or(arg bool) -> bool
    unionSet(set object) -> object
    str:groupConcat(key string) -> string
    str:groupConcat(key string, separator string) -> string
    str:groupConcat(key string, separator string, distinct bool) -> string
    str:groupConcat(key string, separator string, distinct bool, order string) -> string
    math:percentile(arg num, p double!) -> double
    list:collect(value any) -> object
    list:collect(value any, is.distinct bool) -> object
    list:merge(list object) -> object
    list:merge(list object, is.distinct bool) -> object
    map:collect(key any, value any) -> object
    map:merge(map object) -> object
    json:group(json string|object) -> string
    json:group(json string|object, distinct bool) -> string
    json:group(json string|object, enclosing.element string) -> string
    json:group(json string|object, enclosing.element string, distinct bool) -> string
    json:groupAsObject(json string|object) -> object
    json:groupAsObject(json string|object, distinct bool) -> object
    json:groupAsObject(json string|object, enclosing.element string) -> object
    json:groupAsObject(json string|object, enclosing.element string, distinct bool) -> object
    """,
    checks={
        "str:groupConcat": rules.one_of(3, "ASC", "DESC", what="an order"),
        "math:percentile": rules.percents,
    },
)

INCREMENTAL: Mapping[str, Signature] = signatures(
    _EVERYWHERE
    + """
    distinctCount(arg prim) -> long
    """
)
