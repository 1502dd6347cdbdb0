"""The safety of a query by itself, and the attributes and keys that it depends on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...types import Type
from .. import nodes as n
from ..query_parts import inputs

Keys = Mapping[str, str]


@dataclass(frozen=True)
class Own:
    """A query's safety by itself. `candidates` are alternative keys: source id → attribute."""

    level: str
    reason: str
    candidates: tuple[Keys, ...] = ()


STATELESS = Own("stateless", "each event is processed independently")


def dependent(reason: str) -> Own:
    """The safety of a query that depends on the node, for a reason."""
    return Own("node-dependent", reason)


def merged_keys(one: Mapping[str, str], two: Mapping[str, str]) -> dict[str, str] | None:
    """Both key maps in one; None if a stream would need two keys."""
    out = dict(one)
    for stream, attribute in two.items():
        if out.setdefault(stream, attribute) != attribute:
            return None
    return out


def attribute_of(e: n.Expr | None, i: n.Input) -> tuple[str, str] | None:
    """(source id, attribute) where `e` is an attribute of a source as it came in, else None."""
    if not isinstance(e, n.Ref) or e.slot < 0:
        return None
    source = inputs(i)[e.slot].source
    return (source.id, e.name) if source.schema.find(e.name) is not None else None


def have_equal_texts(one: n.Expr, two: n.Expr) -> bool:
    """True if equal values have equal texts, by which a route sends them to one node."""
    fractions = (Type.FLOAT, Type.DOUBLE)
    return one.type not in fractions and two.type not in fractions
