"""The events of an output, from a time machine whose nodes have lineage."""

from __future__ import annotations

import numpy as np

from ...plan.output_labels import is_inner, query_of, stream_of
from ...plan.reports.lineage import events_of, held_of
from ...replay.time_machine import TimeMachine
from ..explaining.event_follower import rows_with_lineage
from ..explaining.event_history import OutputOrigin
from ..explaining.why_not_trials import AppInput
from ..results.moment import MomentOutput
from .machine_moments import MachineMoments


def output_origin(machine: TimeMachine, moments: MachineMoments, stream: str, number: int) -> OutputOrigin:
    """The events of an output of a stream, the first of all nodes is number 1; outputs of one step have the order of
    the nodes. It must be there."""
    positions = moments.history().outputs[stream].positions
    position = int(positions[number - 1])
    rank = number - 1 - int(np.searchsorted(positions, position))
    source = AppInput(machine.recording, machine.way, moments.names)
    machine.seek(position)
    step = machine.last_step
    assert step is not None
    for replay in step.outputs:
        for label, parts in replay.streams.items():
            for rows, _ in parts if stream_of(label) == stream and not is_inner(label) else ():
                for i, values, lineage in rows_with_lineage(rows):
                    if rank == 0:
                        node, query = moments.names[replay.node], query_of(label, machine.plan)
                        output = MomentOutput(stream, query, int(rows.ts[i]), values, node)
                        events = [source.event(e) for e in events_of(lineage)]
                        return OutputOrigin(moments.app, output, events, held_of(lineage))
                    rank -= 1
    raise AssertionError(f"step {position} has no output {number} of {stream}")

