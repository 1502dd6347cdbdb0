"""The command line where the reader of its output has ended, as in `sparkstream ... | head -1`."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import threading
from pathlib import Path
from typing import Any, TextIO

import pytest

from sparkstream_nb import cli
from sparkstream_nb.cli import running
from sparkstream_nb.cli.command_line import BROKEN_PIPE
from sparkstream_nb.cli.printing import printable_output

APP = "@app:name('Piped') define stream S (a int); from S[a > 1]#window.length(2) select a insert into Out;"
COMMANDS = next(a.choices for a in cli.parser()._actions if isinstance(a, argparse._SubParsersAction))
WORDS = [
    ["--help"],
    *([name, "--help"] for name in COMMANDS),
    ["check", "APP"],
    ["explain", "APP"],
    ["explain", "APP", "--repair"],
    ["graph", "APP"],
    ["graph", "APP", "--svg", "-"],
    ["audit", "APP"],
    ["fmt", "--check", "APP"],
    ["split", "APP", "--kafka", "localhost:9092"],
    ["apps"],
    ["trace", "APP", "--feed", "S=FEED"],
]


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_a_reader_that_has_ended_ends_the_command_without_a_traceback(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "app.siddhi").write_text(APP)
    (tmp_path / "in.csv").write_text("a\n1\n2\n")
    monkeypatch.setenv("SPARKSTREAM_HOME", str(tmp_path / "home"))
    for name, path in {"APP": tmp_path / "app.siddhi", "FEED": tmp_path / "in.csv"}.items():
        words = [word.replace(name, str(path)) for word in words]
    with broken_pipe() as stream:
        monkeypatch.setattr("sys.stdout", stream)
        assert cli.main(words) == BROKEN_PIPE


def test_a_reader_of_errors_that_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    with broken_pipe() as stream:
        monkeypatch.setattr("sys.stderr", stream)
        assert cli.main(["check", "missing.siddhi"]) == BROKEN_PIPE


def broken_pipe() -> TextIO:
    """A pipe to write to that has no reader. Closing it flushes, as the interpreter does at its end."""
    reader, writer = os.pipe()
    os.close(reader)
    return os.fdopen(writer, "w")


def test_colours_are_reset_at_the_exit_and_control_characters_are_spelt_out_before() -> None:
    """`\\u001b[0m` was the last line of a run in a terminal: colorama writes to the stream that it met."""
    terminal = io.StringIO()
    with contextlib.redirect_stdout(terminal), printable_output():
        met = sys.stdout
        print("\x1b[31mred")
    met.write("\x1b[0m")
    assert terminal.getvalue() == "\\u001b[31mred\n\x1b[0m"


@pytest.mark.parametrize("seconds", [0.0, 30.0])
def test_an_interrupt_that_waits_for_events_says_so(
    seconds: float, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(running, "_PATIENCE_SECONDS", seconds)
    closed: list[str] = []

    class Slow:
        name = "Slow"

        def stop(self) -> None:
            closed.append("stop")

        def close(self) -> None:
            closed.append("close")
            for thread in threading.enumerate():
                if isinstance(thread, threading.Timer) and not seconds:
                    thread.join()

    app: Any = Slow()
    with pytest.raises(KeyboardInterrupt), running.close_at_end(app):
        raise KeyboardInterrupt
    assert closed == ["stop", "close"]
    assert capsys.readouterr().err.count("Ctrl-C once more ends at once") == (not seconds)
