"""What a notebook saves, Spark logs and an app's folder has after passwords and tokens were used, and refused."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkstream_nb.runners.choice import INLINE
from tests.apps.receiver import receiver
from tests.masters import EACH_RUNNER
from tests.processes import free_port

from .cells import LOAD

pytestmark = [pytest.mark.notebook, pytest.mark.timeout(400)]
ROOT = Path(__file__).parents[2]
SECRETS = {
    "SINK_TOKEN": "tok-3f6a9c1e",
    "DB_PASSWORD": "pw-77d1e20b",
    "KAFKA_PASSWORD": "pw-c05be914",
    "CONNECT_TOKEN": "tok-b8120aa4",
}
NAMES = ",".join(SECRETS)
SHOP = """%%siddhi Shop {how} --allow http={url} --allow http=http://localhost:{port} -o app
@source(type='http', receiver.url='http://localhost:{port}/in', @map(type='json'))
@sink(type='http', publisher.url='{url}', on.error='STORE', headers="'Authorization:Bearer ${{env:SINK_TOKEN}}'",
      @map(type='json'))
define stream Orders (item string, n int);
"""
STORED = """%%siddhi Stored {how} --allow jdbc=postgresql://127.0.0.1:{port}/shop
@store(type='rdbms', jdbc.url='jdbc:postgresql://127.0.0.1:{port}/shop', username='me', password='${{env:DB_PASSWORD}}')
define table T (a int);
define stream S (a int);
from S select a insert into T;
"""
KAFKA = """%%siddhi Read {how} -o read --allow kafka=127.0.0.1:{port}
@source(type='kafka', bootstrap.servers='127.0.0.1:{port}', topic.list='t', group.id='g',
        threading.option='single.thread',
        optional.configuration="security.protocol:SASL_PLAINTEXT,sasl.mechanism:PLAIN,{jaas}", @map(type='json'))
define stream S (a int);
from S select a insert into O;
"""
JAAS = "sasl.jaas.config:username='me' password='${env:KAFKA_PASSWORD}'"
CONNECT = """
import os, sparkstream_nb
sparkstream_nb.deploy("define stream S (a int); from S select a insert into O;", name="Away",
                      master="sc://127.0.0.1:{port}/;token=" + os.environ["CONNECT_TOKEN"])
"""
UNTIL_IT_FAILS = """
import time
while read.stats().sources[0].last_error is None:
    time.sleep(0.1)
"""
CELLS = [
    LOAD,
    CONNECT,
    SHOP,
    """%siddhi send Shop.Orders '["nail", 3]'""",
    "app.drain(60)",
    "%siddhi stats Shop",
    "%siddhi errors Shop",
    "%siddhi explain Shop",
    "app",
    "print(app.logs, app.explain(), vars(app.stats()))",
    STORED,
    KAFKA,
    UNTIL_IT_FAILS,
    "%siddhi stats Read",
    "%siddhi list",
]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder whose path is short enough for the sockets in it."""
    with tempfile.TemporaryDirectory(prefix="saved-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def lines_with(secret: str, folder: Path) -> list[str]:
    """Where under `folder` a secret stands."""
    found = []
    for file in sorted(f for f in folder.rglob("*") if f.is_file()):
        lines = file.read_bytes().splitlines()
        found += [f"{file.relative_to(folder)}: {line[:300]!r}" for line in lines if secret.encode() in line]
    return found


@pytest.mark.parametrize("master", EACH_RUNNER)
def test_secrets_are_in_no_file(folder: Path, monkeypatch: pytest.MonkeyPatch, master: str) -> None:
    import nbformat  # takes a second to load
    from nbclient import NotebookClient

    for name, value in {**SECRETS, "TMPDIR": str(folder), "SPARKSTREAM_HOME": str(folder / "apps")}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))

    def refuse(number: int, body: bytes) -> int:
        return 401

    with receiver(refuse) as server:
        given = {"url": server.url, "jaas": JAAS, "how": f"--fresh --master {master} --allow-env {NAMES}"}
        cells = [nbformat.v4.new_code_cell(c.format(port=free_port(), **given)) for c in CELLS]
        book = nbformat.v4.new_notebook(cells=cells)
        client = NotebookClient(book, timeout=180, allow_errors=True, resources={"metadata": {"path": str(folder)}})
        with client.setup_kernel():
            for number, cell in enumerate(book.cells):
                client.execute_cell(cell, number)
            client.set_widgets_metadata()
            nbformat.write(book, folder / "saved.ipynb")
            (token_file,) = (folder / "apps").rglob("sources/*.token")
            own = token_file.read_text().strip()
            token_file.unlink()
            found = {name: lines_with(value, folder) for name, value in {**SECRETS, "of the source": own}.items()}
            logs = [f for f in folder.glob("*spark*/log") if f.stat().st_size]
    assert not any(found.values()), found
    assert (master == INLINE) == (not logs)
    assert {r.headers["Authorization"] for r in server.requests} == {f"Bearer {SECRETS['SINK_TOKEN']}"}
    shown = "\n".join(str(cell.outputs) for cell in book.cells)
    for failure in ("No Spark Connect server", "401", "cannot be opened", "the broker does not answer"):
        assert failure in shown
