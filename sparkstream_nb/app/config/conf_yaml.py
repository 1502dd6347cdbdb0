"""Reads the YAML of deployment files, which are not trusted: with limits on their use of the process."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import yaml

from ...errors import Misuse

MOST_BYTES = 256 * 1024
MOST_NODES = 20_000
"""Values of a file; an alias counts as the values that it repeats."""
MOST_DEPTH = 40
_MOST_DIGITS = 100


def load_yaml(path: Path) -> Any:
    """The value of a YAML file. Raises `Misuse`, with file and line where they are known, for a file that cannot be
    read, that is no YAML, or that is larger, deeper or has more values than a deployment file may have."""
    try:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
        text = raw.decode("utf-8")
    except FileNotFoundError:
        raise Misuse(f"there is no deployment file {path}") from None
    except OSError as e:
        raise Misuse(f"{path} cannot be read: {e.strerror or e}") from None
    except UnicodeDecodeError as e:
        if len(raw) <= MOST_BYTES:
            raise Misuse(f"{path} cannot be read: byte {e.start:,} is no UTF-8") from None
    if len(raw) > MOST_BYTES:
        raise Misuse(f"{path} has more than {MOST_BYTES // 1024} kB, the most for a deployment file")
    try:
        _check_size(path, text)
        return yaml.load(text, _Loader)  # a SafeLoader
    except yaml.constructor.ConstructorError as e:
        line = f", line {e.problem_mark.line + 1}" if e.problem_mark is not None else ""
        raise Misuse(f"{path}{line}: {_without_values(e.problem)}") from None
    except yaml.MarkedYAMLError as e:
        line = f", line {e.problem_mark.line + 1}" if e.problem_mark is not None else ""
        raise Misuse(f"{path}{line} is not YAML: {_without_values(e.problem or e.context)}") from None
    except yaml.YAMLError as e:
        raise Misuse(f"{path} is not YAML: {str(e).splitlines()[0]}") from None


def _without_values(problem: str | None) -> str:
    """A problem of PyYAML's without the alias or tag that it quotes: a secret may begin with `*` or `!`."""
    text, quoted_count = re.subn(r" ['\"][^'\"]{2,}['\"]", "", problem or "")
    return f"{text}: a text is in quotes" if quoted_count else text


def _check_size(path: Path, text: str) -> None:
    """Counts values and depth from the parser's events, before anything is built. Raises `Misuse`."""
    sizes: dict[str, tuple[int, int]] = {}  # by anchor: values, depth
    open_: list[tuple[str | None, int, int]] = [(None, 0, 0)]  # anchor, values so far, depth below
    for event in yaml.parse(text, yaml.SafeLoader):
        line = 0 if event.start_mark is None else event.start_mark.line + 1
        match event:
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                open_.append((event.anchor, 1, 0))
                size = (0, 0)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                anchor, count, depth = open_.pop()
                size = (count, depth + 1)
                if anchor is not None:
                    sizes[anchor] = size
            case yaml.ScalarEvent():
                size = (1, 0)
                if event.anchor is not None:
                    sizes[event.anchor] = size
            case yaml.AliasEvent():
                if any(anchor == event.anchor for anchor, _, _ in open_):
                    raise Misuse(f"{path}, line {line}: '*{event.anchor}' stands for what it is in")
                size = sizes.get(str(event.anchor), (1, 0))
            case _:
                continue
        anchor, count, depth = open_[-1]
        open_[-1] = (anchor, count + size[0], max(depth, size[1]))
        if sum(c for _, c, _ in open_) > MOST_NODES:
            raise Misuse(f"{path}, line {line}: the file has more than {MOST_NODES:,} values, aliases counted in full")
        if len(open_) - 1 + size[1] > MOST_DEPTH:
            raise Misuse(f"{path}, line {line}: values are nested more than {MOST_DEPTH} deep")


class _Loader(yaml.SafeLoader):
    """A SafeLoader that names the line of a scalar that is no value of its kind."""

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        return self._scalar(node, super().construct_yaml_int, "number")

    def construct_yaml_float(self, node: yaml.ScalarNode) -> float:
        return self._scalar(node, super().construct_yaml_float, "number")

    def construct_yaml_timestamp(self, node: yaml.ScalarNode) -> date:
        return self._scalar(node, super().construct_yaml_timestamp, "date")

    def _scalar(self, node: yaml.ScalarNode, construct: Callable[[yaml.ScalarNode], Any], kind: str) -> Any:
        try:
            if len(node.value) <= _MOST_DIGITS:
                return construct(node)
        except (ValueError, OverflowError):
            pass
        problem = f"a value begins as a {kind} does and is none: a text is in quotes"  # it may be a secret
        raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


for _tag, _construct in (
    ("int", _Loader.construct_yaml_int),
    ("float", _Loader.construct_yaml_float),
    ("timestamp", _Loader.construct_yaml_timestamp),
):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_tag}", _construct)
