"""The attributes by which two texts' streams are compared: each one of the old text with its place in another text.

Attributes with equal names are the same; `new_attributes` names others, by stream with the new name of each as the key.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...errors import Misuse, nearest
from ...plan.nodes import Plan
from ...replay.replay import Recording

Places = tuple[int | None, ...]
"""For each attribute its place in another schema; None: it is not there, or is not to be read."""
NewAttributes = Mapping[str, Mapping[str, str]]


def old_names_of(names: Sequence[str], new_attributes: Mapping[str, str]) -> list[str | None]:
    """The old names of attributes; None of one whose name another one had."""
    renames = {name: new_attributes[name] for name in names if name in new_attributes}
    return [renames.get(name, None if name in renames.values() else name) for name in names]


def input_places(recording: Recording, plan: Plan, new_attributes: NewAttributes) -> dict[str, Places]:
    """By stream of a recording that has other attributes in a plan: for each of these its place among the events'.
    Raises `Misuse` for one of another type."""
    out: dict[str, Places] = {}
    for stream in _input_streams(recording, plan):
        schema, own_schema = plan.streams[stream].source.schema, recording.schemas[stream]
        if schema == own_schema:
            continue
        old_names = old_names_of(schema.names, new_attributes.get(stream, {}))
        out[stream] = places = tuple(None if name is None else own_schema.find(name) for name in old_names)
        for attribute, place in zip(schema, places, strict=True):
            if place is not None and own_schema[place].type is not attribute.type:
                message = f"the new text gives stream {stream} other attributes than its events have"
                raise Misuse(f"{message}: {attribute.name} is {attribute.type}, and {own_schema[place].type} there")
    return out


def input_notes(recording: Recording, plan: Plan, new_attributes: NewAttributes) -> Iterator[str]:
    """Sentences on attributes that only the events of a recording have, or only a plan."""
    for stream, places in input_places(recording, plan, new_attributes).items():
        schema, own_schema = plan.streams[stream].source.schema, recording.schemas[stream]
        for i, attribute in enumerate(own_schema):
            if i not in places:
                yield f"{stream}.{attribute.name} is in the old text alone"
        for attribute, place in zip(schema, places, strict=True):
            if place is None:
                option = f"--rename {stream}.OLD={stream}.{attribute.name}"
                yield f"the events of {stream} have no {attribute.name}: it is null; {option} says its old name"


def _input_streams(recording: Recording, plan: Plan) -> list[str]:
    streams = dict.fromkeys(s for item in recording.recorded_events for s in item.first)
    return [stream for stream in streams if stream in plan.streams]


@dataclass(frozen=True)
class OutputAttributes:
    """By derived stream of both texts: the attributes of the old one, None for those that are not compared, and the old
    names of attributes of the new one. Attributes `without` are not compared in any stream."""

    names: Mapping[str, Sequence[str | None]]
    new_attributes: NewAttributes
    without: Collection[str]
    notes: tuple[str, ...]

    @staticmethod
    def of(
        old_plan: Plan, new_plan: Plan, new_attributes: NewAttributes, without: Collection[str] = ()
    ) -> OutputAttributes:
        """Attributes that are left over at one place of both texts are the same one."""
        names: dict[str, Sequence[str | None]] = {}
        all_new: dict[str, Mapping[str, str]] = {}
        notes: list[str] = []
        for stream in dict.fromkeys(q.output.target.id for q in old_plan.queries):
            if stream not in old_plan.streams or stream not in new_plan.streams:
                continue
            before, after = (plan.streams[stream].source.schema.names for plan in (old_plan, new_plan))
            old_names = old_names_of(after, new_attributes.get(stream, {}))
            at_one_place = {
                new_name: name
                for name, new_name, old_name in zip(before, after, old_names, strict=False)
                if name not in old_names and old_name not in before
            }
            all_new[stream] = {**new_attributes.get(stream, {}), **at_one_place}
            old_names = old_names_of(after, all_new[stream])
            names[stream] = [name if name in old_names and name not in without else None for name in before]
            for text, rest in (
                ("old", [name for name in before if name not in old_names]),
                ("new", [new_name for new_name, name in zip(after, old_names, strict=True) if name not in before]),
            ):
                notes += [f"{stream}.{name} is in the {text} text alone, and is not compared" for name in rest]
        return OutputAttributes(names, all_new, without, tuple(notes))

    def places(self, plan: Plan) -> dict[str, Places]:
        """By stream whose outputs are not compared as they are: the place of each attribute in a plan."""
        out: dict[str, Places] = {}
        for stream, definition in plan.streams.items():
            schema_names = definition.source.schema.names
            names = self.names.get(stream, [None if name in self.without else name for name in schema_names])
            old_names: Sequence[str | None] = schema_names
            if any(name not in (None, other) for name, other in zip(names, schema_names, strict=False)):
                old_names = old_names_of(schema_names, self.new_attributes.get(stream, {}))
            places = tuple(old_names.index(name) if name is not None and name in old_names else None for name in names)
            if places != tuple(range(len(schema_names))):
                out[stream] = places
        return out


def require_new_names(new_names: Mapping[str, str], old_plan: Plan, new_plan: Plan) -> None:
    """Raise `Misuse` for `STREAM.ATTRIBUTE` that is not in the plan of the old, or of the new text."""
    for pair in new_names.items():
        if pair[0].count(".") != pair[1].count("."):
            raise Misuse(f"{'='.join(pair)}: write OLD=NEW, or the attribute of both streams, OLD.NAME=NEW.NAME")
        for full_name, text, plan in zip(pair, ("old", "new"), (old_plan, new_plan), strict=True):
            stream, dot, name = full_name.partition(".")
            if not dot:
                continue
            if stream not in plan.streams:
                raise Misuse(nearest(f"the {text} text has no stream '{stream}'", stream, plan.streams))
            names = plan.streams[stream].source.schema.names
            if name not in names:
                raise Misuse(nearest(f"stream {stream} of the {text} text has no attribute '{name}'", name, names))
