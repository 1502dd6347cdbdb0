"""The units of a plan's state: each is kept or restarted as a whole when an app is changed and deployed again.

A unit is a query, a partition with all that is in it, a table, a named window, a trigger or an aggregation. Its digest
decides whether its state fits: it covers all of its own plan, with the schemas that it reads and writes, and nothing of
other units.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import nodes as n
from .query_parts import expressions, sources

_IGNORED = frozenset({"annotations", "safety", "text", "span", "name", "properties", "shard", "ignored"})
_DIGITS = 16


@dataclass(frozen=True)
class DigestForm:
    """A version's form of the parts of a plan in their digests: it leaves out attributes that it does not know
    (`unknown`, as `Class.name`) where they have their default, and has its own `names` of classes. An app's folder has
    the digests of the version that wrote it.
    """

    unknown: frozenset[str] = frozenset()
    names: Mapping[str, str] = dataclasses.field(default_factory=dict)


_PRESENT = DigestForm()
FORMER_FORMS = (
    DigestForm(names={"PurgeRule": "Retention"}),
    DigestForm(frozenset({"TableDef.joint_indexes"}), {"PurgeRule": "Retention"}),  # 0.1.0
)
"""The forms of earlier versions. A new attribute of a class of `nodes` needs one, as does a new name of a class:
`tests/engine/test_former_digests.py` tells."""


@dataclass(frozen=True)
class StateUnit:
    """A unit by its `kind` (query, partition, table, window, trigger, aggregation) and name. `keeps`: whether it has
    state at all. `named`: whether the app's text gives the name; other queries and partitions are numbered.
    `former_digests`: digests in the forms of earlier versions, if they differ."""

    kind: str
    name: str
    digest: str
    keeps: bool = True
    named: bool = True
    former_digests: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Its key among the units of an app."""
        return f"{self.kind} {self.name}"


def relevant(value: Any, form: DigestForm = _PRESENT) -> Any:
    """The properties of a part of a plan on which its state depends: not comments, layout, annotations, names or shard
    ids.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kind = type(value).__name__
        fields = [f for f in dataclasses.fields(value) if f.compare and f.name not in _IGNORED]
        if form.unknown:
            fields = [
                f for f in fields if f"{kind}.{f.name}" not in form.unknown or getattr(value, f.name) != f.default
            ]
        return form.names.get(kind, kind), [(f.name, relevant(getattr(value, f.name), form)) for f in fields]
    if isinstance(value, Mapping):
        return [(k, relevant(v, form)) for k, v in sorted(value.items())]
    if isinstance(value, tuple | list):
        return [relevant(v, form) for v in value]
    return value


def state_units(plan: n.Plan) -> tuple[StateUnit, ...]:
    """The units of an app, in the order of the text within each kind."""
    out = [
        StateUnit("table", t, _digest(d, d.is_stored), not d.is_stored, former_digests=_former_digests(d, d.is_stored))
        for t, d in plan.tables.items()
    ]
    out += [StateUnit("window", w, _digest(d)) for w, d in plan.windows.items()]
    out += [StateUnit("trigger", t.id, _digest(t), not t.start) for t in plan.triggers.values()]
    for a in plan.aggregations.values():
        names = [*(c.name for c in a.base), *a.source.schema.names]  # the store has them
        out.append(StateUnit("aggregation", a.id, _digest(a, names), former_digests=_former_digests(a, names)))
    for e in plan.elements:
        if isinstance(e, n.Partition):
            out.append(StateUnit("partition", e.id, _of_partition(e), named=False))
        else:
            out.append(StateUnit("query", e.name, _of_query(e), _keeps(e), e.named))
    return tuple(out)


def bound_units(plan: n.Plan) -> list[frozenset[str]]:
    """Keys of units whose states must be of one age: a named window, and the queries whose state counts on seeing each
    of its events enter and leave."""
    out = []
    for w, definition in plan.windows.items():
        group = {f"window {w}"}
        for e in plan.elements:
            queries = e.queries if isinstance(e, n.Partition) else (e,)
            if any(_counts_on(q, w, expires=definition.output != "current") for q in queries):
                group.add(f"partition {e.id}" if isinstance(e, n.Partition) else f"query {e.name}")
        if len(group) > 1:
            out.append(frozenset(group))
    return out


def _counts_on(query: n.Query, window: str, *, expires: bool) -> bool:
    if all(s.id != window for s in sources(query)):
        return False
    if isinstance(query.input, n.JoinInput):
        return True  # its state is the window's contents
    if isinstance(query.input, n.StateInput):
        return False  # a pattern takes no expired events
    aggregates = any(isinstance(e, n.Agg) for x in expressions(query) for e in n.walk(x))
    return expires and (aggregates or query.rate is not None)


def aggregations_read(plan: n.Plan) -> frozenset[str]:
    """Ids of the aggregations that queries read: nodes hold their buckets."""
    return frozenset(s.id for q in plan.queries for s in sources(q) if s.kind == "aggregation")


def _keeps(query: n.Query) -> bool:
    """True if a query has state: a plain filter treats an event independently of earlier ones."""
    if not isinstance(query.input, n.StreamInput) or query.rate is not None:
        return True
    if any(isinstance(e, n.Agg) for x in expressions(query) for e in n.walk(x)):
        return True
    return query.select.limit is not None or any(not isinstance(s, n.FilterStep) for s in query.input.steps)


def _of_query(query: n.Query) -> str:
    return _digest(query.input, query.select, query.rate, query.output)


def _of_partition(partition: n.Partition) -> str:
    query_parts = [(q.input, q.select, q.rate, q.output) for q in partition.queries]
    return _digest(partition.keys, partition.purge, partition.inner, query_parts, without=f"{partition.id}#")


def _former_digests(*parts: Any) -> tuple[str, ...]:
    """The digests in the forms of earlier versions, where they differ. The other kinds of units are written alike."""
    present = _digest(*parts)
    digests = (_digest(*parts, form=form) for form in FORMER_FORMS)
    return tuple(dict.fromkeys(digest for digest in digests if digest != present))


def _digest(*parts: Any, without: str | None = None, form: DigestForm = _PRESENT) -> str:
    text = repr(relevant(parts, form))
    if without is not None:
        text = text.replace(without, "#")
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


# -------------------------------------------------------------------------------------- from one app to the next


@dataclass(frozen=True)
class KeptUnit:
    """A unit in the run of an app: its digest, and with which change of the app its state began (0: with the app)."""

    digest: str
    since: int
    named: bool = True
    keeps: bool = True

    @property
    def token(self) -> str:
        """Name of the unit's state in a snapshot: another beginning is another state."""
        return f"{self.digest}.{self.since}"


@dataclass(frozen=True)
class UnitChanges:
    """Fate of the units of a changed app. `units` are the units from then on, by key. The others are keys: `kept`,
    `added`, `changed` (in their own text), `bound` (restarted with another unit that is), `removed`.
    """

    units: Mapping[str, KeptUnit]
    kept: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    bound: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    @property
    def keeps(self) -> bool:
        """True if any state continues."""
        return any(self.units[key].keeps for key in self.kept)


def units_of(plan: n.Plan) -> dict[str, KeptUnit]:
    """The units of an app that begins."""
    return {u.key: KeptUnit(u.digest, 0, u.named, u.keeps) for u in state_units(plan)}


def _bound_with(new_keys: set[str], groups: Sequence[frozenset[str]]) -> set[str]:
    """The keys of other units whose states must be of one age with new ones, by groups that share a unit."""
    bound: set[str] = set()
    while more := [g - new_keys - bound for g in groups if g & (new_keys | bound) and g - new_keys - bound]:
        bound |= frozenset().union(*more)
    return bound


def unit_changes(previous_units: Mapping[str, KeptUnit], plan: n.Plan, change: int) -> UnitChanges:
    """Fate of the units `previous_units` when the app is `plan` from its change number `change` on.

    Units are matched by their names, if the text gives them; other queries and partitions by their digests, in the
    order of the text.
    """
    units = state_units(plan)
    key_matches = _match_units(previous_units, units)
    new_keys = {u.key for u in units if u.key not in key_matches}
    bound = _bound_with(new_keys, bound_units(plan))
    out = {}
    for u in units:
        if u.key in new_keys | bound:
            out[u.key] = KeptUnit(u.digest, change, u.named, u.keeps)
        else:  # the digest names its state in snapshots, also one of an earlier version
            out[u.key] = dataclasses.replace(previous_units[key_matches[u.key]], named=u.named, keeps=u.keeps)
    removed_keys = set(previous_units) - set(key_matches.values())
    changed_keys = [
        u.key
        for u in units
        if u.key in new_keys and u.key in removed_keys and (u.named or not previous_units[u.key].named)
    ]
    return UnitChanges(
        out,
        kept=tuple(u.key for u in units if u.key not in new_keys | bound),
        added=tuple(u.key for u in units if u.key in new_keys and u.key not in changed_keys),
        changed=tuple(changed_keys),
        bound=tuple(u.key for u in units if u.key in bound),
        removed=tuple(key for key in previous_units if key in removed_keys and key not in changed_keys),
    )


def _match_units(previous_units: Mapping[str, KeptUnit], units: Sequence[StateUnit]) -> dict[str, str]:
    """The former key of each unit whose state fits, by its key now."""
    out = {u.key: u.key for u in units if u.named and u.key in previous_units and _same(previous_units[u.key], u)}
    matched_keys: Collection[str] = set(out.values())
    unmatched_keys = [key for key in previous_units if key not in matched_keys]
    for u in units:
        if u.key in out or (u.named and u.kind != "query"):
            continue
        of_kind = (key for key in unmatched_keys if key.startswith(f"{u.kind} "))
        match_key = next((key for key in of_kind if _same(previous_units[key], u)), None)
        if match_key is not None:
            out[u.key] = match_key
            unmatched_keys.remove(match_key)
    return out


def _same(previous_unit: KeptUnit, unit: StateUnit) -> bool:
    return previous_unit.digest == unit.digest or previous_unit.digest in unit.former_digests


def state_tokens(plan: n.Plan, units: Mapping[str, KeptUnit]) -> dict[str, str]:
    """The token of each part of a node's state: by the keys of units, and of every query in a partition."""
    return _with_partitions(plan, {key: unit.token for key, unit in units.items()})


def content_tokens(plan: n.Plan) -> dict[str, str]:
    """The same by the content of each part alone, where no earlier app is known: equal parts get numbers."""
    counts: Counter[str] = Counter()
    out = {}
    for unit in state_units(plan):
        content = f"{unit.name if unit.named else ''}.{unit.digest}"
        counts[content] += 1
        out[unit.key] = f"{content}.{counts[content]}"
    return _with_partitions(plan, out)


def _with_partitions(plan: n.Plan, tokens: Mapping[str, str]) -> dict[str, str]:
    """Tokens of units, and of every query in a partition."""
    out = dict(tokens)
    for e in plan.elements:
        if isinstance(e, n.Partition):
            token = out[f"partition {e.id}"]
            out |= {f"query {q.name}": f"{token} query {i}" for i, q in enumerate(e.queries)}
    return out
