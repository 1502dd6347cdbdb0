"""Apps in files of Siddhi's Kubernetes operator: resources of kind `SiddhiProcess` (apiVersion siddhi.io/...)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from .errors import Misuse
from .options import read_text

_SUFFIXES = frozenset({".yaml", ".yml"})


def read_app(path: str) -> str:
    """The app's text in a file; `-` is standard input. Of a SiddhiProcess it is its one script, after as many empty
    lines as there are above it, with the values of `container.env` in place of `${NAME}`.

    Raises CannotRead, and Misuse for a SiddhiProcess with several scripts, or none.
    """
    text = read_text(path)
    if Path(path).suffix.lower() not in _SUFFIXES:
        return text
    script = script_of(text, path)
    return text if script is None else script


def script_of(text: str, path: str) -> str | None:
    """The app's text of a SiddhiProcess; None for any other text. Raises Misuse, as `read_app`."""
    import yaml  # commands that read no such file do not load it

    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError:
        return None
    if not isinstance(document, dict) or document.get("kind") != "SiddhiProcess":
        return None
    scripts = _scripts(document)
    if len(scripts) != 1:
        count = f"{len(scripts)} scripts" if scripts else "no script: its apps are elsewhere"
        raise Misuse(f"{path} is a SiddhiProcess with {count}. Save each app's text as a file of its own")
    (script,) = scripts
    lines_above = _lines_above(script, text)
    for name, value in _environment(document).items():
        script = script.replace("${" + name + "}", value)
    return "\n" * lines_above + script


def _scripts(document: dict[str, Any]) -> list[str]:
    """The scripts of `spec.apps`."""
    apps = _part(_part(document, "spec"), "apps")
    scripts = [_part(app, "script") for app in apps] if isinstance(apps, list) else []
    return [script for script in scripts if isinstance(script, str)]


def _environment(document: dict[str, Any]) -> dict[str, str]:
    """The values of `spec.container.env` that the file has itself."""
    entries = _part(_part(_part(document, "spec"), "container"), "env")
    pairs = [(_part(e, "name"), _part(e, "value")) for e in entries] if isinstance(entries, list) else []
    return {name: value for name, value in pairs if isinstance(value, str) and re.fullmatch(r"\w+", str(name))}


def _part(container: Any, key: str) -> Any:
    return container.get(key) if isinstance(container, dict) else None


def _lines_above(script: str, text: str) -> int:
    """Lines of the file above its script."""
    first = script.strip().partition("\n")[0].strip()
    return next((i for i, line in enumerate(text.splitlines()) if line.strip() == first), 0)
