"""The symbol table of an app, filled in the order of the text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ...errors import SiddhiBindError, Span, did_you_mean
from ...lang import tree
from ..nodes import AggregationDef, FunctionDef, PluginUse, Source, StreamDef, TableDef, TriggerDef, WindowDef


@dataclass
class Symbols:
    """The app's definitions by id, in the order of the text; streams grow as queries define more of them."""

    text: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    streams: dict[str, StreamDef] = field(default_factory=dict)
    tables: dict[str, TableDef] = field(default_factory=dict)
    windows: dict[str, WindowDef] = field(default_factory=dict)
    triggers: dict[str, TriggerDef] = field(default_factory=dict)
    functions: dict[str, FunctionDef] = field(default_factory=dict)
    aggregations: dict[str, AggregationDef] = field(default_factory=dict)
    plugins: dict[str, PluginUse] = field(default_factory=dict)

    def note_use(self, use: PluginUse | None) -> None:
        """The app calls an extension; None: a function or window of this package."""
        if use is not None:
            self.plugins[use.key] = use

    def find(self, id_: str) -> Source | None:
        """The window, stream, table or aggregation called `id_` (`SingleInputStreamParser` looks in this order)."""
        for definition in (
            self.windows.get(id_),
            self.streams.get(id_),
            self.tables.get(id_),
            self.aggregations.get(id_),
        ):
            if definition is not None:
                return definition.source
        return None

    def ids(self) -> Iterable[str]:
        """All names that a query can read or write."""
        yield from self.streams
        yield from self.tables
        yield from self.windows
        yield from self.aggregations

    def source(self, name: tree.SourceName, partition: str | None, span: Span) -> Source:
        """The source that `name` means in a query of `partition` (None: outside of any).

        Raises SiddhiBindError if there is none.
        """
        source = self.find(full_id(name, partition))
        if source is None:
            raise self.undefined_error(name, partition, span)
        return source

    def undefined_error(self, name: tree.SourceName, partition: str | None, span: Span) -> SiddhiBindError:
        """The error for reading a source that nothing has defined."""
        if name.inner:
            where = "outside of partitions" if partition is None else "of the same partition"
            hint = f"A query {where} before this one must insert into '{name}'."
            return SiddhiBindError(f"inner stream '{name}' is not defined", span, hint=hint)
        if name.fault:
            hint = f"Write @OnError(action='STREAM') before the definition of stream '{name.id}'."
            return SiddhiBindError(f"fault stream '{name}' is not defined", span, hint=hint)
        near = did_you_mean(name.id, (i for i in self.ids() if "#" not in i))
        return SiddhiBindError(f"no stream, table, window or aggregation '{name}' is defined", span, hint=near)


def full_id(name: tree.SourceName, partition: str | None) -> str:
    """The id in the plan: inner streams carry their partition's, fault streams a `!`. Outside of partitions there is
    one `#` stream of a name, apart from the partitions' own and from the stream without `#`, as in Siddhi."""
    if name.inner:
        return f"{partition or ''}#{name.id}"
    return f"!{name.id}" if name.fault else name.id
