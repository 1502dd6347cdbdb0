"""`sparkstream apps`: apps that were deployed here."""

from __future__ import annotations

from typing import Any

from ...app import app_folders, empty_trash_of, remove_app
from ...errors import Misuse
from ...lab import connect
from ...lab.attachable import removed_text


def run(options: Any) -> int:
    """`sparkstream apps`."""
    connect()
    if options.action is None:
        print(app_folders(options.home))
        return 0
    if options.action == "remove" and not options.names:
        raise Misuse("which apps? Write sparkstream apps remove NAME; sparkstream apps lists them")
    carry_out = remove_app if options.action == "remove" else empty_trash_of
    for name in options.names or [folder.name for folder in app_folders(options.home)]:
        print(removed_text(carry_out(name, options.home)))
    return 0
