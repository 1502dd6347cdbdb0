"""Removing apps for good: their folders, and the parts that are removed."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import Misuse
from .attaching import attachable, found_app
from .deploying import apps, close_app
from .deployment.app_folder import former_life, own_files
from .deployment.owner import LOCK, acquire_home, same_folder
from .results.listings import Listing


@dataclass(frozen=True)
class AppFolder:
    """An app's folder: its size with the trash, and the size of the trash alone (bytes). `deployed`: when it was
    deployed last (ms since 1970). `owner`: its owner (None: it has none)."""

    name: str
    home: Path
    size: int
    trash: int
    deployed: int
    owner: str | None


@dataclass(frozen=True, repr=False, eq=False)
class AppFolders(Listing[AppFolder]):
    """The folders of the apps that were deployed before, by name."""

    def summary(self) -> str:
        return f"<AppFolders: {', '.join(f.name for f in self) or 'none'}>"


@dataclass(frozen=True)
class Removed:
    """A removed app: `size` bytes of the folder `home`. `left` names parts of the app that are elsewhere, and stay."""

    name: str
    home: Path
    size: int
    left: Sequence[str] = ()


def app_folders(home: str | Path | None = None) -> AppFolders:
    """The apps of the folder `home`, or of the default folder, with their size on the disk."""
    folders = [
        AppFolder(a.name, a.home, size_of(a.home), size_of(a.home / "trash"), a.record.at, a.owner)
        for a in attachable(home)
    ]
    return AppFolders(tuple(folders))


def remove_app(name: str, home: str | Path | None = None) -> Removed:
    """Stops the app `name`, and removes its folder with its state, outputs and stored aggregations, for good.

    Data that it stored elsewhere stays, and is named. Files in the folder that are not the app's stay too. Raises
    `Misuse` if there is no such app, or another process owns it.
    """
    app_folder = found_app(name, None if home is None else Path(home))
    running = apps().get(name)
    if running is not None and same_folder(running.home, app_folder.home):
        close_app(name)
    owner = acquire_home(app_folder.home, name)
    try:
        size, stored_elsewhere = size_of(app_folder.home), _elsewhere(app_folder.home)
        for path in own_files(app_folder.home):
            if path.name == LOCK:
                owner.remove()
            else:
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # other files are in it
            app_folder.home.rmdir()
    finally:
        owner.release()
    return Removed(name, app_folder.home, size, stored_elsewhere)


def empty_trash_of(name: str, home: str | Path | None = None) -> Removed:
    """Remove everything that earlier deployments of an app have dropped. Raises `Misuse` if there is no such app."""
    app_folder = found_app(name, None if home is None else Path(home))
    trash = app_folder.home / "trash"
    size = size_of(trash)
    for path in trash.iterdir() if trash.is_dir() else ():
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
    return Removed(name, trash, size)


def size_of(folder: Path) -> int:
    """The bytes of the files in a folder; a file with several names counts once."""
    size_by_file: dict[tuple[int, int], int] = {}
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                status = os.lstat(os.path.join(place, name))
                size_by_file[status.st_dev, status.st_ino] = status.st_size
    return sum(size_by_file.values())


def _elsewhere(home: Path) -> list[str]:
    """The parts of an app outside its folder."""
    try:
        app_run = former_life(home)
    except Misuse:
        return []
    out = []
    if app_run.shared_folder is not None:
        out.append(f"the state of its nodes at {app_run.shared_folder.address}")
    store = None if app_run.deployed is None else app_run.deployed.arguments.get("store")
    if store is not None:
        out.append(f"its aggregations in {store}")
    if app_run.deployed is not None and "@store" in app_run.deployed.text.lower():
        out.append("what it stored in databases (@store)")
    return out
