"""Errors at a key of a deployment file, with the line that the key is on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import yaml

from ...errors import Misuse
from .conf import NodeFile


def wrong_key(file: NodeFile, keys: Sequence[str], what: str) -> Misuse:
    """The error that the value at a path of keys is wrong: `FILE, line N: a: b WHAT`."""
    line = line_of(file.path, keys)
    return Misuse(f"{file.path}{'' if line is None else f', line {line}'}: {': '.join(keys)} {what}")


def line_of(path: Path, keys: Sequence[str]) -> int | None:
    """The line of a key, or of the last one on its path that is there; None if not even the first is."""
    node, line = yaml.compose(path.read_text(encoding="utf-8"), yaml.SafeLoader), None
    for key in keys:
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        for k, v in pairs:
            if k.value == key:
                node, line = v, k.start_mark.line + 1
                break
    return line
