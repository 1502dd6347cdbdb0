"""A command in a process of its own: within a time, in a folder that is removed, with output of bounded length."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...errors import Misuse, printable
from ...journal.temporary import temporary_folder
from ...system import end_with_children

MOST_OUTPUT = 60_000
"""Characters of an output that are returned."""
_ENVIRONMENT = {
    "COLUMNS": "120",
    "PYTHONIOENCODING": "utf-8",
    "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
}
"""The width of tables, their encoding, and no keyring: a text of an agent does not read passwords."""


@dataclass
class CommandOutput:
    """The exit code of a command, and what it printed."""

    code: int
    out: str
    err: str


@dataclass(eq=False)
class BoundedCommand:
    """A command line of `sparkstream`. Its process has no standard input. `stop` ends it, from another thread."""

    words: Sequence[str]
    files: Mapping[str, str]
    seconds: int
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _is_stopped: bool = field(default=False, init=False)

    def run(self) -> CommandOutput:
        """Raises `Misuse` if it takes longer than it may."""
        with temporary_folder("agents") as folder:
            work = folder / "work"
            work.mkdir()
            for name, text in self.files.items():
                (work / name).write_text(text, encoding="utf-8", errors="surrogatepass", newline="")
            out, err = folder / "out", folder / "err"
            code = self._run(work, out, err)
            return CommandOutput(code, _beginning_of(out), _beginning_of(err))

    def stop(self) -> None:
        """Ends its process, if it runs."""
        with self._lock:
            self._is_stopped = True
            if self._process is not None and self._process.poll() is None:
                end_with_children(self._process)

    def _run(self, work: Path, out: Path, err: Path) -> int:
        with out.open("wb") as out_file, err.open("wb") as err_file:
            with self._lock:
                if self._is_stopped:
                    raise Misuse("the call was cancelled")
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", f"{__package__.partition('.')[0]}", *self.words],
                    cwd=work, env={**os.environ, **_ENVIRONMENT},
                    stdin=subprocess.DEVNULL, stdout=out_file, stderr=err_file, start_new_session=True,
                )  # fmt: skip
            try:
                return self._process.wait(self.seconds)
            except subprocess.TimeoutExpired:
                raise Misuse(f"it took longer than {self.seconds} s: send fewer events, or a simpler app") from None
            finally:
                self.stop()
                self._process.wait()


def _beginning_of(file: Path) -> str:
    with file.open("rb") as source:
        text = source.read(4 * MOST_OUTPUT).decode("utf-8", "replace")
    is_whole = len(text) <= MOST_OUTPUT and file.stat().st_size <= 4 * MOST_OUTPUT
    return text if is_whole else f"{text[:MOST_OUTPUT]}\n... the rest is left out: {file.stat().st_size:,} bytes"


def error_text(output: CommandOutput) -> str:
    """The message of a command that failed, without a traceback."""
    text = output.err.strip() or output.out.strip()
    if output.code < 0:
        return "the command was ended from outside, perhaps as it took too much memory"
    if "Traceback (most recent call last)" in text:
        return printable(f"an error of SparkStream Notebook's own: {text.splitlines()[-1]}")
    return text.removeprefix("sparkstream: ").rpartition("\nsparkstream: ")[2]  # before it are notes
