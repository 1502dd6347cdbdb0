"""The options of `file` sources as files that an app may read."""

from __future__ import annotations

import re
from pathlib import Path

from ...errors import Misuse, shown
from ...sources.file_source import FilesPlace
from ...system import path_of
from ..config.grants import Grants
from .typed_options import OptionValues


def make_files_place(o: OptionValues, grants: Grants) -> FilesPlace:
    """The file or folder of a source, as far as `grants` allow. Raises `Misuse` for options that are wrong."""
    folder, file = o.text("dir.uri"), o.text("file.uri")
    if folder and file:
        raise Misuse(f"{o.what}: give 'dir.uri' or 'file.uri', not both")
    mode = o.choice("mode")
    path = _path(o, folder or file)
    grants.folder_of(path, f"{o.what} reads", file=bool(file))
    tailing = o.flag("tailing", mode == "line")
    if tailing and mode != "line":
        raise Misuse(f"{o.what}: tailing='true' goes with mode='line': a file in mode '{mode}' is read whole")
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
    )


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
