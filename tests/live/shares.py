"""What several live nodes put out that share the events of a case, and one node that takes all of them.

The nodes are real Siddhi engines. The clock of each moves with every event, as the wall's does: a node without one at a
step gets its time alone. So their outputs are what divergence is computed from, and the verdicts follow.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from fuzz.compose import AREAS, compose
from fuzz.oracle import Oracle
from reference.compare import same
from reference.engine_cases import fits, input_batch, run_case
from reference.parts import read, siddhi_files
from reference.replay import listed_differences
from sparkstream_nb.app.results.divergence import Divergence, Truth
from sparkstream_nb.app.results.output_matching import Alert
from sparkstream_nb.engine.columnar.column_data import Array
from sparkstream_nb.engine.expressions.objects import jsonable
from sparkstream_nb.errors import SparkStreamError
from sparkstream_nb.journal.inbox import Inbox
from sparkstream_nb.journal.routing import Route, assign
from sparkstream_nb.plan import compile_app, gaps
from sparkstream_nb.plan.nodes import Plan
from sparkstream_nb.plan.shard_safety.known_faults import known_faults
from sparkstream_nb.replay.replay import Nodes, Way
from sparkstream_nb.replay.study_tasks import Input

Events = Mapping[str, Sequence[Any]]
"""By derived stream, its events: `[timestamp, [values]]`."""
AREAS_OF_OUTPUTS = [area for area in AREAS if area != "aggregations"]
LISTED = {
    "A group under `every` restarts when what must not come has come", "A match that a rate limit holds keeps its time",
}  # fmt: skip
"""Differences that random apps have; others are left out of them."""
SHOWN_BY_EVENTS = ("math:percentile", "stdDev")
"""What has a listed difference that events show, and no text: a case of it may show it with other events."""
CASE = {"id", "app", "feed", "expect"}
"""What a recorded case has; one with more asks of its node what several cannot be asked."""


@dataclass(frozen=True)
class Share:
    """An app, its events and movements of the clock (steps of the reference format), shared in a `way`. `answers`: what
    the one live node put out that took all events, and each of those that shared them."""

    app: str
    feed: Sequence[Any]
    way: Way
    answers: Sequence[Events] = ()

    @staticmethod
    def from_json(line: Mapping[str, Any]) -> Share:
        """A recorded one."""
        return Share(line["app"], line["feed"], Way(line["nodes"], line["routing"]), line["answers"])

    @property
    def json(self) -> dict[str, Any]:
        """The form that `from_json` reads."""
        way = {"nodes": self.way.nodes, "routing": self.way.route}
        return {"app": self.app, "feed": self.feed, **way, "answers": self.answers}

    @property
    def plan(self) -> Plan:
        """The plan of the app."""
        return compile_app(self.app)

    @property
    def derived(self) -> list[str]:
        """The streams that are not sent to: live nodes report what came in too."""
        sent = {step[0] if isinstance(step, list) else step.get("stream") for step in self.feed}
        return [s for s in self.plan.streams if s not in sent]

    @property
    def cases(self) -> list[dict[str, Any]]:
        """The cases of the one node and of each of the nodes: at each step the node's events, or else its time."""
        plan = self.plan
        schemas = {s: d.source.schema for s, d in plan.streams.items()}
        assert self.way.route is not None
        route = Route.parse(self.way.route, self.way.nodes, schemas)
        feeds: list[list[Any]] = [[] for _ in range(self.way.nodes)]
        request = 0
        for step in self.feed:
            batch = input_batch(plan, [step])
            places = assign(batch, route, schemas, self.way.nodes, request)
            request += bool(batch.rows)
            for node, feed in enumerate(feeds):
                part = _part(step, places, node)
                # An event moves the clock itself; a second movement would fire another timer of that time.
                if part is None or (part is not step and part["batch"][-1][0] < batch.clock[-1]):
                    feed.append({"tick": int(batch.clock[-1])})
                if part is not None:
                    feed.append(part)
        return [{"id": "live/share", "app": self.app, "feed": feed} for feed in (self.feed, *feeds)]


def _part(step: Any, places: Mapping[str, Array], node: int) -> Any:
    """The part of a step that is a node's; None if it has none."""
    if isinstance(step, list):
        return step if places[step[0]][0] == node else None
    if "tick" in step:
        return None
    rows = [row for row, place in zip(step["batch"], places[step["stream"]], strict=True) if place == node]
    return {**step, "batch": rows} if rows else None


def random_share(seed: int, number: int) -> Share | None:
    """A random app, its events and a way to share them; None as of `share_of`."""
    return share_of(compose(seed, number, AREAS_OF_OUTPUTS[number % len(AREAS_OF_OUTPUTS)]), f"{seed}-{number}")


def recorded_shares(seed: int) -> Iterator[Share]:
    """The apps and events of recorded cases in a random order, each with a random way to share them; without scripts
    and aggregations, and those in which a listed difference shows, or could with other events."""
    listed = {case for difference in listed_differences() for case in difference["cases"]}
    cases = [case for path in siddhi_files() for case in read(path) if case["id"] not in listed]
    Random(seed).shuffle(cases)
    for case in cases:
        if case.keys() - CASE or any(name in case["app"] for name in SHOWN_BY_EVENTS):
            continue
        share = share_of(case, f"{seed}-{case['id']}")
        if share is None or not share.feed:
            continue
        if not (share.plan.aggregations or share.plan.functions or known_faults(share.plan)):
            yield share


def share_of(case: Mapping[str, Any], seed: str) -> Share | None:
    """A case, shared in a random way; None where Siddhi's answer proves nothing: the app cannot run here, has a listed
    difference, or one of its events fails here, as Siddhi drops the rest of its chunk with it."""
    random = Random(seed)
    routing = random.choice(["round_robin", "round_robin", "hash:k", f"random:{random.randint(0, 999)}"])
    try:
        plan = compile_app(case["app"])
        feed = [step for step in case["feed"] if _is_sent(plan, step)]
        share = Share(case["app"], feed, Way(random.choice([2, 2, 3, 4]), routing))
        return share if is_counted(share) else None
    except SparkStreamError:
        return None


def is_counted(share: Share) -> bool:
    """True if Siddhi's answer proves something: see `share_of`. Raises SiddhiError for a wrong app."""
    plan = share.plan
    is_listed = any(note.fault.difference in LISTED for note in known_faults(plan))
    if is_listed or next(iter(gaps.find_gaps(plan)), None):
        return False
    return not any(run_case(c).get("fault") for c in share.cases)


def _is_sent(plan: Plan, step: Any) -> bool:
    """True for movements of the clock, and for events whose values fit."""
    if isinstance(step, list):
        stream, rows = step[0], [step[2]]
    elif "batch" in step:
        stream, rows = step["stream"], [values for _, values in step["batch"]]
    else:
        return "tick" in step
    types = plan.schema(stream).types
    return all(len(row) == len(types) and fits(types, row) for row in rows)


def with_answers(share: Iterable[Share], oracle: Oracle, *, nodes: bool = True) -> Iterator[Share]:
    """Those that live nodes answer with no event lost, with their answers; without `nodes`, of the one that takes all
    events."""
    for one in share:
        answers = list(oracle.answers(one.cases if nodes else one.cases[:1]))
        if all(map(_is_whole, answers)):
            derived = one.derived
            outputs = [a["expect"]["streams"] for a in answers]
            yield replace(one, answers=[{s: o[s] for s in derived if o.get(s)} for o in outputs])


def _is_whole(answer: dict[str, Any]) -> bool:
    """True if every event came to its stream: one that fails in a query does not come to the stream's later readers."""
    expect = answer.get("expect", {})
    if "streams" not in expect or expect.get("fault"):
        return False
    sent = Counter[str]()
    for step in answer["feed"]:
        if isinstance(step, list):
            sent[step[0]] += 1
        elif "batch" in step:
            sent[step["stream"]] += len(step["batch"])
    return all(len(expect["streams"].get(stream, ())) >= count for stream, count in sent.items())


# ---------------------------------------------------------------------------------------------------------- comparison


def compare_with_one(share: Share) -> Divergence:
    """Our divergence of the nodes that share the events; their clock starts at 0, as in Siddhi's playback."""
    names = [f"node-{i + 1}" for i in range(share.way.nodes)]
    with recorded_input(share) as source:
        return Truth("app", source, Nodes(share.plan, 0), names).against(share.way)


@contextmanager
def recorded_input(share: Share) -> Iterator[Input]:
    """The events as a recording, which is gone afterwards."""
    plan = share.plan
    schemas = {s: d.source.schema for s, d in plan.streams.items()}
    with tempfile.TemporaryDirectory() as folder:
        inbox = Inbox(Path(folder) / "inbox")
        for step in share.feed:
            inbox.append([inbox.batch(input_batch(plan, [step]), "round_robin")])
        inbox.close()
        yield Input(str(Path(folder) / "inbox"), schemas, share.way.nodes, len(share.feed))


def outputs_equal(alerts: Sequence[Alert], live: Sequence[Any]) -> bool:
    """True if our outputs are those of a live node, in any order."""
    return not _bag_difference(live, [_event(a) for a in alerts])


def differences(share: Share) -> list[str]:
    """How our nodes differ from the live ones, in words: in what the one puts out that takes all events, in what each
    of several puts out, or else in the verdicts that follow from these outputs."""
    divergence = compare_with_one(share)
    names = ["one node", *divergence.shards]
    words = [
        f"{name}, {stream}: {word}"
        for name, outputs, live in zip(names, _outputs(divergence), share.answers, strict=True)
        for stream in share.derived
        if (word := _bag_difference(live.get(stream, []), outputs.get(stream, [])))
    ]
    return words or [w for stream in share.derived for w in _verdict_differences(divergence, share, stream)]


def _outputs(divergence: Divergence) -> list[dict[str, list[Any]]]:
    """What the one node and each of the nodes put out."""
    outputs: list[dict[str, list[Any]]] = [{} for _ in ("one node", *divergence.shards)]
    for stream, matches in divergence.matches.items():
        for m in matches:
            if m.true is not None:
                outputs[0].setdefault(stream, []).append(_event(m.true))
            if m.found is not None:
                assert m.found.node is not None
                outputs[1 + m.found.node].setdefault(stream, []).append(_event(m.found))
    return outputs


def _event(alert: Alert) -> list[Any]:
    return [alert.ts, [jsonable(v) for v in alert.values]]


def _unsigned(event: Sequence[Any]) -> list[Any]:
    """An event with 0.0 in place of -0.0: divergence takes them for one value."""
    ts, values = event
    return [ts, [v + 0.0 if isinstance(v, float) else v for v in values]]


def _rest(events: Sequence[Any], others: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Two bags of events without those that both have."""
    rest, left = list(others), []
    for event in events:
        place = next((i for i, other in enumerate(rest) if same(event, other)), None)
        if place is None:
            left.append(event)
        else:
            del rest[place]
    return left, rest


def _bag_difference(expected: Sequence[Any], events: Sequence[Any]) -> str:
    """How two bags of events differ, in words; nothing where they do not."""
    lacking, surplus = _rest(expected, events)
    if lacking:
        return f"lacks {lacking[0]}"
    return f"has {surplus[0]} too" if surplus else ""


def _verdict_differences(divergence: Divergence, share: Share, stream: str) -> Iterator[str]:
    """How a stream's verdicts differ from those by the live outputs: an output that the one node and the nodes have at
    one time is the same; the others of the one are lost or late, the others of the nodes spurious, late or duplicated.

    Ours tell further apart what live outputs do not show: outputs of one time at several movements of the clock, and of
    several queries.
    """
    one, *each = ([_unsigned(event) for event in live.get(stream, [])] for live in share.answers)
    lost, surplus = _rest(one, [event for outputs in each for event in outputs])
    unpaired = [m for m in divergence.matches.get(stream, []) if m.verdict != "same"]
    unpaired_truth = [_unsigned(_event(m.true)) for m in unpaired if m.true is not None]
    unpaired_outputs = [_unsigned(_event(m.found)) for m in unpaired if m.found is not None]
    apart = len(unpaired_truth) - len(_rest(unpaired_truth, unpaired_outputs)[0])
    verdicts = Counter(m.verdict for m in unpaired)
    if verdicts["lost"] + verdicts["late"] != len(lost) + apart:
        yield f"{stream}: {dict(verdicts)}, and {len(lost)} that the nodes lack"
    if verdicts["spurious"] + verdicts["late"] + verdicts["duplicated"] != len(surplus) + apart:
        yield f"{stream}: {dict(verdicts)}, and {len(surplus)} that the one node lacks"
    if any(m.true.identity != m.found.identity for m in unpaired if m.true is not None and m.found is not None):
        yield f"{stream}: late outputs of other values"
