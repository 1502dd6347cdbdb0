"""Which frames and files a notebook has fed to which streams: a cell that is run again feeds its frame once more."""

from __future__ import annotations

import contextlib
import weakref
from pathlib import Path
from typing import Any

from ..cluster import App


class FedBefore:
    """What was fed to the apps that are there. It keeps neither apps nor frames alive."""

    def __init__(self) -> None:
        self._by_app: weakref.WeakKeyDictionary[App, list[tuple[str, Any]]] = weakref.WeakKeyDictionary()

    def has(self, app: App, stream: str, source: Any) -> bool:
        """Whether the same frame, or the file as it is, was fed to this stream."""
        mark = _mark(source)
        return mark is not None and (stream, mark) in self._by_app.get(app, [])

    def add(self, app: App, stream: str, source: Any) -> None:
        """Notes that it was fed."""
        self._by_app.setdefault(app, []).append((stream, _mark(source)))


def _mark(source: Any) -> Any:
    """What tells a source from others: a file by its path, time and size, a frame by itself; None for anything else."""
    if isinstance(source, Path):
        with contextlib.suppress(OSError):
            found = source.stat()
            return source.resolve(), found.st_mtime_ns, found.st_size
        return None
    try:
        return _Same(weakref.ref(source))
    except TypeError:
        return None


class _Same:
    """An object that may be gone. Equal to another of the same object: frames compare by their values."""

    def __init__(self, ref: weakref.ref[Any]) -> None:
        self._ref = ref

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._ref() is not None and self._ref() is other._ref()

    __hash__ = None  # type: ignore[assignment]
