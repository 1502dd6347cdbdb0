"""The apps of a process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..results.frontend import Displayed
from .app import App


@dataclass(frozen=True, repr=False, eq=False)
class Apps(Displayed, Mapping[str, App]):
    """The apps of this process by name, stopped ones too."""

    apps: dict[str, App]

    def __getitem__(self, name: str) -> App:
        return self.apps[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.apps)

    def __len__(self) -> int:
        return len(self.apps)

    def summary(self) -> str:
        return f"<Apps: {', '.join(self.apps) or 'none'}>"
