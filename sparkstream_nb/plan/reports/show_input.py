"""Prints windows, patterns and sequences of a plan in SiddhiQL's own notation, on one line."""

from __future__ import annotations

from collections.abc import Mapping

from ...lang import tree
from ...types import Type
from .. import nodes as n
from ..window_declarations import SIGNATURES
from .show import show

_UNITS = (
    ("year", 31_536_000_000), ("month", 2_592_000_000), ("week", 604_800_000), ("day", 86_400_000),
    ("hour", 3_600_000), ("min", 60_000), ("sec", 1_000), ("millisec", 1),
)  # fmt: skip
_DURATIONS = ("time", "gap", "latency", "delay", "timeout")
"""The ends of the names of windows' parameters that are durations."""


def show_duration(ms: int) -> str:
    """A duration as SiddhiQL writes it: `1 min 30 sec`."""
    parts, rest = [], ms
    for unit, size in _UNITS[3:]:
        many, rest = divmod(rest, size)
        if many:
            parts.append(f"{many} {unit}")
    return " ".join(parts) or "0 sec"


def show_window(step: n.WindowStep) -> str:
    """The call of a window: `timeLength(5 sec, 3)`."""
    overload = next(o for o in SIGNATURES[step.function].overloads if o.accepts(step.args))
    args = []
    for i, arg in enumerate(step.args):
        is_duration = overload.param(i).name.endswith(_DURATIONS) and isinstance(arg, n.Const) and arg.type is Type.LONG
        args.append(show_duration(int(arg.value)) if is_duration and isinstance(arg, n.Const) else show(arg))
    return f"{step.function}({', '.join(args)})"


def show_states(i: n.StateInput) -> str:
    """A whole pattern or sequence: `every e1=A -> not B for 5 sec within 1 min`."""
    within = "" if i.within is None else f" within {show_duration(i.within)}"
    return _state(i.state, state_names(i), " -> " if i.kind == "pattern" else ", ") + within


def state_names(i: n.StateInput) -> dict[int, str]:
    """The name of each slot: its reference, or its stream's name, with a number if the stream has several such."""
    streams = [s.source.id for s in i.slots if s.ref is None]
    names, counts = {}, dict.fromkeys(streams, 0)
    for k, slot in enumerate(i.slots):
        if slot.ref is not None:
            names[k] = slot.ref
            continue
        stream = slot.source.id
        counts[stream] += 1
        names[k] = stream if streams.count(stream) == 1 else f"{stream}{counts[stream]}"
    return names


def show_state(state: n.State, i: n.StateInput) -> str:
    """One state of a pattern or sequence: `e2=B[price > e1.price]<2:3>`."""
    return _state(state, state_names(i), " -> " if i.kind == "pattern" else ", ")


def _state(s: n.State, names: Mapping[int, str], between: str) -> str:
    match s:
        case n.StreamState():
            steps = "".join(_step(step, _names_within(s, names)) for step in s.input.steps)
            stream = s.input.source.id
            name = names[s.slot]
            return f"{stream}{steps}" if name.startswith(stream) else f"{name}={stream}{steps}"
        case n.CountState():
            return _state(s.state, names, between) + _count(s)
        case n.AbsentState():
            wait = "" if s.wait is None else f" for {show_duration(s.wait)}"
            return f"not {_state(s.state, names, between)}{wait}"
        case n.LogicalState():
            return f"{_state(s.left, names, between)} {s.op} {_state(s.right, names, between)}"
        case n.EveryState():
            inner = _state(s.state, names, between)
            return f"every ({inner})" if isinstance(s.state, n.NextState | n.LogicalState) else f"every {inner}"
        case n.NextState():
            return f"{_state(s.first, names, between)}{between}{_state(s.then, names, between)}"
    raise TypeError(type(s))


def _names_within(s: n.StreamState, names: Mapping[int, str]) -> dict[int, str]:
    """The names of slots for a state's own filters: its event needs none there, but where it looks at the ones before.
    """
    refs = [e for step in s.input.steps if isinstance(step, n.FilterStep) for e in n.walk(step.condition)]
    looks_back = any(isinstance(e, n.Ref | n.EventRef) and e.slot == s.slot and e.index is not None for e in refs)
    return {slot: name for slot, name in names.items() if looks_back or slot != s.slot}


def _count(s: n.CountState) -> str:
    short = {(0, tree.UNBOUNDED): "*", (1, tree.UNBOUNDED): "+", (0, 1): "?"}.get((s.least, s.most))
    if short is not None:
        return short
    if s.least == s.most:
        return f"<{s.least}>"
    return f"<{s.least}:{'' if s.most == tree.UNBOUNDED else s.most}>"


def _step(step: n.Step, names: Mapping[int, str]) -> str:
    if isinstance(step, n.FilterStep):
        return f"[{show(step.condition, names)}]"
    assert not isinstance(step, n.WindowStep), "a pattern has no windows"
    return f"#{step.function}({', '.join(show(a, names) for a in step.args)})"
