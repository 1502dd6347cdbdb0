"""Resolves attribute names at a place of a query.

The rules follow Siddhi's `ExpressionParser.parseVariable`: with one input a bare name is its attribute; with
several it must be in exactly one of them; in the filter of a pattern's state it is that state's own; in `having` and
`order by` it is an output attribute first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from ...errors import SiddhiBindError, Span, did_you_mean
from ...lang import tree
from ...types import Schema, Type
from ..nodes import OUTPUT, TABLE, EventRef, Expr, Ref
from .symbols import Symbols


@dataclass(frozen=True)
class VisibleEvent:
    """An event that expressions can refer to: by `name` (a reference, else the source's id), by `alias`, or without a
    prefix. `of`: the source of a pattern's state that has a name of its own."""

    slot: int
    name: str | None
    schema: Schema
    is_counted: bool = False
    what: str = "stream"
    alias: str | None = None
    of: str | None = None


Bare = Literal["first", "all"]


@dataclass(frozen=True)
class Scope:
    """The visible events, and how unqualified names are resolved.

    `bare`: "first" searches only the first entry, "all" searches each and requires exactly one match. `own_slot` is the
    slot of the state whose filter is being bound, `own_ref` the reference that the text gives it. `lists`: a counted
    state's attribute without index is the list of all its events. `aggregators`: whether aggregators are allowed here;
    `place` names the place for messages. `later` are references that come later in a pattern.
    """

    symbols: Symbols
    entries: tuple[VisibleEvent, ...]
    place: str
    bare: Bare = "all"
    own_slot: int | None = None
    own_ref: str | None = None
    lists: bool = False
    aggregators: bool = False
    later: tuple[str, ...] = ()
    tables: bool = True

    def with_table(self, table: str, schema: Schema) -> Scope:
        """This scope within `... in table`: bare names keep their meaning, and `table.x` is an attribute of its row."""
        return replace(
            self, entries=(*self.entries, VisibleEvent(TABLE, table, schema, what="table")), aggregators=False
        )

    def variable(self, v: tree.Variable) -> Expr:
        """Resolves `v`. Raises SiddhiBindError if it is unknown or ambiguous."""
        if v.inner_name is not None:
            raise SiddhiBindError(f"'#{v.inner_name}' cannot be used in an attribute's name", v.span)
        if v.source is None:
            return self._bare(v)
        entry = self._find_event(v.source, v.span, f" for attribute '{v.name}'")
        at = entry.schema.find(v.name)
        if at is None:
            raise self._missing_attribute(v.name, entry, v.span)
        return self._ref(entry, at, v.index, v.span, is_qualified=True)

    def event(self, source: tree.SourceName, index: tree.EventIndex | None, span: Span) -> Expr:
        """Meaning of `e1` or `e1[last]` in `... is null`: an event, or an attribute of that name."""
        if not (source.inner or source.fault):
            entry = self._find(source.id)
            if entry is None or (index is None and self._attribute(source.id) is not None):
                return self.variable(tree.Variable(source.id, index=index, span=span))
        entry = self._find_event(source, span, "")
        self._check_index(entry, index, span)
        return EventRef(Type.OBJECT, entry.slot, self._of_own_name(entry, index), span=span)

    def all_attributes(self, span: Span) -> list[Ref]:
        """The attributes of all entries, for `*`. Raises SiddhiBindError if two have one name."""
        out: list[Ref] = []
        entries_by_name: dict[str, VisibleEvent] = {}
        for entry in self.entries:
            if entry.slot < 0:
                continue
            for i, a in enumerate(entry.schema):
                if a.name in entries_by_name:
                    raise SiddhiBindError(
                        f"'*' would give two attributes '{a.name}', of '{entries_by_name[a.name].name}' and "
                        f"'{entry.name}'",
                        span,
                        hint="Name the attributes, each with 'as'.",
                        kind="DuplicateAttributeException",
                    )
                entries_by_name[a.name] = entry
                ref = self._ref(entry, i, None, span, is_qualified=False)
                assert isinstance(ref, Ref)
                out.append(ref)
        return out

    # ------------------------------------------------------------------------------------------------------ lookups

    def _find(self, name: str) -> VisibleEvent | None:
        return next((e for e in self.entries if name in (e.name, e.alias)), None)

    def _attribute(self, name: str) -> tuple[VisibleEvent, int] | None:
        """The first entry with an attribute `name`, among those that bare names see."""
        for entry in self._visible():
            at = entry.schema.find(name)
            if at is not None:
                return entry, at
        return None

    def _visible(self) -> tuple[VisibleEvent, ...]:
        if self.own_slot is not None:
            return tuple(e for e in self.entries if e.slot == self.own_slot)
        return self.entries[:1] if self.bare == "first" else tuple(e for e in self.entries if e.slot != TABLE)

    def _bare(self, v: tree.Variable) -> Expr:
        visible = self._visible()
        having = bool(visible) and visible[0].slot == OUTPUT
        hits = [(e, at) for e in visible if (at := e.schema.find(v.name)) is not None]
        if having and hits and hits[0][0].slot == OUTPUT:
            hits = hits[:1]
        if len(hits) > 1:
            (one, _), (two, _) = hits[:2]
            raise SiddhiBindError(
                f"attribute '{v.name}' is in both '{one.name}' and '{two.name}'",
                v.span,
                hint=f"Write '{one.name}.{v.name}' or '{two.name}.{v.name}'.",
                kind="SiddhiAppValidationException",
            )
        if hits:
            entry, at = hits[0]
            return self._ref(entry, at, v.index, v.span, is_qualified=False)
        entry_named = self._find(v.name)
        if entry_named is not None and entry_named.slot >= 0 and len(self.entries) > 1:
            self._check_index(entry_named, v.index, v.span)
            return EventRef(Type.OBJECT, entry_named.slot, v.index, span=v.span)
        if len(visible) == 1:
            raise self._missing_attribute(v.name, visible[0], v.span)
        names = [a.name for e in visible for a in e.schema]
        raise SiddhiBindError(
            f"no input of the query has an attribute '{v.name}'",
            v.span,
            hint=did_you_mean(v.name, names) or _list_names(names),
            kind="SiddhiAppValidationException",
        )

    def _find_event(self, source: tree.SourceName, span: Span, what_for: str) -> VisibleEvent:
        entry = self._find(str(source))
        if entry is not None:
            return entry
        names = [e.name for e in self.entries if e.name]
        if source.id in self.later:
            raise SiddhiBindError(
                f"'{source}' comes later in the pattern, so its event is not known here",
                span,
                hint=f"Compare them in the filter of '{source}'.",
            )
        several = len(self.entries) > 1
        raise SiddhiBindError(
            f"'{source}' is not an input of this query{what_for}",
            span,
            hint=did_you_mean(str(source), names) or (f"Known here: {', '.join(names)}." if names else None),
            kind="SiddhiAppValidationException" if several else "SiddhiAppCreationException",
        )

    def _missing_attribute(self, name: str, entry: VisibleEvent, span: Span) -> SiddhiBindError:
        where = "the query's output" if entry.slot == OUTPUT else f"{entry.what} '{entry.name}'"
        if entry.of is not None:
            where = f"state '{entry.name}' ({entry.what} {entry.of})"
        hint = did_you_mean(name, entry.schema.names) or _list_names(entry.schema.names)
        if entry.slot == OUTPUT and self.place in ("having", "order by"):
            hint = f"'{self.place}' can use selected attributes only. {hint}"
        if name.lower() == "null":
            hint = (
                "There is no null literal. To ask for null write 'x is null', to give one a call that has no value: "
                "convert('', 'int'), also of long, float and double, or convert(convert('', 'int'), 'string')."
            )
        return SiddhiBindError(f"{where} has no attribute '{name}'", span, hint=hint, kind="AttributeNotExistException")

    def _check_index(self, entry: VisibleEvent, index: tree.EventIndex | None, span: Span) -> None:
        if index is not None and entry.slot < 0:
            raise SiddhiBindError("only events of a pattern can be indexed", span)

    def _of_own_name(self, entry: VisibleEvent, index: tree.EventIndex | None) -> tree.EventIndex | None:
        """`index` as it counts where `entry` is another state of the own state's name.

        `[last]` of the own name is the event before the one that is looked at. Siddhi's `parseVariable` counts so
        wherever the name is the own one, so it is the last event but one of the other state.
        """
        if index is None or not index.from_last or entry.slot == self.own_slot or entry.name != self.own_ref:
            return index
        return replace(index, offset=index.offset + 1)

    def _ref(
        self, entry: VisibleEvent, at: int, index: tree.EventIndex | None, span: Span, *, is_qualified: bool
    ) -> Expr:
        self._check_index(entry, index, span)
        index = self._of_own_name(entry, index)
        attribute = entry.schema[at]
        type_ = attribute.type
        if entry.is_counted and index is None and entry.slot != self.own_slot:
            if self.lists and is_qualified:
                type_ = Type.OBJECT
            else:  # of several events a filter sees the latest, clauses after the match the first
                index = tree.EventIndex(0, from_last=self.own_slot is not None)
        return Ref(type_, entry.slot, at, attribute.name, index, span=span)


def _list_names(names: tuple[str, ...] | list[str]) -> str | None:
    return f"Known here: {', '.join(dict.fromkeys(names))}." if names else None
