"""The first notebook's story through the magics: two nodes, four trades, 30 and 40 and 70; and the Stop button."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

from sparkstream_nb import app as api
from tests.masters import EACH_RUNNER

from .conftest import HOUR, TRADES

pytestmark = [pytest.mark.timeout(400), pytest.mark.parametrize("master", EACH_RUNNER)]


@pytest.fixture
def line(shell: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("SPARKSTREAM_HOME", str(tmp_path))
    yield lambda text: shell.run_line_magic("siddhi", text)
    api.stop_all()


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt, also in a process that a shell started in the background, where it does not."""
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, former)


def test_two_nodes_know_parts_and_the_answer_is_merged(shell: Any, line: Any, master: str) -> None:
    shell.run_cell_magic("siddhi", f"LabTrades --nodes 2 --fresh --master {master} -o app", TRADES)
    for quantity, node, at in ((10, 1, 0), (20, 1, 1000), (10, 2, 2000), (30, 2, 3000)):
        values = f'["wso2", {100 + at / 1000}, {quantity}, {HOUR + at}]'
        line(f"send LabTrades.TradeStream '{values}' --node {node} --at {HOUR + at}")
    # What was sent before is shown, without a pause between the cells.
    assert line("output LabTrades.Rises").frame["price"].tolist() == [101.0, 103.0]
    question = "from TradeAggregation within '2024-**-** **:**:**' per 'hours' select symbol, total"
    line(f'query LabTrades "{question}" -o answer')
    assert shell.user_ns["answer"].to_dict("records") == [{"symbol": "wso2", "total": 70}]
    view = line("view LabTrades.TradeAggregation --per hour")
    assert view.series().parts.tolist() == [[30.0], [40.0]]
    assert view.series().merged.tolist() == [70.0]

    shell.user_ns["more"] = pd.DataFrame(
        {"symbol": ["a", "b"], "price": ["1.5", "much"], "quantity": [1, 2], "timestamp": [HOUR + 4000, HOUR + 5000]}
    )
    report = line("feed LabTrades.TradeStream more --time timestamp")
    assert (report.rows, report.rejected) == (2, 1)
    assert report.reasons == {"price: 'much' is not a double": 1}
    assert len(line("errors LabTrades")) == 1
    assert "1 app" in repr(line("list"))


SLOW = """
define stream S (a int);
define function slow[javascript] return int { var n = 0; while (n < 20000) n++; return data[0]; };
from S select slow(a) as a insert into O;
"""


@pytest.mark.timed
@pytest.mark.usefixtures("interruptible")
def test_the_stop_button_frees_the_kernel_within_two_seconds(shell: Any, line: Any, master: str) -> None:
    shell.run_cell_magic("siddhi", f"LabLong --fresh --allow-scripts --master {master}", SLOW)
    stream = api.apps()["LabLong"].runtime.stream
    shell.user_ns["long_feed"] = pd.DataFrame({"a": range(6_000)})
    pressed: list[float] = []

    def press() -> None:
        while not stream.next_unplanned():
            time.sleep(0.05)
        pressed.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    presser = threading.Thread(target=press)
    presser.start()
    result = shell.run_cell("%siddhi feed LabLong.S long_feed")
    took = time.perf_counter() - pressed[0]
    presser.join()
    assert type(result.error_in_exec).__name__ == "Interrupted"
    assert took < 2.0
    assert shell.run_cell("1 + 1").result == 2
