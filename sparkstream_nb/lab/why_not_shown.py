"""Why an output did not come, as text, as HTML and as plain data."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ..app import WhyNot
from ..app.explaining.why_not import Explanation
from ..charts.value_texts import row_text, when
from .display import html, text
from .drawings.result_blocks import Heading, blocks_html
from .drawings.text_tables import Grid


@text.register
def _(answer: WhyNot) -> str:
    return "\n\n".join(["\n".join(_lines(answer)), *(g.text() for g in _grids(answer))])


@html.register
def _(answer: WhyNot) -> str:
    head, *rest = _lines(answer)
    return blocks_html([Heading(head), *rest, *_grids(answer)])


def why_not_data(answer: WhyNot) -> dict[str, Any]:
    """An answer as plain data."""
    return {
        "app": answer.app, "stream": answer.stream, "values": dict(answer.values),
        **_explanation_data(answer.explanation),
        "proof": None if answer.proof is None else asdict(answer.proof),
        "others": [_explanation_data(other) for other in answer.others],
    }  # fmt: skip


def _explanation_data(explanation: Explanation) -> dict[str, Any]:
    changes = [
        {"kind": c.kind.value, "event": asdict(c.event), "attribute": c.attribute or None, "value": c.value}
        for c in explanation.changes
    ]
    return {
        "reason": explanation.reason.value, "sentence": explanation.sentence, "clauses": list(explanation.clauses),
        "events": [asdict(e) for e in explanation.events], "changes": changes,
    }  # fmt: skip


def _lines(answer: WhyNot) -> list[str]:
    lines = [f"{answer.title} did not come", answer.sentence]
    if answer.proof is not None:
        proof = answer.proof
        output = f"{proof.stream} {row_text(proof.values)} at {when(proof.time)} on {proof.node}"
        lines.append(f"With {_changes_text(answer.explanation)} it comes: {output}")
    return lines


def _changes_text(explanation: Explanation) -> str:
    return " and ".join(map(str, explanation.changes))


def _grids(answer: WhyNot) -> list[Grid]:
    """The events behind the answer, and larger changes that do as well."""
    events = answer.explanation.events
    rows = [[e.number, e.stream, when(e.time), e.node, row_text(e.values)] for e in events]
    grids = [Grid(["event", "stream", "time", "node", "values"], rows)] if rows else []
    others = [[other.sentence, _changes_text(other)] for other in answer.others]
    return [*grids, *([Grid(["or", "comes with"], others)] if others else [])]
