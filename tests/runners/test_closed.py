"""Nobody else on this machine gets in: what listens, and what messages tell."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from sparkstream_nb.errors import Misuse, SiddhiError, SparkStreamError, SparkUnavailable
from sparkstream_nb.runners.spark.settings import check_master, private_settings

LISTENING = """
import os, sys
from pathlib import Path
from sparkstream_nb.app import deploy, stop_all

app = deploy("define stream S (v int); from S#window.length(2) select sum(v) as s insert into O;", nodes=2, home="home")
for i in range(3):
    app.send("S", [i])
    app.flush()
session = app.runtime.session.spark
jvm = session._jvm.java.lang.ProcessHandle.current()
conf = session.sparkContext.getConf()
print(conf.get("spark.authenticate"), conf.get("spark.python.unix.domain.socket.enabled"))
print("secret" in " ".join(Path(f"/proc/{jvm.pid()}/cmdline").read_text().split("\\0")).lower())


def sockets(pid):
    out = set()
    for file in Path(f"/proc/{pid}/fd").glob("*"):  # none where it has ended
        try:
            name = os.readlink(file)
        except OSError:
            continue
        if name.startswith("socket:["):
            out.add(name[8:-1])
    return out


processes = {os.getpid(), jvm.pid()}
processes |= {p.pid() for p in jvm.descendants().toList()}
own = set().union(*map(sockets, processes))
ports = []
for file in ("/proc/net/tcp", "/proc/net/tcp6"):
    for line in Path(file).read_text().splitlines()[1:]:
        words = line.split()
        if words[3] == "0A" and words[9] in own:
            ports.append(words[1].split(":")[0][-8:])
print(len(ports), set(ports))
stop_all()
"""


@pytest.mark.spark
@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="reads Linux's list of sockets")
def test_what_listens(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LISTENING],
        cwd=tmp_path, env={**os.environ, "TMPDIR": "/tmp"}, capture_output=True, text=True, timeout=110, check=False,
    )  # fmt: skip
    assert done.stdout.splitlines() == ["true true", "False", "4 {'0100007F'}"], done.stderr


def test_sockets_are_in_a_folder_that_is_ours_and_whose_path_is_short(tmp_path: Path) -> None:
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    try:
        for master in ("spark://a:7077", "local-cluster[1,1,1024]", "local[x]"):
            assert private_settings(master, folder) == {}
        assert private_settings("local[2]", folder)["spark.python.unix.domain.socket.dir"] == str(folder)
        long = folder / ("a" * 50)
        long.mkdir(mode=0o700)
        folder.chmod(0o755)
        for place in (long, folder):
            assert private_settings("local[2]", place) == {"spark.authenticate": "true"}
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("kind", [SparkStreamError, Misuse, SparkUnavailable, SiddhiError])
def test_secrets_in_messages_are_masked(kind: type[SparkStreamError]) -> None:
    error = kind("No server at sc://host:15002/;token=abc123;x=1 or postgresql://me:s3cret@host/db?password=s3cret")
    assert not any(word in str(error) + repr(error._render_traceback_()) for word in ("abc123", "s3cret"))


def test_an_address_that_is_refused_does_not_tell_its_token() -> None:
    with pytest.raises(Misuse) as wrong:
        check_master("sc:/host/;token=abc123")
    assert "abc123" not in str(wrong.value)
