"""One long-lived process of the reference engine that answers cases as they come."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

Case = dict[str, Any]

SIDDHI = Path(__file__).resolve().parents[1] / "reference" / "siddhi"


def missing() -> str | None:
    """What this machine lacks to run the reference engine, in words; None when nothing does."""
    lacking = [f"{what} ({command})" for command, what in (("javac", "a JDK 17"), ("mvn", "Maven"))
               if shutil.which(command) is None]  # fmt: skip
    return f"The fuzzer asks the real Siddhi and needs {' and '.join(lacking)}." if lacking else None


class Oracle:
    """Asks the reference engine. With `runs` above one a case is run as often, and skipped where runs differ."""

    def __init__(self, runs: int = 1, seconds: int = 20) -> None:
        options = os.environ.get("JAVA_TOOL_OPTIONS", "") + f" -Doracle.seconds={seconds}"
        self.process = subprocess.Popen(
            [str(SIDDHI), "oracle", str(runs)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, encoding="utf-8", env={**os.environ, "JAVA_TOOL_OPTIONS": options},
        )  # fmt: skip

    def answers(self, cases: Sequence[Case]) -> Iterator[Case]:
        """The cases in order, each with `expect`, or `skip` and why it has none. Raises RuntimeError when it dies."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        writer = threading.Thread(target=self._write, args=("".join(json.dumps(c) + "\n" for c in cases),), daemon=True)
        writer.start()
        for _ in cases:
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError(f"the reference engine ended with {self.process.wait()}")
            if "Could not initialize class" in line:  # a case that took too long was stopped while classes loaded
                raise RuntimeError("the reference engine is broken; is the machine too busy?")
            yield json.loads(line)
        writer.join()

    def _write(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def answer(self, case: Case) -> Case:
        """One case, answered."""
        return next(self.answers([case]))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.process.kill()
        self.process.wait()
