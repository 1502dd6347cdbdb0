"""The selection that an app's pictures and tables share, read and changed from code."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from ... import argument_checks
from ...errors import Misuse, nearest, shown
from ...plan.output_labels import is_inner
from ...types import Attribute, Schema, Type
from ..deployment.deployment import milliseconds
from ..results.listeners import Followed
from ..results.selected_ends import SelectedEnds
from ..results.selected_events import SelectedEvents, SelectedStream, Selection
from ..results.selection_criteria import Criteria
from .app_relations import AppRelations
from .machine_moments import value_of
from .runtime import AppRuntime
from .stream_reader import StreamReader


class Selecting:
    """The selection of an app."""

    def __init__(self, app: AppRuntime, relations: AppRelations, reader: StreamReader) -> None:
        self._app, self._relations, self._reader = app, relations, reader

    @property
    def selection(self) -> Selection:
        """The selection in the app's pictures and tables: its `frame` has the outputs, its `events` the events behind
        them. In a notebook its display follows the selection."""
        app = self._app
        app.check_open()
        criteria = app.selection.criteria
        streams = [
            SelectedStream(s, s in app.plan.input_streams, SelectedEnds(self._reader.ends(s), s, criteria))
            for s in self._schemas()
        ]
        target = Followed(app.name, app.on_commit, app.view_state, app.selection)
        return Selection(criteria, self._read, streams, target, lambda: self.selection)

    def select(
        self,
        *,
        start: int | str | datetime | None = None,
        end: int | str | datetime | None = None,
        nodes: str | Sequence[str] | None = None,
        where: Mapping[str, Any] | None = None,
    ) -> Selection:
        """Selects events in all pictures and tables of the app: event times from `start` to `end` (ms since 1970, or
        times such as 2013-01-01T06:00:00; both included), `nodes` by shard id, and values of attributes (`where`: one,
        or a list of them, by name; in streams without the attribute it has no effect). Without arguments everything.

        Raises `Misuse` for nodes, attributes and values that the app does not have.
        """
        first = None if start is None else milliseconds(start, "start")
        last = None if end is None else milliseconds(end, "end")
        if first is not None and last is not None and last < first:
            raise Misuse(f"end is before start: {shown(end)} and {shown(start)}")
        names = [nodes] if isinstance(nodes, str) else nodes
        argument_checks.optional_str_list("nodes", names)
        node_names = self._app.app_run.shards
        for name in names or ():
            if name not in node_names:
                raise Misuse(nearest(f"{self._app.name} has no node '{name}'", name, node_names))
        self._app.selection.choose(Criteria(first, last, frozenset(names or ()), self._keys(where)))
        return self.selection

    def _keys(self, where: Any) -> dict[str, tuple[Any, ...]]:
        """The values of attributes that are selected. Raises `Misuse` for a name or a value that cannot be."""
        if where is not None and not isinstance(where, Mapping):
            raise Misuse(f"where is a dict of values by attribute, not {shown(where)}")
        attributes: dict[str, set[Attribute]] = {}
        for schema in self._schemas().values():
            for attribute in schema:
                attributes.setdefault(attribute.name, set()).add(attribute)
        keys = {}
        for name, values in (where or {}).items():
            if name not in attributes:
                message = f"no stream of {self._app.name} has an attribute '{name}'"
                raise Misuse(nearest(message, str(name), list(attributes)))
            value_list = list(values) if isinstance(values, list | tuple | set | frozenset) else [values]
            if not value_list:
                raise Misuse(f"where: {name} has no value")
            keys[name] = tuple(dict.fromkeys(v for value in value_list for v in _typed(value, attributes[name])))
        return keys

    def _schemas(self) -> Mapping[str, Schema]:
        return {name: schema for name, schema in self._app.schemas.items() if not is_inner(name)}

    def _read(self, criteria: Criteria) -> list[SelectedEvents]:
        """The selected events of all streams, as of one commit."""
        schemas = {s: "inputs" if s in self._app.plan.input_streams else "outputs" for s in self._schemas()}
        relations = [r for r in self._relations.relations if schemas.get(r.name) == r.schema]
        rows = self._relations.read(relations).rows
        return [SelectedEvents(r.name, criteria.filter(rows[r], r.name), r.schema == "inputs") for r in relations]


def _typed(value: Any, attributes: Collection[Attribute]) -> list[Any]:
    """A value as attributes of one name have it, which may differ in type. Raises `Misuse` if it is none for any."""
    values, refusals = [], []
    for attribute in sorted(attributes, key=str):
        if attribute.type is Type.OBJECT:
            refusals.append(Misuse(f"where: {attribute.name} is an object, by which nothing is selected"))
            continue
        try:
            values.append(value_of(value, attribute))
        except Misuse as refusal:
            refusals.append(refusal)
    if not values:
        raise refusals[0]
    return values
