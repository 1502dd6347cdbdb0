"""An app as files with which `sparkstream run` runs the same without a notebook."""

from __future__ import annotations

import shlex
from pathlib import Path

from ... import argument_checks
from ...errors import Misuse, SparkStreamError
from ..config.record import DeploymentRecord
from ..config.record_options import options_of
from .input_recording import check_place
from .runtime import AppRuntime


def write_file(path: Path, text: str) -> None:
    """Writes a text to a file. Raises SparkStreamError if it cannot be written."""
    check_place(path)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SparkStreamError(f"{path} cannot be written: {error.strerror or error}") from None


def record_of(runtime: AppRuntime) -> DeploymentRecord:
    """The record of an app's deployment. Raises `Misuse` for an app of an early version, which has none."""
    record = runtime.app_run.deployed
    if record is None:
        raise Misuse(f"{runtime.name} was deployed by an early version: deploy it again, and export it then")
    return record


class AppScript:
    """Files of an app's text and deployment."""

    def __init__(self, runtime: AppRuntime) -> None:
        self._app = runtime

    def save(self, path: str | Path) -> Path:
        """Writes the app's text to a file, such as `fraud.siddhi`, and returns its path. Raises SparkStreamError if it
        cannot be written."""
        argument_checks.check_path("path", path)
        write_file(Path(path), record_of(self._app).text)
        return Path(path)

    def export_job(self, path: str | Path) -> list[Path]:
        """Writes a script for a shell that runs the app by `sparkstream run` as it is deployed here, and the app's text
        beside it; returns both paths. Further options of `sparkstream run`, such as `--feed`, may follow the script's
        name.

        Values that may be secrets are not written: the script takes them from environment variables of the same name,
        and ends with a message without them. Raises `Misuse` for arguments of `deploy` that only Python has.
        """
        argument_checks.check_path("path", path)
        record, script = record_of(self._app), Path(path)
        text_file = script.with_suffix(".siddhi")
        if script == text_file:
            raise Misuse(f"{script} is the name of an app's text: call the script {script.with_suffix('.sh')}")
        options = [("--name", record.name), *options_of(record)]
        words = [o if value is None else f"{o}={shlex.quote(value)}" for o, value in options]
        words += [f'--param={v}="${{{v}:?set the variable {v}}}"' for v in record.withheld]
        command = " \\\n  ".join([f"exec sparkstream run {shlex.quote(text_file.name)}", *words, '"$@"'])
        lines = [
            "#!/bin/sh",
            f"# Runs {_in_comment(record.name)} as it was deployed; more options of sparkstream run may follow.",
            "set -eu",
            'cd "$(dirname "$0")"',
            command,
        ]
        self.save(text_file)
        write_file(script, "\n".join(lines) + "\n")
        script.chmod(0o755)
        return [script, text_file]


def _in_comment(name: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in name)
