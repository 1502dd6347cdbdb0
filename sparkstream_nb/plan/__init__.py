"""Compiles SiddhiQL text to a typed plan: parse, bind, rewrite, explain.

plan = compile_app(text)
print(explain(plan))
"""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import SiddhiError
from ..lang.parser import parse, parse_on_demand
from .bind import bind, bind_retrieval
from .nodes import Plan, Retrieval
from .reports.explain import explain
from .rewrites import rewrite
from .spelling import check_options

__all__ = ["Plan", "bind", "bind_retrieval", "compile_app", "compile_retrieval", "explain", "rewrite"]


def compile_app(
    text: str, properties: Mapping[str, str] | None = None, variables: Mapping[str, str] | None = None
) -> Plan:
    """The plan of the app `text`: parsed, bound and rewritten.

    `properties` are the node's (`shardId`, `partitionById`, `aggTimeZone`); `variables` are the values of `${NAME}`.
    Raises SiddhiSyntaxError or SiddhiBindError, which show the place in `text`. Declared gaps are not checked:
    `gaps.refuse` does that before a plan is run.
    """
    try:
        plan = bind(parse(text, variables), text, properties or {})
        check_options(plan)
        return rewrite(plan)
    except SiddhiError as e:
        raise e.with_source(text) from None


def compile_retrieval(text: str, plan: Plan) -> Retrieval:
    """The on-demand query `text`, bound against `plan`. Raises as `compile_app` does."""
    try:
        return bind_retrieval(parse_on_demand(text), plan, text)
    except SiddhiError as e:
        raise e.with_source(text) from None
