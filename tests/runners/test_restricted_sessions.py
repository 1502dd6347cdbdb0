"""Sessions that refuse much: serverless compute of Databricks, its standard access mode, `pyspark-client` alone.

`siddhi()` works there, on batch and stream; of an app, what works is in `docs/guides/restricted-sessions.md`, and the
rest is refused with one line. Spark is a real Connect server, which does not see the folder of the apps.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from sparkstream_nb.runners.spark.settings import NO_SPARK
from tests.apps.programs import ROOT
from tests.masters import connect
from tests.refusing_connect import NO_FILES, ROCKSDB, SERVERLESS, STANDARD, refusing_proxy

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
OF_SERVER = ("spark.driver.extraJavaOptions", "spark.jars", "spark.files")
OF_SETTINGS = "This Spark session refuses settings that apps need ([CONFIG_NOT_AVAILABLE] Configuration "
KINDS = {"serverless": SERVERLESS, "standard": STANDARD, "client alone": NO_FILES}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, dict[str, Any]]]:
    """The answers of `restricted_session.py` by the kind of the session."""
    folder = tmp_path_factory.mktemp("restricted")
    hidden = folder / "client"
    hidden.mkdir()
    mount = ["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/tmp"]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this machine gives no mount namespaces")
    address, (server,) = connect(folder, conf={PROVIDER: ROCKSDB}, PYTHONPATH=str(ROOT))
    found = {}
    with ExitStack() as stack:
        stack.enter_context(server.blind(hidden))
        for number, (kind, refusals) in enumerate(KINDS.items()):
            where, _ = stack.enter_context(refusing_proxy(address, refusals))
            seen = folder / str(number)
            seen.mkdir()
            arguments = [where, str(seen), str(hidden / str(number)), *(["alone"] if kind == "client alone" else [])]
            command = [sys.executable, "-m", "tests.runners.restricted_session", *arguments]
            done = subprocess.run(command, capture_output=True, text=True, timeout=400, cwd=ROOT, check=False)
            assert done.returncode == 0, done.stderr[-4000:]
            found[kind] = json.loads(done.stdout.splitlines()[-1])
        yield found


pytestmark = [pytest.mark.rotates, pytest.mark.thorough, pytest.mark.spark, pytest.mark.timeout(900)]


@pytest.mark.parametrize("kind", KINDS)
def test_the_session_refuses_what_it_is_to_refuse(kind: str, answers: dict[str, dict[str, Any]]) -> None:
    refused = answers[kind]
    for name in ("_jvm", "sparkContext", "rdd", *OF_SERVER):
        assert refused[name][0].startswith(("PySpark", "AnalysisException")), name
    if kind != "standard":
        for name in ("spark.executorEnv.A", "persist", "endless"):
            assert refused[name][0] == "AnalysisException", name
    assert (refused["file"] is None) == (kind != "client alone")


@pytest.mark.parametrize("kind", KINDS)
def test_siddhi_works_on_batch_and_stream(kind: str, answers: dict[str, dict[str, Any]]) -> None:
    found = answers[kind]
    assert len(found["batch"]) > 50
    assert found["stream"] == found["batch"]
    assert found["filter"] == 48
    tasks = "auto" if kind != "standard" else "200"
    assert found["warnings"] == [
        f"each micro-batch starts spark.sql.shuffle.partitions={tasks} tasks for 3 nodes. Before the query's first "
        "start, set it to 3 or less"
    ]
    assert found["case"][0] == "Misuse"
    assert "ignores case" in found["case"][1]


@pytest.mark.parametrize("kind", KINDS)
def test_an_app_in_this_process_works(kind: str, answers: dict[str, dict[str, Any]]) -> None:
    found = answers[kind]
    assert (found["feed"], found["outputs"], found["sql"]) == (8, 6, [6])
    assert "hash:k" in found["divergence"]
    assert found["study"].startswith("Here: hash:k gives the outputs of one node")
    assert found["moment"] == "Here at 1970-01-01 00:00:02, step 3 of 8"
    if kind != "client alone":
        assert (found["table of outputs"], found["table"]) == (["a"] * 6, 8)


@pytest.mark.parametrize("kind", KINDS)
def test_the_rest_is_refused_with_one_line(kind: str, answers: dict[str, dict[str, Any]]) -> None:
    found = answers[kind]
    feed_of_frame = "A Spark data frame needs Spark: give its toPandas(), or deploy the app on Spark."
    no_spark = ["SparkUnavailable", NO_SPARK]
    if kind == "client alone":
        ends = {}
        for name in ("unseen folder", "on spark", "on spark by address", "table", "stream of outputs"):
            assert found[name] == no_spark
    else:
        ends = {
            "unseen folder": "Deploy it with shared=..., an address that both reach, a home=... that they see, or "
            "master='inline'",
            "stream of outputs": "app.table('O') reads the outputs here",
        }
    ends["feed of a frame"] = feed_of_frame
    ends["feed of a stream"] = "Feed what the stream has so far as a batch (toPandas()), or put siddhi() on the frame"
    if kind == "serverless":
        ends["on spark"] = ends["on spark by address"] = "siddhi() runs on the session's own frames"
        assert found["on spark"][1].startswith(OF_SETTINGS)
    elif kind == "standard":
        assert found["on spark"].startswith("There: running")
        assert found["on spark by address"].startswith("There2: running")
    for name, end in ends.items():
        error, text = found[name]
        assert error in ("SparkUnavailable", "SparkStreamError"), name
        assert text.endswith(end), name
        assert "\n" not in text, name
    for name in ("unseen folder", "stream of outputs", "feed of a stream"):
        if name in ends:
            assert found[name][1].startswith("Spark's workers do not see the app's folder /"), name
