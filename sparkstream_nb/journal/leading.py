"""Output of a leader: the part of its results that the nodes do not emit."""

from __future__ import annotations

from dataclasses import replace

from ..engine.state.node_batch import Outputs
from ..plan.distributed.leader import Duty
from ..plan.output_labels import stream_of


def only(outputs: Outputs, duty: Duty) -> Outputs:
    """The part of `outputs` that is the leader's."""
    return replace(
        outputs,
        streams={s: e for s, e in outputs.streams.items() if stream_of(s) in duty.streams},
        queries={q: e for q, e in outputs.queries.items() if q not in duty.silent},
        partials={a: p for a, p in outputs.partials.items() if a in duty.aggregations},
        errors=[e for e in outputs.errors if e.query not in duty.silent],
        element_rows=outputs.element_rows.without_queries(duty.silent),
    )
