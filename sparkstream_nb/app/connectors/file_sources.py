"""The options of `file` sources as files that an app may read."""

from __future__ import annotations

import re
from pathlib import Path

from ...engine.expressions.java_values import RowFailure
from ...engine.expressions.javaregex import compile_java
from ...errors import Misuse, shown
from ...sources.file_events import FileEventsPlace
from ...sources.file_source import GROWING, FilesPlace
from ...sources.regex_messages import MessageCutter
from ...system import path_of
from ..config.grants import Grants
from .typed_options import OptionValues


def make_files_place(o: OptionValues, grants: Grants, *, has_documents: bool = False) -> FilesPlace:
    """The file or folder of a source, as far as `grants` allow. `has_documents`: a file is one document, also in mode
    `line`. Raises `Misuse` for options that are wrong."""
    folder, file = o.text("dir.uri"), o.text("file.uri")
    if folder and file:
        raise Misuse(f"{o.what}: give 'dir.uri' or 'file.uri', not both")
    mode = o.choice("mode")
    path = _path(o, folder or file)
    grants.folder_of(path, f"{o.what} reads", file=bool(file))
    tailing = o.flag("tailing", mode in GROWING)
    if has_documents and mode in GROWING:
        if tailing:
            raise Misuse(f"{o.what}: enable.streaming.xml.content='true' needs tailing='false': a document has an end")
        mode = "text.full"
    if tailing and mode not in GROWING:
        modes = " or ".join(f"mode='{growing_mode}'" for growing_mode in sorted(GROWING))
        raise Misuse(f"{o.what}: tailing='true' goes with {modes}: a file in mode '{mode}' is read whole")
    after = o.choice("action.after.process")
    if after != "keep" and tailing:
        raise Misuse(f"{o.what}: action.after.process='{after}' needs tailing='false': a file that grows has no end")
    target = o.text("move.after.process")
    if (after == "move") != bool(target):
        raise Misuse(f"{o.what}: action.after.process='move' and 'move.after.process' go together: give both")
    move_to = None
    if target:
        move_to = _path(o, target)
        grants.folder_of(move_to / "x", f"{o.what} moves files to")
        if move_to.resolve() == (path if folder else path.parent).resolve():
            raise Misuse(f"{o.what}: 'move.after.process' is the folder that is read: give another one")
    interval = "dir.polling.interval" if folder else "file.polling.interval"
    return FilesPlace(
        path=path.resolve(),
        folder=bool(folder),
        mode=mode,
        tailing=tailing,
        header=o.flag("header.present"),
        pattern=_pattern(o),
        after=after,
        move_to=None if move_to is None else move_to.resolve(),
        every=o.number(interval) / 1000,
        cutter=_cutter(o, mode),
    )


def make_file_events_place(o: OptionValues, grants: Grants) -> FileEventsPlace:
    """The folder of a source of events on files, as far as `grants` allow. Raises `Misuse` for options that are
    wrong."""
    path = _path(o, o.text("dir.uri"))
    grants.folder_of(path, f"{o.what} looks at")
    names = frozenset(name for text in o.text("file.name.list").split(",") if (name := text.strip()))
    nested_name = next((name for name in names if "/" in name), None)
    if nested_name is not None:
        raise Misuse(f"{o.what}: file.name.list has names of files in the folder, not {shown(nested_name)}")
    return FileEventsPlace(path.resolve(), names, o.number("monitoring.interval") / 1000)


def _cutter(o: OptionValues, mode: str) -> MessageCutter | None:
    """The cutter of the messages in mode `regex`; None in other modes."""
    begin, end = o.raw("begin.regex"), o.raw("end.regex")
    if mode != "regex":
        if begin or end:
            raise Misuse(f"{o.what}: begin.regex and end.regex go with mode='regex'")
        return None
    if not begin and not end:
        raise Misuse(f"{o.what}: mode='regex' needs begin.regex or end.regex: give one, or both")
    try:
        return MessageCutter(compile_java(begin) if begin else None, compile_java(end) if end else None)
    except RowFailure as error:
        raise Misuse(f"{o.what}: begin.regex and end.regex are regular expressions of Java: {error}") from None


def _pattern(o: OptionValues) -> re.Pattern[str]:
    """`file.name.pattern`, a regular expression for the whole name, as siddhi-io-file has it."""
    text = o.text("file.name.pattern")
    try:
        return re.compile(text, re.DOTALL)  # a name may have a line break in it
    except re.error:
        raise Misuse(
            f"{o.what}: file.name.pattern is a regular expression such as '.*\\.csv', not {shown(text)}"
        ) from None


def _path(o: OptionValues, text: str) -> Path:
    if any(c < " " or c == "\x7f" for c in text):
        raise Misuse(f"{o.what}: a path has a control character in it")
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", text.removeprefix("file://")):
        raise Misuse(f"{o.what}: a file source reads paths of this machine, not {text.split('://')[0]}://...")
    return path_of(text).expanduser().absolute()
