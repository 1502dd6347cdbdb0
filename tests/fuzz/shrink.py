"""Makes a case smaller while it stays interesting: parts of the app's syntax tree and steps of its feed are dropped."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any

from sparkstream_nb.errors import SiddhiError
from sparkstream_nb.lang import tree
from sparkstream_nb.lang.parser import parse
from sparkstream_nb.lang.printer import to_text

Case = dict[str, Any]

# A node of one of these kinds may be replaced by a child of the same kind.
_KINDS = (tree.Expression, tree.StateElement)


def smaller(node: Any) -> Iterator[Any]:
    """Every tree that is `node` with one part dropped, replaced by a part of its own, or made smaller in turn."""
    if isinstance(node, tree.App):
        for i, element in enumerate(node.elements):
            if isinstance(element, tree.Partition):
                yield replace(node, elements=node.elements[:i] + element.queries + node.elements[i + 1 :])
    for kind in _KINDS:
        if isinstance(node, kind):
            for f in fields(node):
                value = getattr(node, f.name)
                for child in value if isinstance(value, tuple) else (value,):
                    if isinstance(child, kind):
                        yield child
    if isinstance(node, tree.StreamDefinition):  # its attributes go together with their values: see narrower
        return
    for f in fields(node):
        value = getattr(node, f.name)
        if f.name == "span":
            continue
        if "None" in str(f.type) and value is not None:
            yield replace(node, **{f.name: None})
        if isinstance(value, tuple):
            for i, item in enumerate(value):
                yield replace(node, **{f.name: value[:i] + value[i + 1 :]})
                if isinstance(item, tree.Node):
                    for less in smaller(item):
                        yield replace(node, **{f.name: (*value[:i], less, *value[i + 1 :])})
        elif isinstance(value, tree.Node):
            for less in smaller(value):
                yield replace(node, **{f.name: less})


def with_less_app(case: Case) -> Iterator[Case]:
    """Cases whose app has less in it and still reads as SiddhiQL."""
    seen = {case["app"]}
    for candidate in smaller(parse(case["app"])):
        try:
            less = to_text(candidate)
            if less not in seen:
                parse(less)
                seen.add(less)
                yield {**case, "app": less}
        except (SiddhiError, AssertionError, IndexError, TypeError, ValueError, AttributeError):
            continue  # a tree that no text has


def with_narrower_streams(case: Case) -> Iterator[Case]:
    """Cases in which a stream lacks an attribute, and its events the value."""
    app = parse(case["app"])
    for i, definition in enumerate(app.definitions):
        if not isinstance(definition, tree.StreamDefinition) or len(definition.attributes) == 1:
            continue
        for j in range(len(definition.attributes)):

            def cut(row: list[Any], j: int = j) -> list[Any]:
                return row[:j] + row[j + 1 :]

            less = replace(definition, attributes=definition.attributes[:j] + definition.attributes[j + 1 :])
            feed: list[Any] = []
            for step in case["feed"]:
                if isinstance(step, list) and step[0] == str(definition.id):
                    feed.append([*step[:2], cut(step[2])])
                elif isinstance(step, dict) and step.get("stream") == str(definition.id):
                    feed.append({**step, "batch": [[at, cut(row)] for at, row in step["batch"]]})
                else:
                    feed.append(step)
            text = to_text(replace(app, definitions=(*app.definitions[:i], less, *app.definitions[i + 1 :])))
            yield {**case, "app": text, "feed": feed}


def with_less_feed(case: Case) -> Iterator[Case]:
    """Cases with fewer steps: halves and quarters go first, then single steps, then events of a step."""
    feed = case["feed"]
    size = len(feed) // 2
    while size:
        for start in range(0, len(feed), size):
            yield {**case, "feed": feed[:start] + feed[start + size :]}
        size //= 2
    for i, step in enumerate(feed):
        if isinstance(step, dict) and "batch" in step:
            if len(step["batch"]) == 1:
                yield {**case, "feed": [*feed[:i], [step["stream"], *step["batch"][0]], *feed[i + 1 :]]}
            for j in range(len(step["batch"])):
                if len(step["batch"]) > 1:
                    less = {**step, "batch": step["batch"][:j] + step["batch"][j + 1 :]}
                    yield {**case, "feed": [*feed[:i], less, *feed[i + 1 :]]}


def shrink(case: Case, interesting: Callable[[Case], bool], seconds: float = 30.0) -> Case:
    """The smallest case found within `seconds` for which `interesting` holds, as it does for `case`."""
    until = time.monotonic() + seconds
    progress = True
    while progress:
        progress = False
        for ways in (with_less_feed, with_less_app, with_narrower_streams):
            again = True
            while again:
                again = False
                for less in ways(case):
                    if time.monotonic() > until:
                        return case
                    if interesting(less):
                        case, again, progress = less, True, True
                        break
    return case
