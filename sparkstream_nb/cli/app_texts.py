"""Texts of apps for the commands: read, compiled, and the errors in them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import SiddhiError, SparkStreamError
from ..options import CannotRead, read_text

if TYPE_CHECKING:
    from ..plan import Plan


def describe_error(error: SparkStreamError) -> str:
    """The printed text of an error. A SiddhiQL error of a file begins with FILE:LINE:COLUMN."""
    return str(error) if isinstance(error, SiddhiError) and error.file is not None else f"sparkstream: {error}"


_OF_EVENTS = {".csv": "CSV", ".parquet": "parquet"}
"""Files of events, which are no texts of apps."""


@contextlib.contextmanager
def text_of(path: str) -> Iterator[str]:
    """Read an app's text, and add the file name to SiddhiQL errors raised in the block. `-` is standard input. Raises
    `CannotRead`, for a file of events too."""
    if Path(path).suffix.lower() in _OF_EVENTS:
        what = f"{path} is a {_OF_EVENTS[Path(path).suffix.lower()]} file, and no app's text: feed a stream with it"
        raise CannotRead(f"{what}, sparkstream run APP.siddhi --feed STREAM={path}")
    text = read_text(path)
    try:
        yield text
    except SiddhiError as error:
        error.file = None if path == "-" else path
        raise


def many(count: int, thing: str) -> str:
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


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
    from ..plan.connectors.without_connections import compile_offline, list_connections

    def compile_without_connections(text: str) -> tuple[Plan, Plan]:
        properties: Mapping[str, str] = {"shardId": "node-1"}
        if options.conf:
            from ..app.audit.checking import Surroundings

            properties = Surroundings.of(dict(options.param), options.conf, options.allow_env).properties
        return compile_offline(text, properties, dict(options.param))

    def compile_text(text: str) -> Plan:
        if options.offline:
            return compile_without_connections(text)[1]
        try:
            return _connected_compiler(options)(text)
        except SparkStreamError as error:
            from ..app.deployment.offline_advice import point_offline

            raise point_offline(error, lambda: bool(list_connections(compile_without_connections(text)[0]))) from None

    return compile_text


def _connected_compiler(options: Any) -> Callable[[str], Plan]:
    from ..plan import compile_app

    variables = dict(options.param)
    if getattr(options, "conf", None):
        from ..app.audit.checking import Surroundings  # it takes its time to load

        surroundings = Surroundings.of(variables, options.conf, options.allow_env)
        return lambda text: surroundings.compile_text(text)[0]
    # A deployment gives every node a shard id; the app is checked as if it ran on one of them.
    return lambda text: compile_app(text, {"shardId": "node-1"}, variables)
