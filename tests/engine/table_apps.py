"""Random apps over one table, and feeds for them, as hypothesis strategies: what fails shrinks query by query and event
by event, and is printed as one would write it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from reference.compare import difference
from reference.engine_cases import run_case

ROWS = "select k, g, v, p"
TABLE = "define table T (k string, g int, v long, p double);"
ASKED = {"query": f"from T {ROWS}"}


class Case(dict[str, Any]):
    """A case of the reference format, printed with a line for each statement of the app and each step of the feed."""

    def __repr__(self) -> str:
        app = self["app"].replace("; ", ";\n")
        return f"\n{app}\n\n" + "\n".join(map(str, self["feed"])) + "\n"


def streams(four: str, three: str) -> str:
    """Definitions of streams with four attributes, and of those with the first three."""
    out = [f"define stream {s} (k string, g int, v long, p double); " for s in four]
    return "".join(out + [f"define stream {s} (k string, g int, v long); " for s in three])


def one_of(*values: Any) -> st.SearchStrategy[Any]:
    """One of these, or of these strategies' values; the first is the simplest."""
    return st.one_of([v if isinstance(v, st.SearchStrategy) else st.just(v) for v in values])


def text(template: str, *parts: Any) -> st.SearchStrategy[str]:
    """The template with its `{}` filled from strategies or by texts."""
    given = [p if isinstance(p, st.SearchStrategy) else st.just(p) for p in parts]
    return st.tuples(*given).map(lambda found: template.format(*found))


def conditions_of_join(on: str) -> str:
    """A condition on T and the attributes of an event, as `on` of a join of S and T."""
    return re.sub(r"([=<>]) ([kgv])\b", r"\1 S.\2", on)


def cases(
    app: st.SearchStrategy[str], *, keys: Sequence[str | None] = ("a", "b", "c"),
    values: Sequence[int] = (0, 1, 2, 3, 4, 5, 6), from_s: int = 75, twice: int = 5,
) -> st.SearchStrategy[Case]:  # fmt: skip
    """Cases of such apps with a feed for S (four attributes) and R (three): ties, retrievals and restarts. Of a hundred
    events `from_s` come to S, and `twice` are sent twice at once."""
    row = st.tuples(st.sampled_from(keys), st.integers(1, 2), st.sampled_from(values), st.integers(0, 9))
    percent = st.integers(0, 99)
    after = st.sampled_from([None] * 30 + [ASKED, {"restart": True}])
    event = st.tuples(st.sampled_from([0, 1, 5]), percent, row, percent, after)
    # A list of lists is longer than a list, and can be as short.
    feed = st.lists(st.lists(event, max_size=12), max_size=12)

    def written(app: str, drawn: list[list[tuple[Any, ...]]]) -> Case:
        steps: list[Any] = []
        now = 1000
        for gap, stream, (k, g, v, p), at_once, then in (e for part in drawn for e in part):
            now += gap
            s = "S" if stream < from_s else "R"
            values = [k, g, v, p / 2] if s == "S" else [k, g, v]
            two = at_once >= 100 - twice
            steps.append({"stream": s, "batch": [[now, values], [now, values]]} if two else [s, now, values])
            if then is not None:
                steps.append(then)
        return Case(id="random", app=app, feed=[*steps, ASKED])

    return st.builds(written, app, feed)


def apps(*, head: st.SearchStrategy[str], queries: st.SearchStrategy[list[str]]) -> st.SearchStrategy[str]:
    """Definitions and then the queries in any order; `{i}` in a query is its number."""

    def written(head: str, queries: list[str]) -> str:
        return " ".join([head, *(q.replace("{i}", str(i)) for i, q in enumerate(queries))])

    return st.builds(written, head, queries.flatmap(st.permutations))


def check(case: Case) -> None:
    """The case comes out by operator as it does chunk by chunk, tables in the same order."""
    one_by_one, got = run_case(case, by_chunk=True), run_case(case)
    assert "error" not in got, got
    assert difference({**case, "expect": one_by_one, "got": got}) is None
    assert got["results"] == one_by_one["results"]
