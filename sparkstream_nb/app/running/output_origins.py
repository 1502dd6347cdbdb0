"""The events that an output was made of, from a time machine whose nodes have lineage."""

from __future__ import annotations

from ...errors import Misuse
from ...plan.output_labels import is_inner, query_of, stream_of
from ...plan.reports.lineage import events_of, held_of
from ...replay.time_machine import TimeMachine
from ..explaining.event_follower import rows_with_lineage
from ..explaining.event_history import OutputOrigin
from ..results.moment import MomentEvent, MomentOutput
from .machine_moments import MachineMoments


def output_origin(machine: TimeMachine, moments: MachineMoments, stream: str, number: int) -> OutputOrigin:
    """The events of an output of a stream, the first of all nodes is number 1; outputs of one step have the order of
    the nodes. Raises `Misuse` if it is not there."""
    place = machine.place_of_output(stream, number)
    if place is None:
        raise Misuse(f"{stream} has fewer than {number:,} outputs")
    machine.seek(place.position)
    step, rank = machine.last_step, place.rank
    assert step is not None
    for replay in step.outputs:
        for label, parts in replay.streams.items():
            for rows, _ in parts if stream_of(label) == stream and not is_inner(label) else ():
                for i, values, lineage in rows_with_lineage(rows):
                    if rank == 0:
                        node, query = moments.names[replay.node], query_of(label, machine.plan)
                        output = MomentOutput(stream, query, int(rows.ts[i]), values, node)
                        events = [event_of(e, moments) for e in events_of(lineage)]
                        return OutputOrigin(moments.app, output, events, held_of(lineage))
                    rank -= 1
    raise AssertionError(f"step {place.position} has no output {number} of {stream}")


def event_of(number: int, moments: MachineMoments) -> MomentEvent:
    """An event by its number from 0."""
    machine = moments.machine
    place, stream, row = machine.recording.locate(number)
    item = machine.recording.recorded_events[place]
    node = 0 if len(moments.names) == 1 else int(machine.way.places(machine.recording, item)[stream][row])
    _, time, values = machine.recording.event(number)
    return MomentEvent(number + 1, stream, time, values, moments.names[node])
