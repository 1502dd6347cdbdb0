"""The apps of a process."""

from __future__ import annotations

from dataclasses import dataclass

from ..results.listings import Directory
from .app import App


@dataclass(frozen=True, repr=False, eq=False)
class Apps(Directory[str, App]):
    """The apps of this process by name, stopped ones too."""

    def summary(self) -> str:
        return f"<Apps: {', '.join(self) or 'none'}>"
