"""The recorded input of an app, as a file."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ... import argument_checks
from ...errors import Misuse, SparkStreamError, shown
from ...sources.recordings import Anonymizing, RecordedApp, write_recording
from ..results.frontend import Displayed
from .runtime import AppRuntime


@dataclass(frozen=True, repr=False, eq=False)
class AppRecording(Displayed):
    """The input of an app since it began: `events` of them."""

    app: str
    events: int
    _runtime: AppRuntime

    @staticmethod
    def of(runtime: AppRuntime) -> AppRecording:
        """The recording of an app. Raises `Misuse` if the app is closed."""
        runtime.check_open()
        return AppRecording(runtime.name, sum(runtime.inbox.position.events.values()), runtime)

    def summary(self) -> str:
        return f"<Recording of {self.app}: {self.events:,} events. save('FILE.parquet') writes it>"

    def save(
        self,
        path: str | Path,
        *,
        sample: Mapping[str, float] | None = None,
        mask: str | Sequence[str] = (),
        key: str | None = None,
    ) -> int:
        """Writes a parquet file with streams, times, nodes and order; returns the number of events.

        `sample`: of an attribute, by name, only a share of its values, each with all of its events (`{"card": 0.01}`).
        `mask`: attributes whose values are replaced by a hash under `key`, a secret text; without one a key is made
        and forgotten. Equal values stay equal, so that queries which compare them give the same counts. Raises
        SparkStreamError if the beginning is no longer kept or the file cannot be written, `Misuse` for other arguments.
        """
        argument_checks.check_path("path", path)
        check_place(Path(path))
        argument_checks.optional_str("key", key)
        if sample is not None and not isinstance(sample, Mapping):
            raise Misuse(f"sample is a dict of shares by attribute, not {shown(sample)}")
        if self._runtime.app_run.change:
            raise SparkStreamError(
                f"{self.app} was changed while it ran, so its earlier input was for another app: deploy it with "
                "fresh=True to record it."
            )
        masks = (mask,) if isinstance(mask, str) else tuple(mask)
        anonymizing = None
        if sample or masks:
            anonymizing = Anonymizing(
                secrets.token_bytes(32) if key is None else key.encode(), dict(sample or {}), masks
            )
            anonymizing.check(self._runtime.schemas)
        app_run, inbox = self._runtime.app_run, self._runtime.inbox
        streams = {*self._runtime.target.app_streams.inputs, *inbox.position.events}
        schemas = {s: schema for s, schema in self._runtime.schemas.items() if s in streams}
        app = RecordedApp(self.app, inbox.folder, self._runtime.schemas, schemas, app_run.shards, app_run.began)
        return write_recording(app, Path(path), anonymizing)


def check_place(path: Path) -> None:
    """Raises SparkStreamError if a file cannot be written there: no folder, or a thing that is not a plain file."""
    if not path.parent.is_dir():
        raise SparkStreamError(f"{path} cannot be written: the folder {path.parent} does not exist")
    if path.exists() and not path.is_file():
        raise SparkStreamError(f"{path} cannot be written: it is not a plain file")
