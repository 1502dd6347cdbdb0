"""The clauses in which two texts of an app differ, and texts that have some of these changes.

Two texts are compared as syntax trees, so formatting and comments are no change. Definitions are paired by their kind
and name, queries by the name in `@info`, else by what they write and read, in their order; those that are left over, by
their form. Names that stand in one text only, each at the places of one other name that stands in the other text only,
are renamings and no change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

from ..errors import Misuse, nearest
from . import tree as t
from .printer import to_text

Path = tuple[tuple[str, int | None], ...]
"""The way from a node to one below it: the field, and the number in it if it holds several."""


@dataclass(frozen=True)
class Change:
    """A clause that two texts have in different forms.

    `pair` is the number of the paired elements; `path` leads from these to the clause, () for an element that one text
    lacks. `element` names the query or definition, `clause` says what it is. `leaves` lead from the clause to the
    smallest parts that differ.
    """

    pair: int
    path: Path
    element: str
    clause: str
    before: Any
    after: Any
    leaves: tuple[Path, ...] = ()

    @property
    def text_before(self) -> str:
        """The clause in the old text; "" if it has none."""
        return clause_text(_without(self.before, self.after))

    @property
    def text_after(self) -> str:
        """The clause in the new text; "" if it has none."""
        return clause_text(_without(self.after, self.before))

    @property
    def comparisons(self) -> Iterator[tuple[t.Comparison, t.Comparison]]:
        """The comparisons in which the clauses differ, in the old and in the new text."""
        for leaf in self.leaves:
            for length in range(len(leaf), -1, -1):
                before, after = part_at(self.before, leaf[:length]), part_at(self.after, leaf[:length])
                if isinstance(before, t.Comparison) and isinstance(after, t.Comparison):
                    yield before, after
                    break

    def __str__(self) -> str:
        before, after = self.text_before, self.text_after
        if not before:
            return f"{self.element}: {self.clause} {after} added"
        if not after:
            return f"{self.element}: {self.clause} {before} left out"
        return f"{self.element}: {self.clause} {before} became {after}"


@dataclass(frozen=True)
class TextComparison:
    """Two trees, paired: `pairs` holds the definitions, then the queries and partitions, of the old and of the new one,
    None where one lacks them; the new ones with the names of the old. `new_names`: the new name of each old one that
    has another. `new_attributes` has, by old stream and new attribute, the old name of an attribute of this stream
    alone."""

    before: t.App
    after: t.App
    pairs: tuple[tuple[Any, Any], ...]
    new_names: Mapping[str, str]
    new_attributes: Mapping[str, Mapping[str, str]]

    @staticmethod
    def of(before: t.App, after: t.App, new_names: Mapping[str, str] | None = None) -> TextComparison:
        """Compares two trees. `new_names`: known ones, `NAME` or `STREAM.ATTRIBUTE`; others are guessed. Raises
        `Misuse` for a name that is not in its text."""
        names: dict[str, str] = {}
        new_attributes: dict[str, dict[str, str]] = {}
        for old_name, new_name in (new_names or {}).items():
            old_stream, _, attribute = old_name.partition(".")
            new_stream, _, new_attribute = new_name.partition(".")
            if old_stream != new_stream:
                names[old_stream] = new_stream
            if attribute != new_attribute:
                new_attributes.setdefault(old_stream, {})[new_attribute] = attribute
        for text, tree, tree_names in (("old", before, names.keys()), ("new", after, names.values())):
            if unknown := sorted(set(tree_names) - _names(tree)):
                raise Misuse(nearest(f"the {text} text has no name '{unknown[0]}'", unknown[0], _names(tree)))
        with_given_names = with_names(after, {v: k for k, v in names.items()})
        guesses = _find_new_names(before, with_given_names, _pairs(before, with_given_names))
        with_old_names = with_names(with_given_names, {v: k for k, v in guesses.items()})
        pairs = tuple(_pairs(before, with_old_names))
        return TextComparison(before, after, pairs, {**names, **guesses}, new_attributes)

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """The clauses that differ, in the order of the old text; added elements where the new text has them."""
        return tuple(c for number, pair in enumerate(self.pairs) for c in _changes(number, *pair))

    def new_line(self, change: Change) -> int:
        """The line of a change in the new text, from 1; of a removed clause, the line of the element that had it, or
        1."""
        nodes = change.after if isinstance(change.after, tuple) else (change.after,)
        spans = [n.span for n in (*nodes, self.pairs[change.pair][1]) if isinstance(n, t.Node)]
        return max(1, next((s.line for s in spans), 1))

    def with_changes(self, changes: Collection[Change]) -> t.App:
        """The old tree with some of the changes. It need not compile: a change may need another."""
        definitions: list[Any] = []
        elements: list[Any] = []
        for number, (before, _) in enumerate(self.pairs):
            element = before
            for change in changes:
                if change.pair == number:
                    element = with_part(element, change.path, change.after)
            if element is not None:
                (definitions if isinstance(element, t.Definition) else elements).append(element)
        return replace(self.before, definitions=tuple(definitions), elements=tuple(elements))


# -------------------------------------------------------------------------------------------------------------- pairing


def _pairs(before: t.App, after: t.App) -> list[tuple[Any, Any]]:
    definitions = _pair_by_keys(before.definitions, after.definitions, [_definition_key, _definition_form])
    elements = _pair_by_keys(before.elements, after.elements, [_query_name, _query_ends, _query_target, _kind])
    return [*definitions, *elements]


def _pair_by_keys(before: Sequence[Any], after: Sequence[Any], keys: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Pairs those with an equal key, by the first key, then the rest by the next. In the order of the old ones; a new
    one without a partner comes after the one before it."""
    partner: dict[int, int] = {}
    for key in keys:
        free = [j for j in range(len(after)) if j not in partner.values()]
        for i, element in enumerate(before):
            if i in partner or key(element) is None:
                continue
            match = next((j for j in free if key(after[j]) == key(element)), None)
            if match is not None:
                partner[i] = match
                free.remove(match)
    pairs: list[tuple[Any, Any]] = [(e, after[partner[i]] if i in partner else None) for i, e in enumerate(before)]
    for j, element in enumerate(after):
        if j not in partner.values():
            last = len(pairs) - 1 if j else -1
            neighbour = next((n for n, (_, b) in enumerate(pairs) if j and b is after[j - 1]), last)
            pairs.insert(neighbour + 1, (None, element))
    return pairs


def _definition_key(d: t.Definition) -> Any:
    return type(d), _name_of(d)


def _definition_form(d: t.Definition) -> Any:
    return type(d), tuple(a.type for a in getattr(d, "attributes", ()))


def _query_name(e: t.Query | t.Partition) -> Any:
    info = t.find_annotation(e.annotations, "info")
    return next((x.value for x in info.elements if x.key == "name"), None) if info is not None else None


def _query_ends(e: t.Query | t.Partition) -> Any:
    return type(e), tuple((_target(q), *_inputs(q)) for q in _queries(e))


def _query_target(e: t.Query | t.Partition) -> Any:
    return type(e), tuple(_target(q) for q in _queries(e))


def _kind(e: t.Query | t.Partition) -> Any:
    return type(e), tuple(type(q.input) for q in _queries(e))


def _queries(e: t.Query | t.Partition) -> Sequence[t.Query]:
    return e.queries if isinstance(e, t.Partition) else (e,)


def _target(q: t.Query) -> str:
    target = getattr(q.output, "target", None)
    return to_text(target) if target is not None else ""


def _inputs(q: t.Query) -> Iterator[str]:
    return (to_text(n) for n in nodes_of(q.input) if isinstance(n, t.SourceName))


def _name_of(d: Any) -> str:
    return d.id.id if isinstance(d.id, t.SourceName) else str(d.id)


# ------------------------------------------------------------------------------------------------------------ renaming

_NAMES: Mapping[type, tuple[str, ...]] = {
    t.SourceName: ("id",), t.Variable: ("name",), t.OutputAttribute: ("name",), t.AttributeDefinition: ("name",),
    t.In: ("table",), t.ValuePartition: ("stream",), t.RangePartition: ("stream",), t.JoinSide: ("alias",),
    t.StreamState: ("ref",), t.TriggerDefinition: ("id",), t.AggregationDefinition: ("id",),
}  # fmt: skip
"""The fields that hold names."""


def _names(node: Any) -> set[str]:
    return {v for n in nodes_of(node) for f in _NAMES.get(type(n), ()) if isinstance(v := getattr(n, f), str)}


def _find_new_names(before: t.App, after: t.App, pairs: Iterable[tuple[Any, Any]]) -> dict[str, str]:
    """The new names of renamed elements and attributes, by their old names."""
    only_old, only_new = _names(before) - _names(after), _names(after) - _names(before)
    candidates: dict[str, set[str]] = {}
    for one, other in pairs:
        for path in _differences(one, other):
            a, b = part_at(one, path), part_at(other, path)
            for field in _NAMES.get(type(a), ()) if type(a) is type(b) else ():
                x, y = getattr(a, field), getattr(b, field)
                if x in only_old and y in only_new:
                    candidates.setdefault(x, set()).add(y)
    counts = Counter(y for names in candidates.values() for y in names)
    return {x: y for x, names in candidates.items() for y in names if len(names) == 1 and counts[y] == 1}


def with_names(node: Any, names: Mapping[str, str]) -> Any:
    """The tree with other names."""
    if not names:
        return node
    if isinstance(node, tuple):
        return tuple(with_names(n, names) for n in node)
    if not isinstance(node, t.Node):
        return node
    values = {f.name: with_names(getattr(node, f.name), names) for f in fields(node) if f.name != "span"}
    for field in _NAMES.get(type(node), ()):
        values[field] = names.get(values[field], values[field])
    return replace(node, **values)


# ------------------------------------------------------------------------------------------------------------- clauses

_CLAUSES: Mapping[tuple[type, str], str] = {
    (t.Selection, "attributes"): "select", (t.Selection, "star"): "select", (t.Selection, "group_by"): "group by",
    (t.Selection, "having"): "having", (t.Selection, "order_by"): "order by", (t.Selection, "limit"): "limit",
    (t.Selection, "offset"): "offset", (t.Query, "rate"): "rate", (t.Query, "output"): "output",
    (t.StateStream, "within"): "within", (t.StateStream, "kind"): "kind", (t.AbsentState, "wait"): "waiting time",
    (t.JoinStream, "on"): "join condition", (t.JoinStream, "within"): "within", (t.JoinStream, "per"): "per",
    (t.JoinStream, "kind"): "kind of join", (t.JoinStream, "unidirectional"): "unidirectional",
    (t.Partition, "keys"): "partition key", (t.WindowDefinition, "window"): "window",
    (t.TriggerDefinition, "every"): "period", (t.TriggerDefinition, "at"): "times",
    (t.AggregationDefinition, "by"): "aggregate by", (t.AggregationDefinition, "durations"): "durations",
}  # fmt: skip
_HANDLERS: Mapping[type, str] = {t.Filter: "filter", t.Window: "window", t.StreamFunction: "stream function"}


def _changes(pair: int, before: Any, after: Any) -> Iterator[Change]:
    if before is None or after is None:
        element = before or after
        clause = "definition" if isinstance(element, t.Definition) else "query"
        yield Change(pair, (), title_of(element), clause, before, after)
        return
    by_clause: dict[tuple[Path, str], list[Path]] = {}
    for path in _differences(before, after):
        cut, clause = _clause_of(before, after, path)
        leaf = _up_to_variable(part_at(before, path[:cut]), path[cut:])
        leaves = by_clause.setdefault((path[:cut], clause), [])
        if leaf not in leaves:
            leaves.append(leaf)
    for (path, clause), leaves in by_clause.items():
        title = title_of(_query_at(before, path))
        yield Change(pair, path, title, clause, part_at(before, path), part_at(after, path), tuple(leaves))


def _differences(before: Any, after: Any, path: Path = ()) -> Iterator[Path]:
    """The ways to the smallest parts that differ: nodes, and tuples of different lengths."""
    if before is None or after is None or type(before) is not type(after):
        if before != after:
            yield path
        return
    is_other = False
    for f in fields(before):
        if not f.compare or (f.name == "annotations" and isinstance(before, t.Query | t.Partition)):
            continue
        a, b, step = getattr(before, f.name), getattr(after, f.name), (f.name, None)
        if isinstance(a, t.Node) or isinstance(b, t.Node):
            yield from _differences(a, b, (*path, step))
        elif isinstance(a, tuple) and any(isinstance(x, t.Node) for x in (*a, *b)):
            if len(a) != len(b):
                yield (*path, step)
                continue
            for i, (x, y) in enumerate(zip(a, b, strict=True)):
                yield from _differences(x, y, (*path, (f.name, i)))
        elif a != b and (type(before), f.name) in _CLAUSES:
            yield (*path, step)
        else:
            is_other |= a != b
    if is_other:
        yield path


def _clause_of(before: Any, after: Any, path: Path) -> tuple[int, str]:
    """The number of steps of a path to the clause that it is in, and the kind of this clause."""
    one, other = before, after
    for i, (field, number) in enumerate(path):
        owner = one
        one, other = part_at(one, ((field, number),)), part_at(other, ((field, number),))
        if (clause := _CLAUSES.get((type(owner), field))) is not None:
            return i + 1, clause
        if field == "handlers":
            kinds = {_HANDLERS[type(h)] for h in (one, other) if type(h) in _HANDLERS} or _unequal_kinds(one, other)
            return i + 1, " and ".join(sorted(kinds))
    if isinstance(one, t.CountState):
        return len(path), "count"
    if isinstance(before, t.Definition):
        return len(path), "definition"
    return len(path), "pattern" if isinstance(one, t.StateElement) else "input"


def _up_to_variable(clause: Any, path: Path) -> Path:
    """The path, ended at an attribute's name with all that belongs to it."""
    for i in range(len(path)):
        if isinstance(part_at(clause, path[:i]), t.Variable):
            return path[:i]
    return path


def _unequal_kinds(one: Any, other: Any) -> set[str]:
    rest = [h for h in (*one, *other) if not (h in one and h in other)]
    return {_HANDLERS[type(h)] for h in rest} or {"order of handlers"}


def _query_at(element: Any, path: Path) -> Any:
    """The query that a path leads into, of a partition; else the element itself."""
    return part_at(element, path[:1]) if path and path[0][0] == "queries" else element


def title_of(element: Any) -> str:
    """The title of a query or definition in messages."""
    if isinstance(element, t.Definition):
        kind = type(element).__name__.removesuffix("Definition").lower()
        return f"{kind} {_name_of(element)}"
    name = _query_name(element)
    if name is not None:
        return f"query {name}"
    return "partition" if isinstance(element, t.Partition) else f"the query that writes {_target(element)}"


# --------------------------------------------------------------------------------------------------------------- nodes


def nodes_of(node: Any) -> Iterator[t.Node]:
    """A node, or a tuple of them, with all nodes below."""
    if isinstance(node, tuple):
        for n in node:
            yield from nodes_of(n)
    elif isinstance(node, t.Node):
        yield node
        for f in fields(node):
            yield from nodes_of(getattr(node, f.name))


def part_at(node: Any, path: Path) -> Any:
    """The part at the end of a path."""
    for field, number in path:
        node = getattr(node, field) if number is None else getattr(node, field)[number]
    return node


def with_part(node: Any, path: Path, part: Any) -> Any:
    """The node with another part at the end of a path."""
    if not path:
        return part
    (field, number), *rest = path
    value = getattr(node, field)
    if number is None:
        return replace(node, **{field: with_part(value, tuple(rest), part)})
    items = [*value[:number], with_part(value[number], tuple(rest), part), *value[number + 1 :]]
    return replace(node, **{field: tuple(items)})


def _without(part: Any, other: Any) -> Any:
    """The items of a tuple that another one does not have; any other part unchanged."""
    return tuple(p for p in part if p not in other) if isinstance(part, tuple) and isinstance(other, tuple) else part


def clause_text(part: Any) -> str:
    """A clause as text; several one after the other; "" for None."""
    if part is None:
        return ""
    if isinstance(part, tuple):
        return ("" if isinstance(next(iter(part), None), t.Handler) else ", ").join(map(clause_text, part))
    if isinstance(part, t.StateElement):
        return to_text(t.StateStream("pattern", part))
    return to_text(part) if isinstance(part, t.Node) else str(part)
