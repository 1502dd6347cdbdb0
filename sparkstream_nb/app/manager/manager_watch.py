"""A directory whose `.siddhi` files are the apps of a manager: those that appear, change and go.

A file is read when two looks at it, a second apart, find the same: one that is still being written is left alone. What
is wrong is said once, until the file changes.
"""

from __future__ import annotations

import os
import stat
import threading
import traceback
from collections.abc import Callable
from pathlib import Path

from ...errors import Misuse, SparkStreamError, printable
from ...masking import mask_passwords
from ...system import PLAINLY
from .manager import MOST_BYTES, Manager, ManagerClosed, NameTaken, NoSuchApp

SUFFIX = ".siddhi"
PAUSE = 1.0
"""Seconds between two looks at the directory."""

Signature = tuple[int, ...]
"""The stamp of a file: another if it was written, replaced or renamed."""


class WatchedDirectory:
    """The directory of a manager's app files. `log` gets a line for each app that is deployed or removed, and for each
    file that cannot be. Raises `Misuse` if it is not a directory.

    Files of other names, of directories below, and behind links that lead out of the directory are left alone.
    """

    def __init__(self, folder: Path, manager: Manager, log: Callable[[str], None]) -> None:
        if not folder.is_dir():
            raise Misuse(f"--watch: {folder} is not a directory")
        self._folder, self._manager, self._log = folder, manager, log
        self._last_look: dict[str, Signature] = {}
        """By name, the files of the last look."""
        self._read_files: dict[str, Signature] = {}
        """The files that were read, right or wrong."""
        self._apps: dict[str, str] = {}
        """The app of each file."""
        self._last_messages: dict[str, str] = {}
        """The last message about a file that is not deployed."""
        self._end_event = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="manager-watch", daemon=True)

    def start(self) -> None:
        """Looks every second from now on, in a thread of its own."""
        self._thread.start()

    def close(self) -> None:
        """Stop looking, after deployments in progress."""
        self._end_event.set()
        if self._thread.is_alive():
            self._thread.join()

    def scan(self) -> None:
        """Look once: files that have not changed since the last look, and are not dealt with yet, are deployed, or
        removed.
        """
        try:
            signatures = self._files()
        except OSError as e:  # gone with its disk, or closed to us: no reason to stop what runs
            self._say("", f"{self._folder} cannot be read: {e.strerror or e}")
            return
        self._last_messages.pop("", None)
        for name in [n for n in self._read_files if n not in signatures and n not in self._last_look]:
            self._remove_file(name)
        for name, signature in sorted(signatures.items()):
            if self._last_look.get(name) == signature and self._read_files.get(name) != signature:
                self._deploy_changed_file(name, signature)
        self._last_look = signatures

    def _watch(self) -> None:
        while True:
            try:
                self.scan()
            except ManagerClosed:
                return
            except Exception:  # a fault of ours is said, and the other files go on
                self._log(printable(mask_passwords(traceback.format_exc())))
            if self._end_event.wait(PAUSE):
                return

    def _files(self) -> dict[str, Signature]:
        inside = self._folder.resolve(strict=True)
        signatures, file_names = {}, {""}
        with os.scandir(self._folder) as entries:
            for entry in entries:
                file_names.add(entry.name)
                if not entry.name.endswith(SUFFIX) or entry.name.startswith("."):
                    continue
                try:
                    if entry.is_symlink() and not Path(entry.path).resolve(strict=True).is_relative_to(inside):
                        self._say(entry.name, "it is a link that leads out of the directory, and is not followed")
                        continue
                    status = entry.stat()
                except (OSError, RuntimeError):  # it went meanwhile, or its link leads nowhere
                    continue
                if stat.S_ISREG(status.st_mode):
                    signatures[entry.name] = _signature(status)
        self._last_messages = {name: what for name, what in self._last_messages.items() if name in file_names}
        return signatures

    def _deploy_changed_file(self, name: str, signature: Signature) -> None:
        """Deploy a file's app. One whose name another app has is tried again; for other errors, when the file changes.
        """
        try:
            text = self._text(name, signature)
            if text is not None:
                self._deploy(name, text)
                self._last_messages.pop(name, None)
                self._read_files[name] = signature
        except NameTaken as e:
            self._say(name, str(e))
        except ManagerClosed:
            raise
        except Exception as e:
            self._read_files[name] = signature
            if not isinstance(e, SparkStreamError):
                raise
            previous_name = self._apps.get(name)
            goes_on = previous_name is not None and previous_name in {a.app.name for a in self._manager.all()}
            self._say(name, f"{e}\nApp '{previous_name}' continues unchanged." if goes_on else str(e))

    def _deploy(self, name: str, text: str) -> None:
        app = self._manager.check(text, Path(name).stem)
        previous_name = self._apps.get(name)
        if previous_name == app.name and self._same(app.name, text):
            return
        _, new = self._manager.put(app, file=name)
        self._apps[name] = app.name
        if previous_name is not None and previous_name != app.name:
            self._remove(name, previous_name)
        self._log(f"{printable(name)}: app '{app.name}' is {'deployed' if new else 'deployed again'}")

    def _same(self, app: str, text: str) -> bool:
        """True if the app runs as the text says: somebody touched its file."""
        try:
            managed_app = self._manager.get(app)
        except NoSuchApp:
            return False
        return managed_app.app.text == text and managed_app.active

    def _remove_file(self, name: str) -> None:
        del self._read_files[name]
        app = self._apps.pop(name, None)
        if app is not None:
            self._remove(name, app)

    def _remove(self, name: str, app: str) -> None:
        try:
            self._manager.remove(app, file=name)
        except NoSuchApp:  # a deployment in its place failed, and took it along
            return
        self._log(f"{printable(name)}: app '{app}' is stopped and removed")

    def _text(self, name: str, signature: Signature) -> str | None:
        """The text of a file; None if it changes while it is read. Raises `Misuse` for a file that is not a text."""
        try:
            # Without waiting, in case it has become a pipe; the target of a link was checked before.
            handle = os.open((self._folder / name).resolve(), os.O_RDONLY | PLAINLY)
            with open(handle, "rb") as file:
                if _signature(os.fstat(handle)) != signature:
                    return None
                content = file.read(MOST_BYTES + 1)
                if _signature(os.fstat(handle)) != signature:
                    return None
        except OSError as e:
            raise Misuse(f"it cannot be read: {e.strerror or e}") from None
        if len(content) > MOST_BYTES:
            raise Misuse(f"an app has at most {MOST_BYTES:,} bytes, and this one {signature[2]:,}")
        try:
            return content.decode()
        except UnicodeDecodeError as e:
            line = content.count(b"\n", 0, e.start) + 1
            raise Misuse(f"it is not UTF-8 text (line {line}): save it as UTF-8") from None

    def _say(self, name: str, what: str) -> None:
        """Log a file's error, unless it was the last message on that file."""
        if self._last_messages.get(name) != what:
            self._last_messages[name] = what
            self._log(f"{printable(name)}: {what}" if name else what)


def _signature(status: os.stat_result) -> Signature:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
