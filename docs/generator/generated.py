"""The reference page of generated events: generators of columns, usual values, and kinds of names."""

from __future__ import annotations

import inspect

from sparkstream_nb import columns
from sparkstream_nb.synthetic.defaults import OTHERS, USUAL, UsualValues
from sparkstream_nb.synthetic.names import KINDS
from sparkstream_nb.types import Type

from .api import document_class, document_function
from .markdown import code, table


def generated_events() -> str:
    """The page."""
    functions = [n for n in columns.__all__ if not inspect.isclass(getattr(columns, n))]
    out = [
        "# Generated events",
        "",
        "`sparkstream_nb.generate` [makes events of a stream](../guides/generate.md) by a seed; "
        "[its parameters](python.md#generate). `sparkstream_nb.columns` has the generators below, for its argument "
        "`columns`, and `steady`, `poisson` and `bursts` for `arrivals`.",
        "",
        "The same seed gives the same events on every machine, with every version of Python, numpy and pandas; names, "
        "which Faker makes, with the same version of Faker. A column depends on the seed, the "
        "stream's name, its own name and the columns that it refers to alone. The first rows of more events are those "
        "of fewer.",
        "",
        "## Usual values { #usual-values }",
        "",
        "An attribute without a generator gets values by the words in its name and by its type. `eventTime` and "
        "`event_time` have the words event and time. The last word counts first, though id, key, uuid, name, number, "
        "no and code after the others; of two rows that fit, the upper one. Where a stream has a column of keys or "
        "symbols, each key has a walk of its own.",
        "",
        table(["words", "types", "values"], [_row(u) for u in (*USUAL, *OTHERS)]),
        "## Generators",
        "",
        "Each has the method `nulls(share)`: the same values, of which a share is null. A list in place of a "
        "generator is a `choice`.",
        "",
    ]
    for name in functions:
        out += document_function(name, getattr(columns, name), "###")
    out += [
        "## Kinds of names { #kinds-of-names }",
        "",
        f"Those of `names(kind)`: {', '.join(code(kind) for kind in KINDS)}.",
        "",
        *document_class("Profile", columns.Profile),
    ]
    return "\n".join(out)


def _row(usual: UsualValues) -> tuple[str, str, str]:
    types = [t.value for t in Type if t in usual.types]
    return ", ".join(sorted(usual.words)) or "any others", ", ".join(types), usual.meaning
