"""Plans of the apps that commands name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..app.deployment.offline_advice import point_offline
from ..errors import SparkStreamError
from ..plan import Plan, compile_app
from ..plan.connectors.without_connections import compile_offline, list_connections
from .app_texts import text_of
from .surroundings import NODE, surroundings_of


def compile_plan(options: Any, text: str | None = None) -> Plan:
    """The plan of `options.app`, or of its `text` if that was read. With deployment files (`--conf`), which define
    `refs`, the plan on the first node. Raises `SiddhiError` with the text."""
    compile_text = _compiler(options)
    if text is not None:
        return compile_text(text)
    with text_of(options.app) as read:
        return compile_text(read)


def _compiler(options: Any) -> Callable[[str], Plan]:
    """Compilation of a text with the deployment files of `--conf`, and without any. Where the command has `--offline`,
    an error names it if that is the way out."""
    if not hasattr(options, "offline"):
        return _connected_compiler(options)

    def compile_without_connections(text: str) -> tuple[Plan, Plan]:
        surroundings = surroundings_of(options)
        properties = NODE if surroundings is None else surroundings.properties
        return compile_offline(text, properties, dict(options.param))

    def compile_text(text: str) -> Plan:
        if options.offline:
            return compile_without_connections(text)[1]
        try:
            return _connected_compiler(options)(text)
        except SparkStreamError as error:
            raise point_offline(error, lambda: bool(list_connections(compile_without_connections(text)[0]))) from None

    return compile_text


def _connected_compiler(options: Any) -> Callable[[str], Plan]:
    surroundings = surroundings_of(options)
    if surroundings is not None:
        return lambda text: surroundings.compile_text(text)[0]
    return lambda text: compile_app(text, NODE, dict(options.param))
