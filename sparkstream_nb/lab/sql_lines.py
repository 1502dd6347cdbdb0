"""`%siddhi sql` and `%%siddhi --sql`: an SQL query over apps and the notebook's variables."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, MutableMapping
from typing import Any

from .. import app as api
from ..app.results.sql_answer import SqlAnswer, with_limit
from ..errors import Misuse
from ..stores.sql_session import READING_WORDS

QUERY_BEGINNINGS = "|".join(READING_WORDS)
"""A pattern of the first words of SQL queries."""


def answer_line(text: str, o: Namespace, variables: MutableMapping[str, Any], ask: Callable[[Any], Any]) -> Any:
    """The answer to a query, or its chart; the variable `--into` gets its frame. `ask` carries a call out. Raises
    `Misuse` for options of a chart without one."""
    axes = {"--y": o.y, "--by": o.by, "--x": o.x}
    extra_option = next((name for name, value in axes.items() if value and not o.chart), None)
    if extra_option is not None:
        raise Misuse(f"{extra_option} says what a chart shows: add --chart line, bar or points, or leave it out")
    frames = {name: value for name, value in variables.items() if not name.startswith("_")}
    answer: SqlAnswer = ask(lambda: api.sql(text, frames=frames))
    if o.out:
        variables[o.out] = answer.frame
    return answer.plot(o.y, by=o.by, x=o.x, kind=o.chart) if o.chart else with_limit(answer, o.limit)


def relation_names() -> list[str]:
    """The relations that a query may name, and their columns, for completion."""
    relations = list(api.sql_relations())
    columns = {name for relation in relations for name, _ in relation.columns}
    return [*(relation.name for relation in relations), *sorted(columns)]
